//! Misses that are answered: of the open file that is meant only, and as long as that is wanted.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_actuate::{AccessRules, ActuateFailure, Actuator, MissPrefetched, MissPrefetcher};
use observe::{Census, Misses, OpenFile, Probes};
use policy::MissPrefetch;
use sys::cachestat::cachestat;
use units::{Bytes, Pages};

use super::stage::{Reader, Stage};

const PAGE: u64 = 4096;

/// A file of which single pages are read, and what answers.
struct Answers {
    reader: Reader,
    /// The reader's own open file.
    file: File,
    meant: OpenFile,
    misses: Arc<Misses>,
    answerer: MissPrefetcher,
    _probes: Probes,
}

impl Answers {
    /// Runs of four pages are answered of what one process has open, as far as `limits` let it.
    fn begin(stage: &Stage, limits: impl FnOnce(&Reader) -> AccessRules) -> Self {
        stage.set_bdi(4);
        let reader = Reader::of(&stage.file("runs", 8 << 20));
        let actuator = Actuator::with(Census::begin().expect("a census"), limits(&reader));
        let meant = stage.one(&actuator, &reader);
        let file = reader.share();
        let mut probes = Probes::begin().expect("probes");
        let misses = Arc::new(probes.take_misses().expect("misses"));
        let answerer = MissPrefetcher::begin(actuator, Arc::clone(&misses)).expect("a thread");
        Self { reader, file, meant, misses, answerer, _probes: probes }
    }

    fn order(&self, meant: &OpenFile) {
        self.answerer.answer(meant.clone(), MissPrefetch::new(Pages::new(4)));
    }

    fn read(&self, page: u64) {
        self.file.read_exact_at(&mut [0; 8], page * PAGE).expect("read");
    }

    /// What came of answers, once it is this.
    fn until(&self, is_it: impl Fn(&MissPrefetched) -> bool) -> MissPrefetched {
        let begun = Instant::now();
        let mut all = MissPrefetched::default();
        while !is_it(&all) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it stays {all:?}");
            std::thread::sleep(Duration::from_millis(1));
            let new = self.answerer.report();
            assert!(new.failed.is_none(), "{new:?}");
            all.runs += new.runs;
            all.asked += new.asked;
            all.missed.extend(new.missed);
        }
        all
    }

    /// How many of eight pages from there on are cached.
    fn cached(&self, page: u64) -> u64 {
        let stat = cachestat(self.file.as_fd(), Bytes::new(page * PAGE), Bytes::new(8 * PAGE));
        stat.expect("cachestat").cached.get()
    }

    /// How many descriptors of this file this process has, beside the test's own.
    fn held(&self) -> usize {
        let census = Census::begin().expect("a census");
        let own = census.of_process(std::process::id()).expect("open files");
        let it = own.iter().find(|file| file.id == self.meant.id).expect("it is open");
        it.holders.len() - 1
    }

    fn wait_until_let_go(&self) {
        let begun = Instant::now();
        while self.held() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is held");
        }
    }
}

fn everybody(_: &Reader) -> AccessRules {
    AccessRules::default()
}

/// Whether the test called `name` is skipped, as pages are of another size here.
fn skips(name: &str) -> bool {
    let skips = rustix::param::page_size() as u64 != PAGE;
    if skips {
        println!("SKIP {name}: pages are not of {PAGE} bytes");
    }
    skips
}

#[test]
fn host_a_miss_is_answered_until_it_is_not_wanted() {
    let name = "host_a_miss_is_answered_until_it_is_not_wanted";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let answers = Answers::begin(&stage, everybody);
    answers.read(100);
    assert_eq!(answers.cached(100), 1, "nothing was ordered");
    answers.order(&answers.meant);
    answers.read(200);
    let done = answers.until(|done| done.runs == 1);
    assert_eq!((done.asked, answers.cached(200)), (Bytes::new(3 * PAGE), 4));
    // The last page of the file has nothing behind it.
    answers.read(2046);
    assert_eq!(answers.until(|done| done.runs == 1).asked, Bytes::new(PAGE));
    answers.wait_until_let_go();
    // It is taken again when it is needed.
    answers.read(300);
    answers.until(|done| done.runs == 1);
    assert_eq!(answers.cached(300), 4);
    answers.answerer.clear();
    assert_eq!((answers.misses.watched(), answers.answerer.files()), (Vec::new(), Vec::new()));
    answers.wait_until_let_go();
    answers.read(400);
    answers.order(&answers.meant);
    answers.answerer.stop(&[answers.meant.id]);
    answers.read(500);
    answers.order(&answers.meant);
    let Answers { answerer, misses, file, reader, .. } = answers;
    drop(answerer);
    assert_eq!(misses.watched(), []);
    file.read_exact_at(&mut [0; 8], 600 * PAGE).expect("read");
    for page in [400, 500, 600] {
        let stat = cachestat(file.as_fd(), Bytes::new(page * PAGE), Bytes::new(8 * PAGE));
        assert_eq!(stat.expect("cachestat").cached, Pages::new(1), "page {page}");
    }
    drop(reader);
}

#[test]
fn host_what_is_not_allowed_is_not_answered() {
    let name = "host_what_is_not_allowed_is_not_answered";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let denied = |reader: &Reader| {
        let rule = format!("pid:{}", reader.pid()).parse().expect("a rule");
        AccessRules { allow: Vec::new(), deny: vec![rule] }
    };
    let answers = Answers::begin(&stage, denied);
    answers.order(&answers.meant);
    answers.read(100);
    let done = answers.until(|done| !done.missed.is_empty());
    assert!(matches!(done.missed[..], [(_, ActuateFailure::Denied(_))]), "{done:?}");
    assert_eq!((answers.misses.watched(), answers.answerer.files()), (Vec::new(), Vec::new()));
    answers.read(200);
    assert_eq!((answers.cached(100), answers.cached(200), answers.held()), (1, 1, 0));
    // Who gets a hand on it later is found when open files are looked at.
    let allowed = |reader: &Reader| {
        let rule = format!("pid:{}", reader.pid()).parse().expect("a rule");
        AccessRules { allow: vec![rule], deny: Vec::new() }
    };
    drop(answers);
    let answers = Answers::begin(&stage, allowed);
    answers.order(&answers.meant);
    answers.read(300);
    answers.until(|done| done.runs == 1);
    let heir = Reader::with(answers.reader.share());
    let census = Census::begin().expect("a census");
    let mut now = census.open_files(&observe::OpenFileFilter::default()).expect("open files");
    now.iter_mut().for_each(|file| file.holders.retain(|it| it.pid != std::process::id()));
    assert!(now.iter().any(|file| file.holders.iter().any(|it| it.pid == heir.pid())));
    answers.answerer.seen(&now);
    answers.read(400);
    let done = answers.until(|done| !done.missed.is_empty());
    assert!(matches!(done.missed[..], [(_, ActuateFailure::NotAllowed)]), "{done:?}");
    assert_eq!(answers.cached(400), 1);
}

#[test]
fn host_another_file_at_its_address_is_not_answered() {
    let name = "host_another_file_at_its_address_is_not_answered";
    let Some(stage) = Stage::set(name).filter(|_| !skips(name)) else { return };
    let answers = Answers::begin(&stage, everybody);
    let is_gone = |answers: &Answers, page: u64| {
        answers.read(page);
        let done = answers.until(|done| !done.missed.is_empty());
        assert!(matches!(done.missed[..], [(_, ActuateFailure::Gone)]), "{done:?}");
        assert_eq!((answers.misses.watched(), answers.answerer.files()), (Vec::new(), Vec::new()));
        assert_eq!((answers.cached(page), answers.held()), (1, 0));
    };
    // As if another file had been meant, which was closed, and this one has its address.
    let mut other = answers.meant.clone();
    other.inode += 1;
    answers.order(&other);
    is_gone(&answers, 100);
    // The file that was meant, by descriptors that are none of it.
    let mut other = answers.meant.clone();
    other.holders.iter_mut().for_each(|holder| holder.fd = 1);
    answers.order(&other);
    is_gone(&answers, 200);
    // One that has gone is not among those that are seen.
    answers.order(&answers.meant);
    answers.read(300);
    answers.until(|done| done.runs == 1);
    answers.answerer.seen(&[]);
    assert_eq!((answers.misses.watched(), answers.answerer.files()), (Vec::new(), Vec::new()));
    answers.wait_until_let_go();
    answers.read(400);
    assert_eq!(answers.cached(400), 1);
}
