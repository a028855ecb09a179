//! Tests that misses of a file trigger prefetches only while it is watched or awaited.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_actuate::{
    AccessRules, ActuateFailure, Actuator, Directory, MissPrefetched, MissPrefetcher,
};
use host::Root;
use observe::{Census, Handle, Misses, OpenFile, Probes};
use policy::MissPrefetch;
use sys::cachestat::cachestat;
use sys::mapping::FileMapping;
use units::{Bytes, Pages};

use super::stage::{Reader, Stage};

const PAGE: u64 = 4096;

/// A file of which single pages are read, and its prefetcher.
struct Fixture {
    reader: Reader,
    /// The reader's own open file.
    file: File,
    watched: OpenFile,
    misses: Arc<Misses>,
    prefetcher: MissPrefetcher,
    _probes: Probes,
}

impl Fixture {
    /// Starts a reader of one file, and a prefetcher with these access rules.
    fn new(stage: &Stage, limits: impl FnOnce(&Reader) -> AccessRules) -> Self {
        stage.set_bdi(4);
        let reader = Reader::of(&stage.file("runs", 8 << 20));
        let actuator = Actuator::new(Census::load().expect("a census"), limits(&reader));
        let watched = stage.one(&actuator, &reader);
        let file = reader.share();
        let mut probes = Probes::load().expect("probes");
        let misses = Arc::new(probes.take_misses().expect("misses"));
        let prefetcher = MissPrefetcher::start(actuator, Arc::clone(&misses)).expect("a thread");
        Self { reader, file, watched, misses, prefetcher, _probes: probes }
    }

    /// Watches a file for runs of four pages.
    fn watch(&self, file: &OpenFile) {
        self.prefetcher.watch(file.clone(), MissPrefetch::of_runs(Pages::new(4)));
    }

    fn read(&self, page: u64) {
        self.file.read_exact_at(&mut [0; 8], page * PAGE).expect("read");
    }

    /// Waits until the sum of the reports fulfils a condition.
    fn wait_for(&self, is_done: impl Fn(&MissPrefetched) -> bool) -> MissPrefetched {
        let start = Instant::now();
        let mut all = MissPrefetched::default();
        while !is_done(&all) {
            assert!(start.elapsed() < Duration::from_secs(60), "no change: {all:?}");
            std::thread::sleep(Duration::from_millis(1));
            let new = self.prefetcher.report();
            assert!(new.failed.is_none(), "{new:?}");
            all.runs += new.runs;
            all.asked += new.asked;
            all.missed.extend(new.missed);
        }
        all
    }

    /// Returns how many of the eight pages from `page` on are cached.
    fn cached(&self, page: u64) -> u64 {
        let stat = cachestat(self.file.as_fd(), Bytes::new(page * PAGE), Bytes::new(8 * PAGE));
        stat.expect("cachestat").cached.get()
    }

    /// Counts the duplicates of the file in this process, without the test's own descriptor.
    fn duplicates(&self) -> usize {
        let census = Census::load().expect("a census");
        let own = census.of_process(std::process::id()).expect("open files");
        let file = own.iter().find(|file| file.id == self.watched.id).expect("open");
        file.holders.len() - 1
    }

    fn wait_until_closed(&self) {
        let start = Instant::now();
        while self.duplicates() > 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "a duplicate stays open");
        }
    }
}

fn no_rules(_: &Reader) -> AccessRules {
    AccessRules::default()
}

/// Returns whether the test `name` is skipped because the page size is not [`PAGE`].
fn skips(name: &str) -> bool {
    let skips = rustix::param::page_size() as u64 != PAGE;
    if skips {
        println!("SKIP {name}: the page size is not {PAGE} bytes");
    }
    skips
}

#[test]
fn host_a_call_is_prefetched_as_a_whole_on_its_first_miss() {
    let name = "host_a_call_is_prefetched_as_a_whole_on_its_first_miss";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let fixture = Fixture::new(&stage, no_rules);
    let most = Pages::new(1024);
    fixture.prefetcher.watch(fixture.watched.clone(), MissPrefetch::of_calls(most));
    let call = |pages: u64, page: u64| {
        let mut buffer = vec![0; (pages * PAGE) as usize];
        fixture.file.read_exact_at(&mut buffer, page * PAGE).expect("read");
    };
    call(700, 100);
    let asked = fixture.wait_for(|done| done.runs == 1).asked;
    assert_eq!(asked, Bytes::new(700 * PAGE), "more than a request of the device");
    call(1025, 1000);
    // The kernel may have read beyond the ends of the calls.
    call(1, 10);
    assert_eq!(fixture.wait_for(|done| done.runs == 1).asked, Bytes::new(PAGE), "not the larger");
}

#[test]
fn host_a_miss_is_prefetched_while_its_file_is_watched() {
    let name = "host_a_miss_is_prefetched_while_its_file_is_watched";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let fixture = Fixture::new(&stage, no_rules);
    fixture.read(100);
    assert_eq!(fixture.cached(100), 1, "not watched yet");
    fixture.watch(&fixture.watched);
    fixture.read(200);
    let done = fixture.wait_for(|done| done.runs == 1);
    assert_eq!((done.asked, fixture.cached(200)), (Bytes::new(3 * PAGE), 4));
    // The run ends at the end of the file.
    fixture.read(2046);
    assert_eq!(fixture.wait_for(|done| done.runs == 1).asked, Bytes::new(PAGE));
    fixture.wait_until_closed();
    // The next miss makes a new duplicate.
    fixture.read(300);
    fixture.wait_for(|done| done.runs == 1);
    assert_eq!(fixture.cached(300), 4);
    fixture.prefetcher.clear();
    assert_eq!((fixture.misses.watched(), fixture.prefetcher.files()), (Vec::new(), Vec::new()));
    fixture.wait_until_closed();
    fixture.read(400);
    fixture.watch(&fixture.watched);
    fixture.prefetcher.stop(&[fixture.watched.id]);
    fixture.read(500);
    fixture.watch(&fixture.watched);
    let Fixture { prefetcher, misses, file, reader, .. } = fixture;
    drop(prefetcher);
    assert_eq!(misses.watched(), []);
    file.read_exact_at(&mut [0; 8], 600 * PAGE).expect("read");
    for page in [400, 500, 600] {
        let stat = cachestat(file.as_fd(), Bytes::new(page * PAGE), Bytes::new(8 * PAGE));
        assert_eq!(stat.expect("cachestat").cached, Pages::new(1), "page {page}");
    }
    drop(reader);
}

#[test]
fn host_a_denied_file_is_not_prefetched_on_misses() {
    let name = "host_a_denied_file_is_not_prefetched_on_misses";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let denied = |reader: &Reader| {
        let rule = format!("pid:{}", reader.pid()).parse().expect("a rule");
        AccessRules { allow: Vec::new(), deny: vec![rule] }
    };
    let fixture = Fixture::new(&stage, denied);
    fixture.watch(&fixture.watched);
    fixture.read(100);
    let done = fixture.wait_for(|done| !done.missed.is_empty());
    assert!(matches!(done.missed[..], [(_, ActuateFailure::Denied(_))]), "{done:?}");
    assert_eq!((fixture.misses.watched(), fixture.prefetcher.files()), (Vec::new(), Vec::new()));
    fixture.read(200);
    assert_eq!((fixture.cached(100), fixture.cached(200), fixture.duplicates()), (1, 1, 0));
    // A process that gets the open file later is found in the next list of open files.
    let allowed = |reader: &Reader| {
        let rule = format!("pid:{}", reader.pid()).parse().expect("a rule");
        AccessRules { allow: vec![rule], deny: Vec::new() }
    };
    drop(fixture);
    let fixture = Fixture::new(&stage, allowed);
    fixture.watch(&fixture.watched);
    fixture.read(300);
    fixture.wait_for(|done| done.runs == 1);
    let second_reader = Reader::with(fixture.reader.share());
    let census = Census::load().expect("a census");
    let mut now = census.open_files(&observe::OpenFileFilter::default()).expect("open files");
    now.iter_mut().for_each(|file| file.holders.retain(|it| it.pid != std::process::id()));
    assert!(now.iter().any(|file| file.holders.iter().any(|it| it.pid == second_reader.pid())));
    fixture.prefetcher.seen(&now);
    fixture.read(400);
    let done = fixture.wait_for(|done| !done.missed.is_empty());
    assert!(matches!(done.missed[..], [(_, ActuateFailure::NotAllowed)]), "{done:?}");
    assert_eq!(fixture.cached(400), 1);
}

#[test]
fn host_another_file_at_the_same_address_is_not_prefetched() {
    let name = "host_another_file_at_the_same_address_is_not_prefetched";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let fixture = Fixture::new(&stage, no_rules);
    let is_gone = |fixture: &Fixture, page: u64| {
        fixture.read(page);
        let done = fixture.wait_for(|done| !done.missed.is_empty());
        assert!(matches!(done.missed[..], [(_, ActuateFailure::Gone)]), "{done:?}");
        assert_eq!(
            (fixture.misses.watched(), fixture.prefetcher.files()),
            (Vec::new(), Vec::new())
        );
        assert_eq!((fixture.cached(page), fixture.duplicates()), (1, 0));
    };
    // Simulates that the watched file was closed and this file got its address.
    let mut other = fixture.watched.clone();
    other.inode += 1;
    fixture.watch(&other);
    is_gone(&fixture, 100);
    // The watched file, with a descriptor that refers to another file.
    let mut other = fixture.watched.clone();
    other.holders.iter_mut().for_each(|it| it.handle = Handle::Descriptor { fd: 1 });
    fixture.watch(&other);
    is_gone(&fixture, 200);
    // A file that is not in the list of open files is no longer watched.
    fixture.watch(&fixture.watched);
    fixture.read(300);
    fixture.wait_for(|done| done.runs == 1);
    fixture.prefetcher.seen(&[]);
    assert_eq!((fixture.misses.watched(), fixture.prefetcher.files()), (Vec::new(), Vec::new()));
    fixture.wait_until_closed();
    fixture.read(400);
    assert_eq!(fixture.cached(400), 1);
}

#[test]
fn host_the_next_miss_of_a_file_is_prefetched_while_it_is_awaited() {
    let name = "host_the_next_miss_of_a_file_is_prefetched_while_it_is_awaited";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let fixture = Fixture::new(&stage, no_rules);
    let paths = ["read", "mapped", "ignored", "other"].map(|name| stage.file(name, 64 << 10));
    let files = paths.each_ref().map(|path| File::open(path).expect("open"));
    let inode = |file: &File| file.metadata().expect("a file").ino();
    let path = stage.point().join("runs");
    let path = path.to_str().expect("a path");
    let (root, rules) = (Root::system(), AccessRules::default());
    let directory = Directory::find(&root, &rules, &fixture.watched, path, None);
    let directory = Arc::new(directory.expect("a directory"));
    // Eight pages from the second one on.
    let range = (Bytes::new(PAGE), Bytes::new(8 * PAGE));
    let wanted: Vec<_> = files[..3].iter().map(|file| (inode(file), range)).collect();
    fixture.prefetcher.await_files(&directory, &wanted);
    let cached = |file: &File| {
        let stat = cachestat(file.as_fd(), Bytes::ZERO, Bytes::new(16 * PAGE));
        stat.expect("cachestat").cached.get()
    };
    let read = |file: &File| file.read_exact_at(&mut [0; 8], 12 * PAGE).expect("read");
    let prefetched = || fixture.wait_for(|done| done.runs == 1).asked;
    read(&files[0]);
    assert_eq!((prefetched(), cached(&files[0])), (Bytes::new(8 * PAGE), 9));
    let mapping = FileMapping::new(files[1].as_fd(), Bytes::ZERO, Bytes::new(16 * PAGE));
    let copied = mapping.expect("a mapping").copy_to(12 * PAGE as usize, &mut [0; 8]);
    assert_eq!(copied, Ok(()));
    assert_eq!((prefetched(), cached(&files[1])), (Bytes::new(8 * PAGE), 9));
    fixture.prefetcher.await_files(&directory, &[(inode(&files[3]), range)]);
    read(&files[2]);
    read(&files[3]);
    assert_eq!((prefetched(), cached(&files[3])), (Bytes::new(8 * PAGE), 9));
    assert_eq!(cached(&files[2]), 1, "it was awaited no longer");
    fixture.prefetcher.await_files(&directory, &[(inode(&files[2]), range)]);
    fixture.prefetcher.ignore_files(fixture.watched.device);
    files[2].read_exact_at(&mut [0; 8], 14 * PAGE).expect("read");
    fixture.watch(&fixture.watched);
    fixture.read(200);
    assert_eq!(prefetched(), Bytes::new(3 * PAGE), "another miss, after that one");
    assert_eq!(cached(&files[2]), 2);
}
