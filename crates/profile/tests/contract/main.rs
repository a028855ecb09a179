//! Checks each diagnosis on a recording with its pattern, and a clean recording without any.
#![allow(clippy::unwrap_used)] // a test may panic

mod shared_device;

use foreread_profile::{
    AccessKind, AdviceRecord, DeviceModel, FileAccess, FixChange, Frame, IoRequest, ModelChoice,
    PageEviction, PageTouch, ProfileRecording, ProfiledFile, RULES, ReplaySetting, StackTrace,
    StorageWait, SubmittedPages, WaitClass, analyse,
};
use host::DevNo;
use observe::{AdviceCallKind, InodeId, UringReads};
use units::{Bytes, Nanos};

const DEVICE: DevNo = DevNo { major: 7, minor: 1 };
const WAIT: Nanos = Nanos::from_millis(5);

/// A recording that is built access by access.
#[derive(Clone)]
struct Builder {
    recording: ProfileRecording,
    now: Nanos,
}

impl Builder {
    fn new() -> Self {
        let mut recording = ProfileRecording::default();
        let id = InodeId { device: DEVICE, inode: 42 };
        recording.files.push(ProfiledFile {
            id,
            path: "/data/file".to_owned(),
            size: Bytes::from_mib(64),
            start: None,
            jumps: Vec::new(),
        });
        recording.stacks.push(StackTrace::default());
        recording.taken = 1000;
        Self { recording, now: Nanos::ZERO }
    }

    fn access(&mut self, offset: u64, length: u64, class: Option<WaitClass>) -> &mut FileAccess {
        let blocked = class.map_or(Nanos::ZERO, |_| WAIT);
        let start = self.now;
        self.now += blocked + Nanos::from_micros(10);
        if let Some(class) = class {
            self.recording.waits.push(StorageWait {
                end: self.now,
                blocked,
                tid: 1,
                pid: 1,
                stack: 0,
                class,
                inode: Some(0),
                file: 7,
                offset: Bytes::new(offset),
            });
            self.request(length, 1);
        }
        self.recording.accesses.push(FileAccess {
            start,
            end: self.now,
            tid: 1,
            file: 7,
            inode: 0,
            offset: Bytes::new(offset),
            length: Bytes::new(length),
            blocked,
            kind: AccessKind::Read,
            misses: u32::from(class.is_some()),
            marks: 0,
            submitted: Bytes::ZERO,
            largest_window: Bytes::ZERO,
            window_limit: Bytes::from_kib(128),
            is_random: false,
            is_direct: false,
            only_mapped: false,
            calls: 1,
        });
        self.recording.accesses.last_mut().unwrap()
    }

    fn request(&mut self, length: u64, depth: u32) {
        self.recording.requests.push(IoRequest {
            end: self.now,
            service: Nanos::from_millis(3),
            device: DEVICE,
            sector: 0,
            length: Bytes::new(length),
            depth,
            is_read: true,
            queued: Nanos::ZERO,
            neighbour: None,
        });
    }

    fn advise(&mut self, file: u64, advice: u32, length: u64, submitted: u64, result: i64) {
        self.recording.advice.push(AdviceRecord {
            at: self.now,
            tid: 1,
            call: AdviceCallKind::Fadvise,
            advice,
            file,
            inode: Some(0),
            offset: 0,
            length: Bytes::new(length),
            result,
            blocked: Nanos::ZERO,
            stack: 0,
            is_direct: false,
            submitted: Bytes::new(submitted),
        });
    }

    fn submit(&mut self, offset: u64, length: u64) {
        self.recording.submitted.push(SubmittedPages {
            at: self.now,
            tid: 1,
            inode: 0,
            offset: Bytes::new(offset),
            length: Bytes::new(length),
            is_window: true,
        });
    }

    /// Evicts a range of the first file.
    fn evict(&mut self, offset: u64, length: u64, is_advised: bool) {
        self.recording.evictions.push(PageEviction {
            at: self.now,
            inode: 0,
            offset: Bytes::new(offset),
            length: Bytes::new(length),
            is_advised,
        });
    }

    /// Adds a wait of this class without an access.
    fn wait(&mut self, class: WaitClass) {
        self.now += WAIT;
        self.recording.waits.push(StorageWait {
            end: self.now,
            blocked: WAIT,
            tid: 1,
            pid: 1,
            stack: 0,
            class,
            inode: None,
            file: 0,
            offset: Bytes::ZERO,
        });
    }

    /// Turns all accesses into faults of a mapping.
    fn mapped(mut self) -> Self {
        for access in &mut self.recording.accesses {
            access.kind = AccessKind::Fault;
            access.file = 0;
        }
        self.recording.waits.iter_mut().for_each(|wait| wait.file = 0);
        self
    }

    /// Returns the names of the diagnoses: problems first, then by descending wait time.
    fn diagnoses(mut self) -> Vec<&'static str> {
        self.recording.wall = self.now;
        let analysis = analyse(&self.recording, &ModelChoice::None, &[]);
        analysis.diagnoses.iter().map(|one| one.rule.name).collect()
    }
}

const MISS: Option<WaitClass> = Some(WaitClass::Miss);

/// Reads the file in order in 4 KiB reads that all miss; `change` modifies each access.
fn in_order(change: impl Fn(&mut FileAccess)) -> Builder {
    let mut builder = Builder::new();
    (0..100).for_each(|page| change(builder.access(page * 4096, 4096, MISS)));
    builder
}

/// Returns offsets without order.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|index| (index * index * 7919 + index * 104_729) % 16_000 * 4096)
}

fn expect(name: &str, builder: Builder) {
    let found = builder.diagnoses();
    assert_eq!(found.first(), Some(&name), "{found:?}");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn advice_against_the_pattern() {
    expect("needless-random", in_order(|access| access.is_random = true));
    expect("mapped-sequential", in_order(|_| ()).mapped());
    let mut cut = Builder::new();
    cut.advise(7, 3, 64 << 20, 1 << 20, 0);
    (0..64).for_each(|mib| {
        cut.access(mib << 20, 1 << 20, MISS);
    });
    expect("cut-advice", cut);
    let mut void = in_order(|access| access.length = Bytes::new(4096));
    void.advise(7, 6, 0, 0, -22);
    expect("void-advice", void);
    let mut elsewhere = in_order(|_| ());
    elsewhere.advise(8, 2, 0, 0, 0);
    expect("void-advice", elsewhere);
}

#[test]
fn patterns_that_the_kernel_does_not_read_ahead() {
    let mut backward = Builder::new();
    (0..100).rev().for_each(|at| {
        backward.access(at * 3809, 3809, MISS);
    });
    expect("backward", backward);
    // The pages between the faults of a mapping come with them and are not recorded.
    let mut mapped = Builder::new();
    (0..100).rev().for_each(|at| {
        mapped.access((at << 16) + 61_440, 4096, MISS).submitted = Bytes::from_kib(64);
    });
    expect("backward", mapped.mapped());
    let mut stride = Builder::new();
    (0..100).for_each(|at| {
        stride.access(at << 18, 64 << 10, MISS);
    });
    expect("stride", stride);
    let mut random = Builder::new();
    scattered(200).for_each(|at| {
        random.access(at, 4096, MISS);
    });
    // Requests to other devices do not count.
    for at in 0..200 {
        random.request(4096, 4);
        let other = random.recording.requests.last_mut().unwrap();
        other.device = DevNo { major: 8, minor: 0 };
        other.end = Nanos::from_millis(at);
    }
    expect("random-depth-1", random.clone());
    // The same reads by processes that open the file, read once or twice and exit.
    for (nth, access) in (0..).zip(&mut random.recording.accesses) {
        access.file = 100 + nth / 2;
        access.tid = nth as u32 / 2;
    }
    for (nth, wait) in (0..).zip(&mut random.recording.waits) {
        wait.file = 100 + nth / 2;
        wait.tid = nth as u32 / 2;
    }
    expect("random-depth-1", random);
    let mut ramp = Builder::new();
    for start in (0..40).map(|run| run * 37 % 40 * 4_096_000) {
        for page in 0..20 {
            let class = (page % 5 == 0).then_some(WaitClass::Miss);
            ramp.access(start + page * 4096, 4096, class);
        }
    }
    expect("ramp", ramp);
}

#[test]
fn mappings_direct_reads_and_shared_files() {
    let mut mapped = Builder::new();
    scattered(100).for_each(|at| {
        mapped.access(at, 4096, MISS).submitted = Bytes::from_kib(128);
    });
    expect("mapped-random", mapped.mapped());
    expect("direct-depth-1", in_order(|access| access.is_direct = true));
    let mut shared = Builder::new();
    for page in 0..60 {
        shared.access(page * 4096, 4096, MISS).tid = 1;
        shared.access((page + 4000) * 4096, 4096, MISS).tid = 2;
    }
    expect("shared-open-file", shared);
}

/// Touches pieces of `pages` pages of a mapping in no order. Adds the events that the kernel
/// reports: a fault, a touch of its page, and of the first page of each further aligned 64 KiB.
fn mapped_pieces(pages: u64) -> Builder {
    let mut builder = Builder::new();
    // Pieces begin at each of the 16 pages of a range, so that range ends reveal their length.
    for first in (0..200_u64).map(|index| index * 7919 % 15_013) {
        builder.access(first * 4096, 4096, MISS).submitted = Bytes::from_kib(128);
        let is_seen = |page: &u64| *page == first || page.is_multiple_of(16);
        for page in (first..first + pages).filter(is_seen) {
            let length = Bytes::new((16 - page % 16) * 4096);
            let (at, offset) = (builder.now, Bytes::new(page * 4096));
            let touch = PageTouch { at, tid: 1, inode: 0, offset, length };
            builder.recording.touches.push(touch);
            builder.now += Nanos::from_micros(1);
        }
    }
    builder.mapped()
}

#[test]
fn pieces_of_a_mapping_are_to_be_asked_for() {
    let change = |builder: Builder| {
        let recording = ProfileRecording { wall: builder.now, ..builder.recording };
        let analysis = analyse(&recording, &ModelChoice::None, &[]);
        let first = &analysis.diagnoses[0];
        (first.rule.name, first.finding.change.clone(), first.finding.fix.clone())
    };
    let (rule, single, fix) = change(mapped_pieces(1));
    assert_eq!((rule, single), ("mapped-random", FixChange::SinglePages));
    assert!(fix.contains("because"), "{fix}");
    let (rule, asked, _) = change(mapped_pieces(8));
    assert_eq!((rule, asked), ("mapped-random", FixChange::AskedPieces));
    // Without touches, the length of pieces is unknown.
    let mut unseen = mapped_pieces(8);
    unseen.recording.touches.clear();
    let (_, _, fix) = change(unseen);
    assert!(fix.contains("if each fault"), "{fix}");
}

#[test]
fn windows_pages_and_calls() {
    let late = in_order(|access| {
        access.largest_window = Bytes::from_kib(128);
        access.marks = 1;
    });
    expect("late-window", late.clone());
    // If memory was full before a window was read, two larger windows do not fit.
    let mut scarce = late;
    scarce.evict(0, 4096, false);
    scarce.recording.evictions[0].at = Nanos::ZERO;
    assert!(!scarce.diagnoses().contains(&"late-window"));
    let mut fragments = in_order(|_| {});
    fragments.recording.files[0].jumps = (1..1000).map(|n| Bytes::from_kib(n * 48)).collect();
    for window in 0..40 {
        fragments.submit(window << 17, 1 << 17);
    }
    expect("fragments", fragments);
    let mut small = Builder::new();
    (0..5000).for_each(|at| {
        small.access(at * 512, 512, None);
    });
    let wall = small.now;
    assert!(wall > Nanos::from_millis(10));
    small.now = Nanos::from_millis(10);
    expect("small-reads", small);
}

/// Reads the file twice, with an eviction of all of it in between.
fn two_passes(is_advised: bool) -> Builder {
    let mut builder = Builder::new();
    let pass = |builder: &mut Builder| {
        (0..40_u64).for_each(|block| {
            builder.access(block << 17, 1 << 17, (block % 8 == 0).then_some(WaitClass::Miss));
        });
    };
    pass(&mut builder);
    builder.evict(0, 40 << 17, is_advised);
    pass(&mut builder);
    builder
}

/// Reads a second file once.
fn scan(builder: &mut Builder, blocks: u64) {
    let id = InodeId { device: DEVICE, inode: 43 };
    let (path, size) = ("/data/scan".to_owned(), Bytes::new(blocks << 17));
    builder.recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
    for block in 0..blocks {
        let access = builder.access(block << 17, 1 << 17, None);
        (access.inode, access.file) = (1, 8);
    }
}

#[test]
fn pages_that_are_read_again() {
    let mut dropped = two_passes(true);
    dropped.advise(7, 4, 0, 0, 0);
    expect("self-eviction", dropped);
    expect("thrash", two_passes(false));
    let mut polluted = two_passes(false);
    scan(&mut polluted, 50);
    expect("polluting-scan", polluted);
    // A scan of fewer bytes than were evicted is not the cause.
    let mut small = two_passes(false);
    scan(&mut small, 20);
    expect("thrash", small);
    // Evicted pages that no access returns to cost nothing.
    let mut once = Builder::new();
    once.access(0, 1 << 17, MISS);
    once.evict(0, 1 << 17, true);
    (1..40).for_each(|block| {
        once.access(block << 17, 1 << 17, (block == 20).then_some(WaitClass::Miss));
    });
    once.now += Nanos::from_millis(500);
    assert_eq!(once.diagnoses(), Vec::<&str>::new());
}

#[test]
fn runs_as_a_whole() {
    for (class, name) in [
        (WaitClass::Advice, "stalling-advice"),
        (WaitClass::Metadata, "metadata"),
        (WaitClass::WriteBack, "write-back"),
    ] {
        let mut builder = Builder::new();
        (0..10).for_each(|_| builder.wait(class));
        expect(name, builder);
    }
    expect("small-files", many_files("/data/dir/", ".bin"));
    let mut tree = many_files("/data/dir/", ".bin");
    for (number, file) in tree.recording.files.iter_mut().enumerate() {
        file.path = format!("/data/{number}/{number}.bin");
    }
    expect("small-files", tree);
    expect("cold-start", many_files("/opt/app/lib/", ".so"));
    let mut busy = in_order(|_| ());
    for request in &mut busy.recording.requests {
        request.service = Nanos::from_millis(6);
        request.depth = 4;
    }
    expect("device-bound", busy);
}

fn many_files(start: &str, end: &str) -> Builder {
    let mut builder = Builder::new();
    for file in 1..=60_u32 {
        let id = InodeId { device: DEVICE, inode: 42 + u64::from(file) };
        let path = format!("{start}{file}{end}");
        let size = Bytes::from_kib(16);
        builder.recording.files.push(ProfiledFile {
            id,
            path,
            size,
            start: None,
            jumps: Vec::new(),
        });
        let access = builder.access(0, 16 << 10, MISS);
        (access.inode, access.file) = (file, 100 + u64::from(file));
        let wait = builder.recording.waits.last_mut().unwrap();
        (wait.inode, wait.file) = (Some(file), 100 + u64::from(file));
    }
    builder
}

#[test]
fn limits_hold_requests_back() {
    // The device serves each request in a fifth of the time that the thread waits.
    let mut held = in_order(|access| access.largest_window = Bytes::from_kib(128));
    for request in &mut held.recording.requests {
        request.service = Nanos::from_millis(1);
    }
    let mut free = Builder { recording: held.recording.clone(), now: held.now };
    free.recording.waits.iter_mut().for_each(|wait| wait.class = WaitClass::InFlight);
    assert!(!free.diagnoses().contains(&"throttled"), "there is no limit");
    held.recording.limits.push("/sys/fs/cgroup/a/io.max: 7:1 rbps=1000000".to_owned());
    expect("throttled", held);
    // Without requests to the file's device, nothing is known about that device.
    let mut elsewhere = in_order(|access| access.is_random = true);
    for request in &mut elsewhere.recording.requests {
        request.service = Nanos::from_millis(1);
        request.device = DevNo { major: 8, minor: 0 };
    }
    expect("needless-random", elsewhere);
    let mut builder = Builder::new();
    (0..10).for_each(|_| builder.wait(WaitClass::Throttle));
    expect("throttled", builder);
}

/// Random reads; the last 40 of 60 with this many requests of another process in flight.
fn beside_another(others: usize) -> Builder {
    let mut builder = Builder::new();
    builder.recording.neighbours.insert(99, "dd".to_owned());
    for index in 0..60_u64 {
        let is_beside = index >= 20;
        let wait = if is_beside { 3 } else { 1 };
        builder.now += WAIT * (wait - 1);
        builder.access(index * 7919 % 4096 * 4096, 4096, MISS);
        let blocked = WAIT * wait;
        builder.recording.waits.last_mut().unwrap().blocked = blocked;
        let own = *builder.recording.requests.last().unwrap();
        builder.recording.requests.last_mut().unwrap().service = blocked;
        for _ in 0..if is_beside { others } else { 0 } {
            let other = IoRequest { service: blocked, neighbour: Some(99), ..own };
            builder.recording.requests.push(other);
        }
    }
    builder
}

#[test]
fn other_processes_slow_the_device_down() {
    assert!(beside_another(2).diagnoses().contains(&"neighbours"));
    assert!(!beside_another(0).diagnoses().contains(&"neighbours"));
}

#[test]
fn workers_of_io_uring_block() {
    let mut builder = Builder::new();
    let worker = Frame { function: "io_wq_submit_work".to_owned(), ..Frame::default() };
    builder.recording.stacks[0].kernel.push(worker);
    (0..20).for_each(|_| builder.wait(WaitClass::Miss));
    builder.recording.uring_reads = UringReads { submitted: 20, punted: 0 };
    let direct = Builder { recording: builder.recording.clone(), now: builder.now };
    assert!(!direct.diagnoses().contains(&"io-uring-punt"));
    builder.recording.uring_reads.punted = 15;
    expect("io-uring-punt", builder);
}

#[test]
fn the_clean_twin_has_no_diagnosis() {
    let mut clean = Builder::new();
    for block in 0..200 {
        let class = (block == 0).then_some(WaitClass::Miss);
        clean.access(block << 17, 1 << 17, class);
    }
    // Compute time, compared with which one wait is negligible.
    clean.now += Nanos::from_millis(500);
    assert_eq!(clean.diagnoses(), Vec::<&str>::new());
}

#[test]
fn each_rule_has_a_case_here() {
    let cases = include_str!("main.rs");
    for rule in RULES {
        assert!(cases.contains(&format!("\"{}\"", rule.name)), "no case for {}", rule.name);
    }
}

#[test]
fn losses_forbid_a_prediction() {
    let mut builder = in_order(|access| access.is_random = true);
    builder.recording.wall = builder.now;
    builder.recording.lost = 100;
    let analysis = analyse(&builder.recording, &ModelChoice::named("hdd-2008").unwrap(), &[]);
    assert!(analysis.no_prediction.is_some());
    assert_eq!(analysis.avoidable, Nanos::ZERO);
}

/// Returns a volume whose requests take as long as a wait of the builder.
fn volume() -> ModelChoice {
    let mut spec = model::Spec::preset("cloud-ssd").unwrap();
    let keys = [
        ("latency_ms", "5"),
        ("sequential_latency_ms", "5"),
        ("latency_spread", "0"),
        ("iops", "0"),
        ("throughput_mib_s", "0"),
        ("link_mib_s", "10000"),
    ];
    keys.iter().for_each(|(key, value)| spec.set(key, value).unwrap());
    ModelChoice::Named(Box::new(DeviceModel::new(spec)))
}

#[test]
fn other_settings_are_replayed() {
    let mut builder = Builder::new();
    for page in (0..400).rev() {
        builder.access(page * 4096, 4096, MISS);
    }
    builder.recording.requests.iter_mut().for_each(|request| request.service = WAIT);
    builder.recording.wall = builder.now;
    let settings = ["auto", "1M"].map(|word| word.parse::<ReplaySetting>().unwrap());
    let analysis = analyse(&builder.recording, &volume(), &settings);
    let table = analysis.what_if.unwrap().unwrap();
    let near = |a: Nanos, b: Nanos| (a.as_secs_f64() / b.as_secs_f64() - 1.0).abs() < 0.05;
    assert!(near(table.replayed, table.recorded), "{table:?}");
    let [auto, larger] = table.rows.as_slice() else { panic!("{table:?}") };
    assert!(auto.wall < builder.now.scaled(0.7), "{table:?}");
    // No window helps a reader that goes backward.
    assert!(near(larger.wall, builder.now), "{table:?}");
    // Without a model there is no simulation.
    let analysis = analyse(&builder.recording, &ModelChoice::None, &settings);
    assert!(analysis.what_if.unwrap().is_err());
}

#[test]
fn a_fix_adds_what_those_before_it_left() {
    let mut builder = Builder::new();
    for page in (0..200).rev() {
        builder.access(page * 4096, 4096, MISS);
    }
    for page in 0..200 {
        let access = builder.access((1 << 25) + page * 4096, 4096, MISS);
        (access.file, access.is_random) = (8, true);
        builder.recording.waits.last_mut().unwrap().file = 8;
    }
    builder.recording.requests.iter_mut().for_each(|request| request.service = WAIT);
    builder.recording.wall = builder.now;
    let analysis = analyse(&builder.recording, &volume(), &[]);
    let names: Vec<&str> = analysis.diagnoses.iter().map(|one| one.rule.name).collect();
    assert_eq!(names, ["backward", "needless-random"]);
    for one in &analysis.diagnoses {
        let (alone, left) = (one.gain.saved(), one.marginal.unwrap());
        assert!(left <= alone && left > alone.scaled(0.9), "{names:?}: {alone} and {left}");
    }
    let sum: Nanos = analysis.diagnoses.iter().filter_map(|one| one.marginal).sum();
    assert_eq!(analysis.avoidable, sum);
    // The remaining gain has an interval, too.
    let mut half = analysis.diagnoses[0].clone();
    half.marginal = Some(half.gain.saved().scaled(0.5));
    let line = foreread_profile::gain_line(&half, builder.recording.wall);
    assert_eq!(line.matches(" to ").count(), 2, "{line}");
}
