//! Advice of readers has the same effects as on a kernel.

use foreread_sim::{
    FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start,
    lay_out, run,
};
use model::Spec;
use units::{Bytes, Kib, Nanos, Pages};
use workload::{AccessClass, AccessMethod, Layout, RangeAdvice};

const PAGE_BYTES: u64 = 4096;

fn step(page: u64, pages: u64, advice: Option<RangeAdvice>) -> ReadStep {
    ReadStep {
        open: 0,
        offset: Bytes::new(page * PAGE_BYTES),
        length: Bytes::new(pages * PAGE_BYTES),
        class: AccessClass::Stream,
        start: Start::After(Nanos::ZERO),
        advice,
    }
}

fn simulate(method: AccessMethod, readers: Vec<Vec<ReadStep>>) -> SimOutcome {
    let model = Spec::parse("hdd-2008").expect("a model");
    let machine = SimMachine { read_ahead: Kib::new(128), seed: 1, ..SimMachine::new(model) };
    let size = [Bytes::from_mib(64)];
    let rule = machine.filesystem.layout;
    let files: Vec<FileOnDisk> = lay_out(&size, Layout::Contiguous, rule, Bytes::ZERO);
    let scenario = Scenario {
        files,
        opens: vec![SimOpenFile::new(0, method)],
        readers: readers.into_iter().map(|it| Reader { steps: it.into_iter() }).collect(),
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
}

/// Returns reads of one page in every 64.
fn sparse(pages: u64) -> impl Iterator<Item = ReadStep> {
    (0..pages).map(|page| step(page * 64 + 7, 1, None))
}

#[test]
fn random_advice_keeps_a_stream_from_being_read_ahead_and_normal_allows_it_again() {
    let stream = || (0..1024).map(|page| step(page, 1, None));
    let with = |advice: &[RangeAdvice]| {
        let advice = advice.iter().map(|advice| step(0, 0, Some(*advice)));
        simulate(AccessMethod::Read, vec![advice.chain(stream()).collect()])
    };
    let plain = with(&[]);
    let random = with(&[RangeAdvice::Random]);
    let again = with(&[RangeAdvice::Random, RangeAdvice::Normal]);
    assert_eq!((plain.requests(), random.requests()), (1024, 1024), "advice is no request");
    assert!(random.device.requests >= 1024, "{random:?}");
    assert!(plain.device.requests < 64 && again.device.requests == plain.device.requests);
    let sequential = with(&[RangeAdvice::Sequential]);
    assert!(sequential.device.requests <= plain.device.requests, "windows of twice the size");
}

#[test]
fn what_is_called_for_is_there_and_what_is_not_needed_goes() {
    let will = RangeAdvice::WillNeed;
    let outcome = simulate(
        AccessMethod::Read,
        vec![vec![step(1000, 32, Some(will)), step(1010, 1, None), step(1000, 32, None)]],
    );
    assert_eq!(outcome.cache.read, Pages::new(32), "{outcome:?}");
    let dropped = simulate(
        AccessMethod::Read,
        vec![vec![step(0, 32, None), step(0, 0, Some(RangeAdvice::DontNeed)), step(0, 32, None)]],
    );
    let kept = simulate(AccessMethod::Read, vec![vec![step(0, 32, None), step(0, 32, None)]]);
    assert!(dropped.cache.read >= kept.cache.read + Pages::new(32), "{dropped:?}");
}

#[test]
fn reads_wait_while_the_queue_is_full_of_what_was_asked_for() {
    let ask = |pieces: u64| {
        let will = Some(RangeAdvice::WillNeed);
        let steps = (0..pieces).map(|piece| step(piece * 4099 % 16_000, 1, will));
        let later = Start::After(Nanos::from_millis(100));
        let read = ReadStep { start: later, ..step(16_100, 1, None) };
        simulate(AccessMethod::Read, vec![steps.collect(), vec![step(16_050, 1, None), read]])
    };
    let (few, many) = (ask(16), ask(600));
    assert_eq!(few.queue_wait(), Nanos::ZERO, "{few:?}");
    assert!(many.queue_wait() > Nanos::ZERO, "{many:?}");
    assert!(many.queue_wait() < many.settled.scaled(0.9), "that of advice does not count");
}

#[test]
fn random_advice_for_a_mapping_stops_read_around_and_fadvise_does_not() {
    let mapped = |advice: Option<RangeAdvice>| {
        let advice = advice.map(|advice| step(0, 0, Some(advice)));
        simulate(AccessMethod::Mmap, vec![advice.into_iter().chain(sparse(64)).collect()])
    };
    let (plain, random) = (mapped(None), mapped(Some(RangeAdvice::Random)));
    assert_eq!(random.cache.read, Pages::new(64), "{random:?}");
    assert!(plain.cache.read.get() > 16 * 64, "{plain:?}");
}

#[test]
fn readers_share_the_advice_of_an_open_file() {
    let stream = |from: u64| (0..256).map(move |page| step(from + page, 1, None));
    let advised = vec![step(0, 0, Some(RangeAdvice::Random))];
    let shared = simulate(AccessMethod::Read, vec![advised, stream(2000).collect()]);
    let alone = simulate(AccessMethod::Read, vec![stream(2000).collect()]);
    assert!(shared.device.requests > 8 * alone.device.requests, "{shared:?}");
}
