use model::Spec;
use proptest::prelude::*;
use units::{Bytes, Kib, Pages};
use workload::{AccessClass, AccessMethod};

use super::*;
use crate::machine::Costs;
use crate::scenario::{Limits, Reader, Scenario, Start};
use crate::{FileSystem, SimMachine, lay_out, run};

fn machine_with(model: &str, cache: Bytes) -> SimMachine {
    SimMachine { cache, costs: Costs::TODAY, ..SimMachine::new(Spec::parse(model).unwrap()) }
}

/// Returns the work of readers that each read pages of one file.
fn work(readers: &[Vec<u64>], size: Bytes, shared: bool) -> OracleWork {
    let files = if shared { 1 } else { readers.len() };
    let sizes = vec![size; files];
    let rule = FileSystem::PLAIN.layout;
    let files = lay_out(&sizes, workload::Layout::Contiguous, rule, Bytes::from_mib(1));
    let open = |file: u32| SimOpenFile::new(file, AccessMethod::Read);
    let steps = |(reader, pages): (u32, &Vec<u64>)| {
        let step = |page: &u64| ReadStep {
            open: reader,
            offset: Bytes::new(page * 4096),
            length: Bytes::from_kib(4),
            class: AccessClass::Stream,
            start: Start::After(Nanos::ZERO),
            advice: None,
        };
        pages.iter().map(step).collect::<Vec<ReadStep>>()
    };
    let opens = (0..readers.len() as u32).map(|it| open(if shared { 0 } else { it })).collect();
    OracleWork { files, opens, readers: (0..).zip(readers).map(steps).collect() }
}

fn simulated(machine: &SimMachine, work: &OracleWork) -> Nanos {
    let scenario = Scenario {
        files: work.files.clone(),
        opens: work.opens.clone(),
        readers: work.readers.iter().map(|it| Reader { steps: it.clone().into_iter() }).collect(),
        limits: Limits::default(),
    };
    run(machine, scenario).unwrap().elapsed
}

#[test]
fn min_misses_are_those_of_the_textbook() {
    // Belady's own example: three frames, seven faults; four frames, six.
    let references = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
    assert_eq!(min_misses(&references, 3), 7);
    assert_eq!(min_misses(&references, 4), 6);
    assert_eq!(min_misses(&references, 5), 5);
    // A loop of four pages in a cache of three: four misses, then every third reference.
    let lap: Vec<u32> = (0..12).map(|it| it % 4).collect();
    assert_eq!(min_misses(&lap, 3), 4 + 2);
    assert_eq!((min_misses(&lap, 0), min_misses::<u32>(&[], 3)), (12, 0));
}

#[test]
fn switching_pays_when_a_change_costs_less_than_it_gains() {
    let ms = |it: u64| Nanos::from_millis(it);
    let costs = vec![vec![ms(10), ms(50)], vec![ms(50), ms(10)], vec![ms(10), ms(50)]];
    let free = best_switching(&costs, Nanos::ZERO).unwrap();
    assert_eq!((free.time, free.settings.clone()), (ms(30), vec![0, 1, 0]));
    assert_eq!(free.changes(), 2);
    let dear = best_switching(&costs, ms(30)).unwrap();
    assert_eq!((dear.time, dear.changes()), (ms(70), 0));
    assert_eq!(best_switching(&costs, ms(15)).unwrap().time, ms(60));
    assert_eq!(best_switching(&[], ms(1)), None);
}

#[test]
fn headroom_is_a_share_of_what_can_be_gained() {
    let ms = |it: u64| Nanos::from_millis(it);
    assert_eq!(headroom_captured(ms(100), ms(70), ms(40)), Some(0.5));
    assert_eq!(headroom_captured(ms(100), ms(130), ms(40)), Some(-0.5));
    assert_eq!(headroom_captured(ms(100), ms(100), ms(100)), None);
}

#[test]
fn the_bound_is_the_larger_of_device_and_processor() {
    let machine = machine_with("hdd-2008", Bytes::from_mib(64));
    let pages: Vec<u64> = (0..1024).collect();
    let scan = work(std::slice::from_ref(&pages), Bytes::from_mib(8), false);
    let once = lower_bound(&machine, &scan);
    assert_eq!(once.fetches, Pages::new(1024));
    let least = machine.model.peak().throughput.time_for(Bytes::from_mib(4));
    assert!(once.device >= least && once.time() == once.device, "{once:?}");
    let again: Vec<u64> = pages.iter().chain(&pages).copied().collect();
    let twice = lower_bound(&machine, &work(&[again], Bytes::from_mib(8), false));
    assert_eq!((twice.fetches, twice.device), (once.fetches, once.device));
    assert!(twice.processor > once.processor);
}

#[test]
fn a_stream_on_a_disk_is_read_at_the_speed_of_the_disk() {
    let machine = machine_with("hdd-2008", Bytes::from_mib(256));
    let pages: Vec<u64> = (0..8192).collect();
    let work = work(&[pages], Bytes::from_mib(32), false);
    let bound = lower_bound(&machine, &work).time();
    let seen = clairvoyant(&machine, &work).unwrap();
    assert_eq!(seen.fetches, Pages::new(8192));
    assert!(seen.time >= bound, "{seen:?} {bound}");
    assert!(seen.time.get() < bound.get() * 14 / 10, "{} over {bound}", seen.time);
    // No algorithm without knowledge of the future is faster.
    for window in [16, 128, 1024, 4096] {
        let machine = SimMachine { read_ahead: Kib::new(window), ..machine.clone() };
        let time = simulated(&machine, &work);
        assert!(time.get() * 103 / 100 >= seen.time.get(), "{window}: {time} {}", seen.time);
    }
}

#[test]
fn eight_streams_are_read_in_long_runs() {
    let machine = machine_with("hdd-2008", Bytes::from_mib(256));
    let pages: Vec<u64> = (0..2048).collect();
    let work = work(&vec![pages; 8], Bytes::from_mib(8), false);
    let seen = clairvoyant(&machine, &work).unwrap();
    assert!(seen.run > machine.model.host().max_request, "{seen:?}");
    for window in [128, 1024, 8192] {
        let machine = SimMachine { read_ahead: Kib::new(window), ..machine.clone() };
        let time = simulated(&machine, &work);
        assert!(time.get() * 1001 / 1000 >= seen.time.get(), "{window}: {time} {}", seen.time);
    }
}

#[test]
fn a_loop_larger_than_the_cache_is_fetched_as_belady_would() {
    let machine = machine_with("nvme", Bytes::from_mib(1));
    let pages: Vec<u64> = (0..3 * 320).map(|it| it % 320).collect();
    let work = work(std::slice::from_ref(&pages), Bytes::from_mib(2), false);
    let seen = clairvoyant(&machine, &work).unwrap();
    let fewest = min_misses(&pages, 256);
    assert_eq!(lower_bound(&machine, &work).fetches, Pages::new(fewest));
    let fetches = seen.fetches.get();
    // A repeated fetch costs nothing on flash here, so any number from the minimum up is valid.
    assert!((fewest..=3 * 320).contains(&fetches), "{fetches} of at least {fewest}");
    let slow = machine_with("hdd-2008", Bytes::from_mib(1));
    let seen = clairvoyant(&slow, &work).unwrap();
    assert!(seen.fetches.get() < 2 * fewest, "{seen:?} of at least {fewest}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn clairvoyance_never_beats_the_bound_and_reads_everything(
        readers in proptest::collection::vec(
            proptest::collection::vec(0u64..600, 1..120), 1..4,
        ),
        cache_pages in 64u64..1024,
        shared in any::<bool>(),
        flash in any::<bool>(),
    ) {
        let model = if flash { "nvme" } else { "hdd-2008" };
        let machine = machine_with(model, Bytes::new(cache_pages * 4096));
        let work = work(&readers, Bytes::from_mib(4), shared);
        let bound = lower_bound(&machine, &work);
        let seen = clairvoyant(&machine, &work).unwrap();
        prop_assert!(seen.time >= bound.time(), "{:?} {:?}", seen, bound);
        prop_assert!(seen.fetches >= bound.fetches, "{:?} {:?}", seen, bound);
        prop_assert!(simulated(&machine, &work) >= bound.time());
    }

    #[test]
    fn the_best_switching_is_found(
        costs in proptest::collection::vec(
            proptest::collection::vec((1u64..100).prop_map(Nanos::new), 3), 1..6,
        ),
        change in (0u64..60).prop_map(Nanos::new),
    ) {
        let found = best_switching(&costs, change).unwrap();
        let phases = costs.len() as u32;
        let time = |path: &[usize]| {
            let phases: u64 = path.iter().zip(&costs).map(|(at, phase)| phase[*at].get()).sum();
            let changes = path.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
            phases + changes * change.get()
        };
        let path = |mut number: usize| -> Vec<usize> {
            (0..phases).map(|_| { let at = number % 3; number /= 3; at }).collect()
        };
        let best = (0..3usize.pow(phases)).map(|number| time(&path(number))).min().unwrap();
        prop_assert_eq!(found.time.get(), best);
        prop_assert_eq!(time(&found.settings), best);
    }
}
