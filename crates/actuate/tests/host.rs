//! Tests windows and prefetch on open files of other processes, on a loop device. Needs root.

// Skipped tests print their reason.
#![allow(clippy::print_stdout)]

mod directory;
mod miss_prefetcher;
mod overlay;
mod stage;

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use foreread_actuate::{
    AccessRules, ActionOutcome, ActuateFailure, Actuator, FileAdvice, NewFiles,
};
use observe::{Census, OpenFile, OpenFileFilter};
use stage::{Reader, Stage};
use sys::cachestat::{cachestat, mincore};
use sys::mapping::FileMapping;
use units::{Bytes, Pages};

fn rules(texts: &[&str]) -> AccessRules {
    let allow = texts.iter().map(|text| text.parse().expect("a rule")).collect();
    AccessRules { allow, deny: Vec::new() }
}

fn only(reader: &Reader) -> AccessRules {
    rules(&[&format!("pid:{}", reader.pid())])
}

fn kib(kib: u64) -> Bytes {
    Bytes::from_kib(kib)
}

/// Waits up to ten seconds until the condition holds; returns whether it does.
fn soon(holds: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !holds() && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    holds()
}

#[test]
fn host_an_open_file_of_another_process_gets_the_new_window() {
    let Some(stage) = Stage::set("host_an_open_file_of_another_process_gets_the_new_window") else {
        return;
    };
    stage.set_bdi(128);
    let reader = Reader::of(&stage.file("data", 1 << 20));
    let actuator = Actuator::load(only(&reader)).expect("an actuator");
    stage.set_bdi(1088);
    let file = stage.one(&actuator, &reader);
    assert_eq!(file.window, kib(128), "the kernel changes later opens only");
    let done = actuator.refresh(&file).expect("acted");
    assert_eq!(done, ActionOutcome::Done { before: kib(128), after: kib(1088) });
    assert_eq!(done.to_string(), "window 128 KiB → 1088 KiB");
    let again = actuator.refresh(&file).expect("acted");
    assert_eq!(again, ActionOutcome::AsWanted { window: kib(1088) });
    let random = actuator.advise(&file, FileAdvice::Random).expect("acted");
    assert!(random.is_good() && stage.one(&actuator, &reader).random);
    let twice = actuator.advise(&file, FileAdvice::Sequential).expect("acted");
    assert_eq!(twice, ActionOutcome::Done { before: kib(1088), after: kib(2176) });
    assert!(!stage.one(&actuator, &reader).random);
}

#[test]
fn host_an_open_file_gets_exactly_the_window_asked_for() {
    let Some(stage) = Stage::set("host_an_open_file_gets_exactly_the_window_asked_for") else {
        return;
    };
    stage.set_bdi(128);
    let readers: Vec<Reader> = (0..5).map(|_| Reader::of(&stage.file("data", 1 << 20))).collect();
    let bystander = Reader::of(&stage.file("data", 1 << 20));
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let mut lease = stage.lease();
    let files: Vec<OpenFile> = readers.iter().map(|reader| stage.one(&actuator, reader)).collect();
    actuator.advise(&files[1], FileAdvice::Random).expect("acted");
    let windows = [1088, 4, 256, 128, 1088].map(kib);
    let wanted: Vec<(&OpenFile, Bytes)> = files.iter().zip(windows).collect();
    let exact = actuator.set_windows(&mut lease, &wanted).expect("acted");
    assert!(exact.outcomes.iter().all(ActionOutcome::is_good), "{exact:?}");
    for (reader, window) in readers.iter().zip(windows) {
        assert_eq!(stage.one(&actuator, reader).window, window);
    }
    assert!(stage.one(&actuator, &readers[1]).random, "the flag stays");
    assert_eq!(stage.one(&actuator, &bystander).window, kib(128));
    assert_eq!(stage.bdi_kib(), 128);
    // A file on another bdi than that of the lease is refused.
    let mut elsewhere = files[0].clone();
    elsewhere.bdi = host::BdiId::new("0:1");
    let refused = actuator.set_windows(&mut lease, &[(&elsewhere, kib(64))]).expect("acted");
    assert!(matches!(refused.outcomes[..], [ActionOutcome::Failed(ActuateFailure::Kernel { .. })]));
}

#[test]
fn host_files_opened_meanwhile_are_restored() {
    let Some(stage) = Stage::set("host_files_opened_meanwhile_are_restored") else { return };
    stage.set_bdi(128);
    let reader = Reader::of(&stage.file("data", 1 << 20));
    let path = stage.file("other", 1 << 20);
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let mut lease = stage.lease();
    let (stop, opened) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut collateral_restores = 0;
    std::thread::scope(|scope| {
        // Opens files continuously and keeps the last 500 open.
        scope.spawn(|| {
            let mut kept = std::collections::VecDeque::new();
            while !stop.load(Ordering::Relaxed) {
                kept.push_back(File::open(&path).expect("open"));
                opened.fetch_add(1, Ordering::Relaxed);
                if kept.len() > 500 {
                    kept.pop_front();
                }
            }
        });
        let until = Instant::now() + Duration::from_secs(3);
        for round in 0.. {
            let file = stage.one(&actuator, &reader);
            let window = kib(if round % 2 == 0 { 1088 } else { 544 });
            let exact = actuator.set_windows(&mut lease, &[(&file, window)]).expect("acted");
            assert!(exact.outcomes[0].is_good(), "{exact:?}");
            collateral_restores += exact.collateral_restores.len();
            let strays: Vec<Bytes> = stage
                .all(&actuator)
                .into_iter()
                .filter(|other| other.id != file.id && other.window != kib(128))
                .map(|other| other.window)
                .collect();
            assert_eq!(strays, [], "round {round}");
            if Instant::now() > until {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{collateral_restores} restored of {} opened", opened.load(Ordering::Relaxed));
    assert_eq!(stage.bdi_kib(), 128);
}

#[test]
fn host_files_are_opened_with_a_temporary_window() {
    let Some(stage) = Stage::set("host_files_are_opened_with_a_temporary_window") else {
        return;
    };
    let path = stage.file("data", 1 << 20);
    stage.set_bdi(1088);
    let early = Reader::of(&path);
    stage.set_bdi(128);
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let mut lease = stage.lease();
    let short = std::fs::metadata(lease.journal()).expect("a journal").len();
    let mut opens = NewFiles::new(kib(128));
    let window = |reader: &Reader| stage.one(&actuator, reader).window;
    assert!(opens.set(&actuator, &mut lease, Some(kib(1088))).expect("set"));
    assert!(!opens.set(&actuator, &mut lease, Some(kib(1088))).expect("no change"));
    let (first, kept) = (Reader::of(&path), Reader::of(&path));
    assert_eq!((window(&first), opens.window(), stage.bdi_kib()), (kib(1088), kib(1088), 1088));
    // One file gets another window; the window that it would have otherwise is known.
    let file = stage.one(&actuator, &kept);
    assert_eq!(opens.would_have(&file), kib(128));
    assert_eq!(opens.would_have(&stage.one(&actuator, &early)), kib(1088));
    let exact = actuator.set_windows(&mut lease, &[(&file, kib(512))]).expect("acted");
    assert!(exact.outcomes[0].is_good(), "{exact:?}");
    assert_eq!(stage.bdi_kib(), 1088, "the temporary value of the bdi is kept");
    opens.set(&actuator, &mut lease, Some(kib(2048))).expect("set");
    let second = Reader::of(&path);
    assert_eq!(window(&second), kib(2048));
    let others = HashSet::from([file.id]);
    let collateral_restores = opens.end(&actuator, &mut lease, &others).expect("ended");
    assert_eq!(collateral_restores.len(), 2, "{collateral_restores:?}");
    assert_eq!((stage.bdi_kib(), opens.window()), (128, kib(128)));
    assert_eq!([&first, &second].map(&window), [kib(128); 2]);
    assert_eq!(window(&kept), kib(512), "the caller restores it");
    assert_eq!(window(&early), kib(1088), "it had that before");
    let long = std::fs::metadata(lease.journal()).expect("a journal").len();
    assert_eq!(long, short, "the journal is empty again");
    // If another process sets the bdi meanwhile, its value is kept.
    opens.set(&actuator, &mut lease, Some(kib(256))).expect("set");
    stage.set_bdi(64);
    opens.end(&actuator, &mut lease, &others).expect_err("changed by another process");
    drop(lease);
    assert_eq!(stage.bdi_kib(), 64);
}

#[test]
fn host_a_long_prefetch_is_split() {
    let Some(stage) = Stage::set("host_a_long_prefetch_is_split") else { return };
    stage.set_bdi(128);
    let path = stage.file("data", 64 << 20);
    let reader = Reader::of(&path);
    let own = File::open(&path).expect("open");
    let stat = cachestat(own.as_fd(), Bytes::ZERO, Bytes::ZERO);
    if stat.is_err_and(|error| error.kind() == std::io::ErrorKind::Unsupported) {
        // mincore(2) does not count pages in flight.
        println!("SKIP host_a_long_prefetch_is_split: no cachestat(2) before Linux 6.5");
        return;
    }
    let actuator = Actuator::load(only(&reader)).expect("an actuator");
    let file = stage.one(&actuator, &reader);
    let asked = actuator.prefetch(&file, Bytes::from_mib(16), Bytes::from_mib(32)).expect("acted");
    assert_eq!(asked, Ok(Bytes::from_mib(32)));
    let page = |index: u64| {
        let stat = cachestat(own.as_fd(), Bytes::from_kib(4 * index), Bytes::from_kib(4));
        stat.expect("cachestat").cached
    };
    let missing: Vec<u64> = (4096..12288).filter(|index| page(*index) == Pages::ZERO).collect();
    assert!(missing.is_empty(), "all of it, although one call would read less: {missing:?}");
    let past = actuator.prefetch(&file, Bytes::from_mib(60), Bytes::from_mib(32)).expect("acted");
    assert_eq!(past, Ok(Bytes::from_mib(4)), "not beyond the end");
}

#[test]
fn host_a_mapped_file_without_a_descriptor_is_prefetched() {
    let name = "host_a_mapped_file_without_a_descriptor_is_prefetched";
    let Some(stage) = Stage::set(name) else { return };
    stage.set_bdi(128);
    let path = stage.file("data", 4 << 20);
    let size = Bytes::from_mib(4);
    let mapping = {
        let file = File::open(&path).expect("open");
        FileMapping::new(file.as_fd(), Bytes::ZERO, size).expect("a mapping")
    };
    let inode = std::fs::metadata(&path).expect("a file").ino();
    let own = std::process::id();
    let census = Census::load().expect("a census");
    let mapped = |inode: u64| {
        let mut files = census.mapped_files(own, &OpenFileFilter::default()).expect("files");
        files.retain(|file| file.inode == inode);
        files
    };
    let by_pid = |pid: u32| Actuator::load(rules(&[&format!("pid:{pid}")])).expect("an actuator");
    let actuator = by_pid(own);
    assert_eq!(stage.all(&actuator), [], "it has no descriptor");
    let files = mapped(inode);
    let [file] = &files[..] else {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
        let older = ["4.", "5.", "6.0", "6.1."].iter().any(|start| release.starts_with(start));
        assert!(older, "mappings are listed since Linux 6.2: {files:?}");
        println!("SKIP {name}: the kernel does not list mappings ({files:?})");
        return;
    };
    let program = std::fs::metadata("/proc/self/exe").expect("a program").ino();
    assert_eq!(mapped(program), [], "programs are left out");
    assert!(file.is_only_mapped() && file.readable && file.size == size, "{file:?}");
    assert_eq!((file.window, file.holders.len(), file.holders[0].pid), (kib(128), 1, own));
    let only_mapped = ActionOutcome::Failed(ActuateFailure::OnlyMapped);
    assert_eq!(actuator.advise(file, FileAdvice::Random).expect("acted"), only_mapped);
    let mut lease = stage.lease();
    let set = actuator.set_windows(&mut lease, &[(file, kib(64))]).expect("acted");
    assert_eq!(set.outcomes, [only_mapped]);
    drop(lease);
    let prefetch = |actuator: &Actuator| {
        actuator.prefetch(file, Bytes::from_mib(1), Bytes::from_mib(1)).expect("acted")
    };
    assert_eq!(prefetch(&by_pid(1)), Err(ActuateFailure::NotAllowed));
    let cached = || {
        let file = File::open(&path).expect("open");
        mincore(file.as_fd(), Bytes::ZERO, size).expect("mincore")
    };
    assert_eq!(cached(), Pages::ZERO);
    assert_eq!(prefetch(&actuator), Ok(Bytes::from_mib(1)));
    assert!(soon(|| cached() == Pages::new(256)), "{:?}", cached());
    drop(mapping);
    assert_eq!(prefetch(&actuator), Err(ActuateFailure::Gone));
}

#[test]
fn host_files_that_no_rule_allows_are_left_alone() {
    let Some(stage) = Stage::set("host_files_that_no_rule_allows_are_left_alone") else { return };
    stage.set_bdi(128);
    let reader = Reader::of(&stage.file("data", 1 << 20));
    let shared = Reader::of(&stage.file("shared", 1 << 20));
    let outcome = |limits: AccessRules, reader: &Reader| {
        let actuator = Actuator::load(limits).expect("an actuator");
        let file = stage.one(&actuator, reader);
        let outcome = actuator.advise(&file, FileAdvice::Random).expect("acted");
        assert_eq!(stage.one(&actuator, reader).random, outcome.is_good());
        actuator.refresh(&file).expect("acted");
        outcome
    };
    let not_allowed = ActionOutcome::Failed(ActuateFailure::NotAllowed);
    assert_eq!(outcome(rules(&["pid:1"]), &reader), not_allowed);
    assert_eq!(outcome(rules(&["user:65533"]), &reader), not_allowed);
    assert_eq!(outcome(rules(&["exe:/bin/true"]), &reader), not_allowed);
    assert_eq!(outcome(rules(&["cgroup:/no.slice/such"]), &reader), not_allowed);
    assert_eq!(outcome(rules(&["mount:/proc"]), &reader), not_allowed);
    let point = format!("mount:{}", stage.point().display());
    for allowed in ["user:root", "cgroup:/", "exe:/usr/bin/sleep"] {
        assert!(outcome(rules(&["pid:1", allowed]), &reader).is_good(), "{allowed}");
    }
    assert!(outcome(rules(&[&point]), &reader).is_good());
    assert_eq!(
        outcome(rules(&["pid:1", &point]), &reader),
        not_allowed,
        "the process must be allowed, too"
    );
    // A file that a denied process shares is left alone.
    let sharer = Reader::with(shared.share());
    let pid: foreread_actuate::AccessRule =
        format!("pid:{}", sharer.pid()).parse().expect("a rule");
    let limits = AccessRules { allow: Vec::new(), deny: vec![pid.clone()] };
    assert_eq!(
        outcome(limits.clone(), &shared),
        ActionOutcome::Failed(ActuateFailure::Denied(pid))
    );
    // A file that is shared with a process that no rule allows is also left alone.
    assert_eq!(outcome(only(&shared), &shared), not_allowed);
    assert!(outcome(limits, &reader).is_good());
}

#[test]
fn host_a_reused_descriptor_is_detected() {
    let Some(stage) = Stage::set("host_a_reused_descriptor_is_detected") else { return };
    stage.set_bdi(128);
    let path = stage.file("data", 1 << 20);
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let file = File::open(&path).expect("open");
    let number = file.as_raw_fd();
    let seen = stage.held_by(&actuator, std::process::id(), number).expect("listed");
    // The same file opened again under the same descriptor is another open file.
    drop(file);
    let (decoy, file) = (File::open("/dev/null"), File::open(&path).expect("open"));
    let again = if file.as_raw_fd() == number { file } else { decoy.expect("open") };
    if again.as_raw_fd() == number {
        let now = stage.held_by(&actuator, std::process::id(), number);
        if now.as_ref().is_some_and(|now| now.id == seen.id) {
            println!("the kernel used the same address again: the two cannot be distinguished");
        } else {
            let outcome = actuator.advise(&seen, FileAdvice::Random).expect("acted");
            assert_eq!(outcome, ActionOutcome::Failed(ActuateFailure::Gone));
        }
    }
    // The process has exited.
    let mut reader = Reader::of(&path);
    let seen = stage.one(&actuator, &reader);
    reader.end();
    let outcome = actuator.refresh(&seen).expect("acted");
    assert_eq!(outcome, ActionOutcome::Failed(ActuateFailure::Gone));
}

#[test]
fn host_short_lived_processes_cause_no_error() {
    let Some(stage) = Stage::set("host_short_lived_processes_cause_no_error") else { return };
    stage.set_bdi(128);
    let path = stage.file("data", 1 << 20);
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let mut lease = stage.lease();
    let before = descriptors();
    let stop = AtomicBool::new(false);
    let mut seen = HashSet::new();
    std::thread::scope(|scope| {
        // Threads that open and close files; processes that start, exec and exit.
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(File::open(&path).expect("open"));
                }
            });
        }
        scope.spawn(|| {
            let script = "exec 9<\"$0\"; exec 8<\"$0\" 9<&-; exec true 7<\"$0\"";
            while !stop.load(Ordering::Relaxed) {
                let mut shell = std::process::Command::new("sh");
                shell.arg("-c").arg(script).arg(&path).status().expect("a shell");
            }
        });
        let until = Instant::now() + Duration::from_secs(3);
        let mut round = 0_u64;
        while Instant::now() < until {
            round += 1;
            let files = stage.all(&actuator);
            let wanted: Vec<(&OpenFile, Bytes)> =
                files.iter().map(|file| (file, kib(4 * (1 + round % 300)))).collect();
            let exact = actuator.set_windows(&mut lease, &wanted).expect("acted");
            for outcome in &exact.outcomes {
                seen.insert(std::mem::discriminant(outcome));
                let harmless = outcome.is_good()
                    || matches!(outcome, ActionOutcome::Failed(ActuateFailure::Gone));
                assert!(harmless, "{outcome:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{} kinds of outcome", seen.len());
    drop(lease);
    assert_eq!(stage.bdi_kib(), 128);
    // The guard's socket and the lock were closed with the lease.
    assert!(descriptors() <= before, "no descriptor is kept");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}
