//! Sixty-four streams in a memory cgroup of 64 MiB.

use std::fs;
use std::path::{Path, PathBuf};

use stats::Bootstrap;

use crate::Claim;
use crate::readers::{Readers, now};
use crate::stage::{Stage, sleep_until};

const STREAMS: &str = "64";
const STATIC_KIB: [u64; 7] = [32, 64, 128, 256, 512, 1024, 2048];
/// How long readers may settle, and how long they are measured, in seconds.
const SETTLE: f64 = 3.0;
const MEASURE: f64 = 5.0;
/// How long `auto` may take to find its window.
const LEARN: f64 = 10.0;
/// So many of the best static windows are compared with it, so often.
const BEST: usize = 2;
const ROUNDS: usize = 6;

/// A memory cgroup of 64 MiB, of either version; gone when dropped.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let limits = ["memory/{}/memory.limit_in_bytes", "{}/memory.max"];
        limits.iter().find_map(|limit| {
            let name = format!("foreread-bench-{}", std::process::id());
            let limit = Path::new("/sys/fs/cgroup").join(limit.replace("{}", &name));
            let dir = limit.parent().unwrap().to_owned();
            // Only where the controller is: a directory that is no cgroup is of no use.
            fs::create_dir(&dir).ok()?;
            let group = Self(dir);
            fs::write(&limit, (64_u64 << 20).to_string()).ok().map(|()| group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The dead need a moment to leave.
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

pub fn prove() -> Vec<Claim> {
    let Some(group) = Group::make() else {
        println!("  SKIP: no memory cgroup can be made here");
        return Vec::new();
    };
    let stage = Stage::set("raid10-2008,fs=ext4,size=6G,dilation=1");
    stage.files(64, 64);
    let dir = stage.mount.to_str().unwrap().to_owned();
    let start = || Readers::start(&["streams", STREAMS, &dir], Some(&group.0));
    // MiB/s, and device bytes for each byte that readers got.
    let measure = |readers: &Readers, from: f64| {
        sleep_until(from);
        let (begun, before) = (now(), stage.device_bytes());
        sleep_until(begun + MEASURE);
        let (end, after) = (now(), stage.device_bytes());
        let got = readers.at(end).bytes - readers.at(begun).bytes;
        (readers.rate(begun, end), (after - before) as f64 / got.max(1) as f64)
    };
    let under = |kib: u64| {
        stage.set_window(kib);
        let readers = start();
        measure(&readers, now() + SETTLE)
    };
    let mut all: Vec<(f64, u64)> = Vec::new();
    for kib in STATIC_KIB {
        let (rate, amplification) = under(kib);
        println!("    {kib} KiB: {rate:.0} MiB/s, {amplification:.2} device bytes for each");
        all.push((rate, kib));
    }
    // One run of each scatters by more than they differ, so the best ones run in turns with `auto`.
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best: Vec<u64> = all.iter().take(BEST).map(|one| one.1).collect();
    let mut runs = vec![Vec::new(); BEST];
    let (mut rates, mut most) = (Vec::new(), 0.0_f64);
    for round in 0..ROUNDS {
        for (kib, rates) in best.iter().zip(&mut runs) {
            rates.push(under(*kib).0);
        }
        stage.set_window(128);
        let readers = start();
        let auto = stage.auto();
        let (rate, amplification) = measure(&readers, auto.begun + LEARN);
        if round == 0 {
            auto.show(12);
        }
        rates.push(rate);
        most = most.max(amplification);
    }
    let mut claims = Vec::new();
    for (kib, of) in best.iter().zip(&runs) {
        let ratio = Bootstrap::new(1).ratio(&rates, of).unwrap();
        println!("    auto {rates:.0?}; {kib} KiB {of:.0?} MiB/s");
        claims.push(Claim::new(
            format!(
                "64 streams in 64 MiB get no less than under {kib} KiB: {:.3} times as much (95 %: \
                 {:.3} to {:.3}, {ROUNDS} runs of each in turns)",
                ratio.median, ratio.low, ratio.high
            ),
            ratio.high >= 1.0,
        ));
    }
    claims.push(Claim::new(
        format!("and the disk reads at most 1.2 times as much: {most:.2} at worst"),
        most <= 1.2,
    ));
    claims
}
