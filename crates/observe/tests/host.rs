//! Tests the census and the probes on the running kernel. Needs root and a kernel with BTF.

// Skipped tests print their reason.
#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use foreread_observe::{
    Census, EventKind, FileKind, KernelTypes, Miss, Misses, ObserveError, OpenFile, OpenFileFilter,
    ProbeEvent, Probes, Rung, SAMPLES_PER_FILE, SelfTest, open_files, self_test,
};
use host::DevNo;
use rustix::fs::{Advice, fadvise};
use rustix::param::page_size;
use std::time::Duration;
use sys::lock::Lock;
use sys::mapping::FileMapping;
use tempfile::TempDir;
use testkit::HOST_LOCK;
use units::Bytes;

/// A directory on a real file system, and the census. A lock serialises the host tests.
struct Stage {
    dir: TempDir,
    census: Census,
    _turn: Lock,
}

impl Stage {
    fn set(name: &str) -> Option<Self> {
        let skip = |reason: String| {
            println!("SKIP {name}: {reason}");
            None
        };
        let turn = match Lock::acquire(Path::new(HOST_LOCK)) {
            Ok(turn) => turn,
            Err(error) => return skip(format!("no lock ({error})")),
        };
        let census = match Census::load() {
            Ok(census) => census,
            Err(error @ (ObserveError::Refused { .. } | ObserveError::Read { .. })) => {
                panic!("{error}")
            }
            Err(error) => return skip(error.to_string()),
        };
        // Not /tmp, which may be tmpfs and have no read-ahead.
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        Some(Self { dir, census, _turn: turn })
    }

    fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.dir.path().join(name);
        let file = File::create(&path).expect("a file");
        file.set_len(bytes).expect("its size");
        path
    }

    /// Lists this process's open files at `path`.
    fn look(&self, path: &Path) -> Vec<OpenFile> {
        let inode = fs::metadata(path).expect("a file").ino();
        let own = OpenFileFilter { pids: [std::process::id()].into(), ..Default::default() };
        let mut files = self.census.open_files(&own).expect("open files");
        files.retain(|file| file.inode == inode);
        files
    }

    fn one(&self, path: &Path) -> OpenFile {
        let mut files = self.look(path);
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }
}

#[test]
fn host_an_open_file_is_listed_with_all_that_is_known_of_it() {
    let Some(stage) = Stage::set("host_an_open_file_is_listed_with_all_that_is_known_of_it") else {
        return;
    };
    let path = stage.file("data", 123_456);
    let mut file = File::open(&path).expect("open");
    std::io::Read::read_exact(&mut file, &mut [0; 1000]).expect("a read");
    let seen = stage.one(&path);
    assert_eq!(seen.kind, FileKind::Regular);
    assert_eq!((seen.size, seen.position), (Bytes::new(123_456), Bytes::new(1000)));
    assert!(seen.readable && !seen.writable && !seen.direct && !seen.random);
    assert_eq!(seen.holders.len(), 1);
    let holder = &seen.holders[0];
    assert_eq!(holder.pid, std::process::id());
    assert!(holder.has_descriptor(u32::try_from(file.as_raw_fd()).expect("a descriptor")));
    assert_eq!(holder.uid, rustix::process::getuid().as_raw());
    assert!(holder.comm.starts_with("host"), "the test program: {holder:?}");
    let cgroup = own_cgroup().map(|dir| fs::metadata(dir).expect("a directory").ino());
    assert!(cgroup.is_none_or(|cgroup| cgroup == holder.cgroup), "{cgroup:?} {holder:?}");
    // The kernel's data on the bdi agree with sysfs.
    let bdi = seen.bdi.clone().expect("a bdi");
    let text = fs::read_to_string(bdi.dir().join("read_ahead_kb")).expect("sysfs");
    assert_eq!(seen.bdi_window, Bytes::from_kib(text.trim().parse().expect("a number")));
    assert_eq!(seen.window, seen.bdi_window);
    assert!(!seen.differs_from_bdi());
}

/// Returns the directory of this process's cgroup in the unified hierarchy, if there is one.
fn own_cgroup() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let dir = Path::new("/sys/fs/cgroup").join(path);
    dir.join("cgroup.procs").exists().then_some(dir)
}

#[test]
fn host_one_process_is_listed_alone() {
    let Some(stage) = Stage::set("host_one_process_is_listed_alone") else { return };
    let path = stage.file("data", 1 << 20);
    let file = File::open(&path).expect("open");
    let mut child = Heir::of(&file);
    let inode = fs::metadata(&path).expect("a file").ino();
    for (pid, holders) in [(std::process::id(), 1), (child.pid(), 1)] {
        let files = stage.census.of_process(pid).expect("open files");
        let seen = files.iter().find(|file| file.inode == inode).expect("the file");
        assert_eq!(seen.holders.len(), holders);
        assert!(files.iter().all(|file| file.holders.iter().all(|one| one.pid == pid)));
    }
    let both = [std::process::id(), child.pid()].into();
    let of_file = OpenFileFilter { ids: Some([stage.one(&path).id].into()), ..Default::default() };
    let files = stage.census.of_processes(&both, &of_file).expect("open files");
    assert_eq!(files, stage.census.open_files(&of_file).expect("open files"));
    assert_eq!(files[0].holders.len(), 2);
    child.end();
    assert!(stage.census.of_process(child.pid()).expect("nothing").is_empty());
}

#[test]
fn host_advice_is_read_back() {
    let Some(stage) = Stage::set("host_advice_is_read_back") else { return };
    let path = stage.file("data", 1 << 20);
    let file = File::open(&path).expect("open");
    let advise = |advice| fadvise(&file, 0, None, advice).expect("advice");
    let own = stage.one(&path).bdi_window;
    advise(Advice::Sequential);
    assert_eq!(stage.one(&path).window, own * 2);
    advise(Advice::Random);
    assert!(stage.one(&path).random);
    advise(Advice::Normal);
    let seen = stage.one(&path);
    assert!(!seen.random);
    assert_eq!(seen.window, own);
}

#[test]
fn host_one_open_file_has_many_holders() {
    let Some(stage) = Stage::set("host_one_open_file_has_many_holders") else { return };
    let path = stage.file("data", 1 << 20);
    let file = File::open(&path).expect("open");
    let duplicate = file.try_clone().expect("a duplicate");
    let other = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(&path);
    let mut child = Heir::of(&file);
    let files = stage.look(&path);
    assert_eq!(files.len(), if other.is_ok() { 2 } else { 1 });
    let shared = files.iter().find(|file| file.holders.len() == 3).expect("three holders");
    assert!(
        shared.holders.iter().any(|holder| holder.pid == child.pid() && holder.has_descriptor(0))
    );
    if other.is_ok() {
        let direct = files.iter().find(|file| file.direct).expect("the other");
        assert!(direct.writable && direct.readable && direct.holders.len() == 1);
    }
    child.end();
    drop((file, duplicate));
    assert_eq!(stage.look(&path).len(), usize::from(other.is_ok()));
}

/// Starts a program and waits until its `execve` is complete: until then it may still have
/// inherited descriptors open.
fn started(command: &mut Command, name: &str) -> Child {
    let child = command.spawn().expect(name);
    let comm = format!("/proc/{}/comm", child.id());
    while fs::read_to_string(&comm).expect("a process").trim() != name {
        std::thread::yield_now();
    }
    child
}

/// A process that has a file open as its standard input, and waits.
struct Heir(Child);

impl Heir {
    fn of(file: &File) -> Self {
        let stdin = Stdio::from(file.try_clone().expect("a duplicate"));
        Self(started(Command::new("sleep").arg("60").stdin(stdin), "sleep"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn host_nothing_is_left_behind() {
    let Some(stage) = Stage::set("host_nothing_is_left_behind") else { return };
    let own = OpenFileFilter { pids: [std::process::id()].into(), ..Default::default() };
    stage.census.open_files(&own).expect("open files");
    let before = descriptors();
    for _ in 0..20 {
        stage.census.open_files(&own).expect("open files");
        drop(open_files(&own).expect("open files"));
    }
    assert_eq!(descriptors(), before);
}

/// Counts this process's descriptors: BPF programs, maps and links live as long as these.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("proc").count()
}

#[test]
fn host_without_rights_it_is_said_what_root_would_add() {
    let test = "host_without_rights_it_is_said_what_root_would_add";
    let Some(stage) = Stage::set(test) else { return };
    drop(stage);
    // Privileges belong to a thread: the others keep those that this one drops.
    let said = std::thread::spawn(|| {
        let none = rustix::thread::CapabilitySet::empty();
        let sets =
            rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).expect("fewer rights");
        open_files(&OpenFileFilter::default())
    })
    .join()
    .expect("a thread");
    match said {
        Err(error @ ObserveError::NotPermitted { .. }) => {
            assert!(error.to_string().contains("run as root"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

/// Returns probes that have passed their self-test, or prints why the test `name` is skipped.
fn probes(stage: &Stage, name: &str) -> Option<Probes> {
    let mut probes = match Probes::load() {
        Ok(probes) => probes,
        Err(error) => {
            println!("SKIP {name}: {error}");
            return None;
        }
    };
    match self_test(&mut probes, &stage.census, stage.dir.path()).expect("the truth") {
        SelfTest::Passed => Some(probes),
        SelfTest::NotHere { reason } => {
            println!("SKIP {name}: {reason}");
            None
        }
    }
}

/// Creates a file with data, none of it cached.
fn cold(stage: &Stage, bytes: usize) -> (PathBuf, File) {
    let path = stage.dir.path().join("cold");
    fs::write(&path, vec![7; bytes]).expect("a file");
    let file = File::open(&path).expect("open");
    file.sync_all().expect("synced");
    fadvise(&file, 0, None, Advice::DontNeed).expect("evicted");
    (path, file)
}

/// Reads a byte of a page through a mapping.
fn touch(file: &File, page: u64) {
    let size = page_size() as u64;
    let map = FileMapping::new(file.as_fd(), Bytes::new(page * size), Bytes::new(size));
    map.expect("a mapping").copy_to(0, &mut [0]).expect("read");
}

/// Looks up an open file and discards earlier events: an open file that was closed since may have
/// had the same address.
fn begin(probes: &mut Probes, stage: &Stage, path: &Path) -> OpenFile {
    let seen = stage.one(path);
    probes.drain(drop);
    seen
}

fn of_file(probes: &mut Probes, seen: &OpenFile) -> Vec<ProbeEvent> {
    let mut events = Vec::new();
    probes.drain(|event| {
        if event.access.file == Some(seen.id) {
            events.push(event);
        }
    });
    events
}

#[test]
fn host_probes_tell_misses_marks_windows_and_waits() {
    let test = "host_probes_tell_misses_marks_windows_and_waits";
    let Some(stage) = Stage::set(test) else { return };
    let Some(mut probes) = probes(&stage, test) else { return };
    let (path, file) = cold(&stage, 4 << 20);
    let seen = begin(&mut probes, &stage, &path);
    let mut buffer = vec![0; 65536];
    for at in 0..64 {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut buffer, at * 65536).expect("read");
    }
    let events = of_file(&mut probes, &seen);
    let count =
        |is: fn(&EventKind) -> bool| events.iter().filter(|one| is(&one.access.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Miss { .. })), 1, "{events:#?}");
    assert!(count(|kind| matches!(kind, EventKind::Mark { .. })) >= 1);
    assert!(count(|kind| matches!(kind, EventKind::Window { mapped: false, .. })) >= 2);
    assert!(
        events.iter().all(|event| event.pid == std::process::id() && event.inode == seen.inode)
    );
    let stall = probes.signals().iter().find(|signal| signal.name == "stall").expect("it");
    if stall.rung != Rung::Missing {
        let waited = count(|kind| matches!(kind, EventKind::Stall { wait } if wait.get() > 0));
        assert!(waited >= 1, "the first read of a cold file waits");
    }
    // A read of cached pages passes no probe.
    for at in 0..64 {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut buffer, at * 65536).expect("read");
    }
    assert_eq!(of_file(&mut probes, &seen), []);
    assert_eq!(probes.lost(), 0);
}

#[test]
fn host_accesses_to_a_sampled_file_are_told_when_it_is_cached() {
    let test = "host_accesses_to_a_sampled_file_are_told_when_it_is_cached";
    let Some(stage) = Stage::set(test) else { return };
    let Some(mut probes) = probes(&stage, test) else { return };
    let (path, file) = cold(&stage, 4 << 20);
    let seen = stage.one(&path);
    let read = |page: u64, pages: usize| {
        let size = page_size();
        let mut buffer = vec![0; pages * size];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut buffer, page * size as u64)
            .expect("read");
    };
    (0..1024).for_each(|page| read(page, 1));
    let chosen = BTreeSet::from([(seen.device, seen.inode)]);
    if !probes.sample(&chosen).expect("sampling") {
        println!("SKIP {test}: this kernel does not report reads of cached pages");
        return;
    }
    let accesses = |probes: &mut Probes| {
        let mut accesses = Vec::new();
        probes.drain(|event| {
            if let EventKind::Access { mapped } = event.access.kind
                && (event.device, event.inode) == (seen.device, seen.inode)
            {
                accesses.push((mapped, event.access.index, event.access.request.get()));
            }
        });
        accesses
    };
    drop(accesses(&mut probes));
    read(10, 1);
    read(3, 2);
    touch(&file, 7);
    let told = accesses(&mut probes);
    assert_eq!(told[..2], [(false, 10, 1), (false, 3, 2)], "{told:?}");
    let is_fault =
        |(mapped, first, pages): &(bool, u64, u64)| *mapped && (*first..first + pages).contains(&7);
    assert!(told[2..].iter().any(is_fault), "{told:?}");
    // The number of samples of a file until its next selection is bounded.
    probes.sample(&chosen).expect("sampling");
    (0..1000).for_each(|page| read(page, 1));
    assert_eq!(accesses(&mut probes).len() as u64, SAMPLES_PER_FILE);
    probes.sample(&BTreeSet::new()).expect("sampling");
    read(10, 1);
    assert_eq!(accesses(&mut probes), []);
}

#[test]
fn host_a_fault_is_told_with_its_page() {
    let test = "host_a_fault_is_told_with_its_page";
    let Some(stage) = Stage::set(test) else { return };
    let Some(mut probes) = probes(&stage, test) else { return };
    // Room for a window of at most 16 MiB with pages on both sides of it.
    let (path, file) = cold(&stage, 64 << 20);
    let seen = begin(&mut probes, &stage, &path);
    if !(Bytes::from_kib(4)..=Bytes::from_mib(16)).contains(&seen.window) || page_size() != 4096 {
        println!("SKIP {test}: windows here are of {}", seen.window);
        return;
    }
    let faults = [12_000, 4_000];
    faults.iter().for_each(|page| touch(&file, *page));
    let events = of_file(&mut probes, &seen);
    let asked: Vec<u64> = events
        .iter()
        .filter(|event| matches!(event.access.kind, EventKind::Window { mapped: true, .. }))
        .map(|event| event.access.index)
        .collect();
    assert_eq!(asked, faults, "{events:#?}");
}

#[test]
fn host_requests_are_counted_by_size() {
    let test = "host_requests_are_counted_by_size";
    let Some(stage) = Stage::set(test) else { return };
    if probes(&stage, test).is_none() {
        return;
    }
    let types = KernelTypes::read().expect("types");
    let probes = Probes::of_windows(&types).expect("probes");
    let storage = host::resolve(&host::Root::system(), stage.dir.path()).expect("storage");
    let single = || probes.request_sizes(&storage.devices).first().copied().unwrap_or_default();
    let (_, file) = cold(&stage, 4 << 20);
    fadvise(&file, 0, None, Advice::Random).expect("told");
    let before = single();
    let mut buffer = vec![0; 4096];
    for at in 0..16 {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut buffer, at * 65536).expect("read");
    }
    let counted = single() - before;
    assert!(counted >= 16, "{counted} of sixteen requests of a page");
    assert!(probes.request_sizes(&[DevNo { major: 0, minor: 1 }]).is_empty());
}

#[test]
fn host_probes_leave_nothing_behind() {
    let test = "host_probes_leave_nothing_behind";
    let Some(stage) = Stage::set(test) else { return };
    if probes(&stage, test).is_none() {
        return;
    }
    let before = (descriptors(), programs());
    for _ in 0..5 {
        drop(probes(&stage, test));
    }
    assert_eq!(descriptors(), before.0);
    // The kernel removes programs asynchronously.
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        programs() <= before.1
    });
    assert!(gone, "{} programs before, {} after", before.1, programs());
}

/// Counts the programs of foreread in the kernel, of all processes.
fn programs() -> usize {
    let ours = |name: &[u8]| name.ends_with(b"_tp_btf") || name.ends_with(b"_fentry");
    aya::programs::loaded_programs()
        .filter(|program| program.as_ref().is_ok_and(|program| ours(program.name())))
        .count()
}

/// Returns the pages of the misses reported so far.
fn told(misses: &Misses) -> Vec<u64> {
    let mut pages = Vec::new();
    misses.wait(Duration::ZERO, |miss| pages.push(miss.index)).expect("misses");
    pages
}

#[test]
fn host_misses_of_watched_files_are_told_at_once() {
    let test = "host_misses_of_watched_files_are_told_at_once";
    let Some(stage) = Stage::set(test) else { return };
    if page_size() != 4096 {
        println!("SKIP {test}: pages are not of 4096 bytes");
        return;
    }
    let Some(mut probes) = probes(&stage, test) else { return };
    let misses = probes.take_misses().expect("misses");
    assert!(probes.take_misses().is_err(), "there is one for all");
    let (path, file) = cold(&stage, 16 << 20);
    let other = File::open(&path).expect("open");
    for file in [&file, &other] {
        fadvise(file, 0, None, Advice::Random).expect("told");
    }
    let number = |file: &File| u32::try_from(file.as_raw_fd()).expect("a descriptor");
    let seen = stage.look(&path);
    let seen = seen.iter().find(|it| it.holders[0].has_descriptor(number(&file))).expect("it");
    let read = |file: &File, page: u64| {
        let at = page * page_size() as u64;
        std::os::unix::fs::FileExt::read_exact_at(file, &mut [0; 8], at).expect("read");
    };
    read(&file, 10);
    assert!(told(&misses).is_empty(), "no file is watched");
    misses.watch(seen.id).expect("watched");
    assert_eq!(misses.watched(), [seen.id]);
    for page in [20, 30, 20] {
        read(&file, page);
        read(&other, page + 5);
    }
    let mut first: Option<Miss> = None;
    misses.wait(Duration::from_secs(60), |miss| first = first.or(Some(miss))).expect("misses");
    let first = first.expect("a miss");
    assert_eq!((first.file, first.device, first.inode), (seen.id, seen.device, seen.inode));
    assert_eq!((first.index, first.request.get(), first.pid), (20, 1, std::process::id()));
    for page in [40, 50] {
        read(&file, page);
    }
    assert_eq!(told(&misses), [40, 50]);
    misses.unwatch(seen.id);
    read(&file, 60);
    assert_eq!((told(&misses), misses.watched()), (Vec::new(), Vec::new()));
    // A waiting thread can be woken.
    std::thread::scope(|scope| {
        scope.spawn(|| misses.wait(Duration::MAX, |_| ()).expect("woken"));
        misses.wake();
    });
    // Misses that do not fit are counted.
    misses.watch(seen.id).expect("watched");
    (100..2500).for_each(|page| read(&file, page));
    let kept = told(&misses).len() as u64;
    assert!(kept > 500 && misses.lost() > 0, "{kept} told, {} not", misses.lost());
    assert_eq!(kept + misses.lost(), 2400);
}
