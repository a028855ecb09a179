//! Miss prefetching: a miss on the first page of a short run reads the rest of the run.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actuate::{AccessRules, Actuator, MissPrefetcher};
use host::{DevNo, Root, block_stat};
use observe::{Census, EventKind, Misses, OpenFile, Probes};
use policy::MissPrefetch;
use units::{Bytes, Pages};

use super::{Busy, Chance, Daemon, evict, stage, stage_of};

/// A disk whose seeks are so slow that prefetches are in time even on a busy machine.
const DISK: &str = "hdd-2008,fs=ext4,size=2G,dilation=6";
const RUNS: u64 = 40;
/// Pages of a run, and distance between the starts of adjacent runs, in runs.
const RUN: u64 = 4;
const APART: u64 = 24;
const PAGE: u64 = 4096;
/// Bytes that the file system may read for itself meanwhile.
const OTHERS: Bytes = Bytes::from_kib(64);

/// Misses and device bytes of reading all runs.
#[derive(Debug, PartialEq)]
struct Took {
    misses: u64,
    bytes: Bytes,
}

struct Runs {
    file: File,
    meant: OpenFile,
    device: DevNo,
    probes: Probes,
    misses: Arc<Misses>,
}

impl Runs {
    /// Reads all runs from the disk, page by page, in scattered order; counts misses and bytes.
    fn read(&mut self) -> Took {
        evict(&self.file);
        let read = |device| block_stat(&Root::system(), device).unwrap().read_bytes;
        self.probes.drain(|_| ());
        let before = read(self.device);
        for number in 0..RUNS {
            let place = (number * 17 % RUNS) * APART * RUN;
            for page in place..place + RUN {
                let mut buffer = vec![0; PAGE as usize];
                self.file.read_exact_at(&mut buffer, page * PAGE).unwrap();
                assert!(buffer.iter().all(|byte| *byte == 7), "page {page}");
            }
        }
        let (mut misses, id) = (0, self.meant.id);
        self.probes.drain(|event| {
            let is_miss = matches!(event.access.kind, EventKind::Miss { .. });
            misses += u64::from(is_miss && event.access.file == Some(id));
        });
        Took { misses, bytes: read(self.device) - before }
    }
}

#[test]
fn host_short_runs_that_are_answered_take_one_miss_each() {
    let name = "host_short_runs_that_are_answered_take_one_miss_each";
    if host::page_size().bytes() != Bytes::new(PAGE) {
        println!("SKIP {name}: pages are not of {PAGE} bytes");
        return;
    }
    let Some(stage) = stage_of(name, DISK) else { return };
    fs::write(&stage.knob, "4").unwrap();
    let file = File::open(stage.data("runs", 16, 7)).unwrap();
    let census = Census::load().unwrap();
    let meant = stage.open_files(&census).remove(0);
    assert_eq!(meant.window, Bytes::new(PAGE));
    let device = stage.bdi().to_string().parse().unwrap();
    let mut probes = Probes::load().unwrap();
    let misses = Arc::new(probes.take_misses().unwrap());
    let mut runs = Runs { file, meant, device, probes, misses };
    let each = Took { misses: RUNS * RUN, bytes: Bytes::new(RUNS * RUN * PAGE) };
    let took = runs.read();
    assert_eq!(took.misses, each.misses, "each page is a miss of its own");
    assert!(took.bytes >= each.bytes && took.bytes <= each.bytes + OTHERS, "{took:?}");
    let actuator = Actuator::new(census, AccessRules::default());
    let answerer = MissPrefetcher::start(actuator, Arc::clone(&runs.misses)).unwrap();
    answerer.watch(runs.meant.clone(), MissPrefetch::of_runs(Pages::new(RUN)));
    let (took, done) = (runs.read(), answerer.report());
    println!("{took:?} {done:?}");
    // On a busy machine, a prefetch may be late occasionally.
    assert!((RUNS..=2 * RUNS).contains(&took.misses), "{took:?} {done:?}");
    assert!(took.bytes <= each.bytes + OTHERS, "{took:?} {done:?}");
    assert!(done.runs >= RUNS / 2 && done.asked <= Bytes::new(RUNS * (RUN - 1) * PAGE), "{done:?}");
    assert!(done.missed.is_empty() && done.failed.is_none() && done.dropped == 0, "{done:?}");
    answerer.clear();
    assert_eq!(runs.misses.watched(), []);
    assert_eq!(runs.read().misses, each.misses, "nothing is answered any more");
}

/// Reads runs at random offsets of a file that is not cached.
fn reads_runs(path: &Path) -> impl FnMut() + Send + 'static {
    let (file, mut chance) = (File::open(path).unwrap(), Chance(7));
    let runs = file.metadata().unwrap().len() / PAGE / RUN;
    move || {
        evict(&file);
        for _ in 0..200 {
            let place = chance.below(runs) * RUN;
            for page in place..place + RUN {
                file.read_exact_at(&mut [0; PAGE as usize], page * PAGE).unwrap();
            }
        }
    }
}

#[test]
fn host_auto_answers_short_runs_and_lets_go_of_them() {
    let name = "host_auto_answers_short_runs_and_lets_go_of_them";
    let Some(stage) = stage(name) else { return };
    // Too large for the windows of the runs to cover it within two seconds.
    let path = stage.data("runs", 512, 7);
    let reader = Busy::new().with(reads_runs(&path));
    let mut auto = stage.auto(&[]);
    let status = || {
        let output = stage.foreread().args(["auto", "status", "--json"]).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default()
    };
    let mount = stage.mount.to_str().unwrap().to_owned();
    let holds = |auto: &Daemon| auto.descriptors().iter().any(|name| name.starts_with(&mount));
    let (begun, mut held) = (Instant::now(), false);
    while !held || status()["miss_prefetches"].as_u64().unwrap_or(0) == 0 {
        held |= holds(&auto);
        assert!(auto.child.try_wait().unwrap().is_none(), "{}", auto.said());
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is answered");
        std::thread::sleep(Duration::from_millis(20));
    }
    let lines = auto.lines.lock().unwrap().join("\n");
    assert!(lines.contains("/runs: prefetch runs of 16 KiB on a miss ("), "{lines}");
    println!("answered after {:.1?}", begun.elapsed());
    // auto holds the file open while it is being read, and no longer.
    drop(reader);
    stage.wait(|| !holds(&auto), "auto to let go of it");
    auto.end();
    assert_eq!(stage.value(), stage.original);
}
