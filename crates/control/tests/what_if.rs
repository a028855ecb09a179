//! Checks that replays of past accesses agree with the simulator.

use std::sync::Arc;

use foreread_control::what_if::{Candidate, DeviceTimes, Extra, FileView, PastAccess, predict};
use model::Spec;
use model::layout::FileLayout;
use policy::cache::PAGE;
use proptest::prelude::*;
use sim::{
    Costs, FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome,
    Start, run,
};
use units::{Bytes, Kib, Nanos, Pages};
use workload::{AccessClass, AccessMethod};

const FILE: Pages = Pages::new(1 << 16);
/// Largest relative difference between predicted and simulated waits: the simulator rounds service
/// times, and sends requests to the device one after another.
const TOLERANCE: f64 = 0.03;

/// Returns a volume without variation and limits, and its [`DeviceTimes`].
fn volume(latency_us: u64, mib_s: u64) -> (Spec, DeviceTimes) {
    let latency_ms = latency_us as f64 / 1e3;
    let text = format!(
        "cloud-ssd,latency_ms={latency_ms},latency_spread=0,iops=0,throughput_mib_s=0,\
         link_mib_s={mib_s}"
    );
    let fixed = Nanos::from_micros(latency_us);
    let page = Nanos::from_secs_f64(4096.0 / (mib_s as f64 * 1_048_576.0));
    let times = DeviceTimes { fixed, adjacent: fixed, page, parallel: 128 };
    (Spec::parse(&text).expect("a model"), times)
}

fn simulated(model: Spec, window: Pages, history: &[PastAccess], cache: Pages) -> SimOutcome {
    let bytes = |pages: u64| Pages::new(pages).to_bytes(PAGE);
    let step = |access: &PastAccess| ReadStep {
        open: 0,
        offset: bytes(access.first),
        length: bytes(access.pages),
        class: AccessClass::Stream,
        start: Start::After(access.think),
        advice: None,
    };
    let mapped = history.first().is_some_and(|access| access.mapped);
    let method = if mapped { AccessMethod::Mmap } else { AccessMethod::Read };
    let layout = FileLayout::Contiguous;
    let machine = SimMachine {
        read_ahead: Kib::new(4 * window.get()),
        cache: cache.to_bytes(PAGE),
        costs: Costs::NONE,
        ..SimMachine::new(model)
    };
    let size = FILE.to_bytes(PAGE);
    let scenario = Scenario {
        files: vec![FileOnDisk { size, start: Bytes::ZERO, layout, pieces: None }],
        opens: vec![SimOpenFile::new(0, method)],
        readers: vec![Reader { steps: history.iter().map(step).collect::<Vec<_>>().into_iter() }],
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("a simulation")
}

/// Generates runs of reads or faults at random places, forward, backward or in steps.
fn any_history() -> impl Strategy<Value = Vec<PastAccess>> {
    let run = (0..FILE.get() - 4096, 1_u64..24, 1_u64..12, -40_i64..40, 0_u64..2000);
    (prop::collection::vec(run, 1..20), any::<bool>()).prop_map(|(runs, mapped)| {
        let mut history = Vec::new();
        for (start, count, pages, step, think) in runs {
            let step = if step % 3 == 0 { pages.cast_signed() } else { step };
            for number in 0..count {
                let first = start.saturating_add_signed(step * number.cast_signed());
                let think = Nanos::from_micros(think);
                history.push(PastAccess { first, pages, think, mapped });
            }
        }
        history
    })
}

fn close(predicted: Nanos, simulated: Nanos) -> bool {
    let (predicted, simulated) = (predicted.as_secs_f64(), simulated.as_secs_f64());
    (predicted - simulated).abs() <= TOLERANCE * simulated + 20e-6
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn waits_and_device_reads_are_those_of_the_simulator(
        history in any_history(),
        window in prop::sample::select(vec![1_u64, 4, 16, 32, 64, 256, 272]),
        latency in prop::sample::select(vec![80_u64, 700, 9000]),
        rate in prop::sample::select(vec![60_u64, 500, 2000]),
    ) {
        let (model, device) = volume(latency, rate);
        let cache = Pages::new(1 << 18);
        let max_request = Pages::new(64);
        let file = FileView { pages: FILE, folio_limit: Some(9), max_request, cache };
        let window = Pages::new(window);
        let candidate = Candidate::window(window);
        let accesses = history.iter().copied();
        let predicted = predict(accesses, &file, &device, candidate, &Arc::default());
        let outcome = simulated(model, window, &history, cache);
        prop_assert_eq!(predicted.read, outcome.cache.read);
        prop_assert_eq!(predicted.reads, outcome.device.requests);
        prop_assert!(
            close(predicted.waited, outcome.stalled()),
            "predicted {}, simulated {}", predicted.waited, outcome.stalled()
        );
    }
}

#[test]
fn a_forward_trend_helps_where_the_kernel_does_not_read_ahead() {
    let (_, device) = volume(700, 500);
    let (cache, max_request) = (FILE, Pages::new(64));
    let file = FileView { pages: FILE, folio_limit: Some(9), max_request, cache };
    let gain = |window: u64, step: u64| {
        let think = Nanos::from_micros(100);
        let read = |number| PastAccess { first: number * step, pages: 4, think, mapped: false };
        let outcome = |extra| {
            let candidate = Candidate { window: Pages::new(window), extra };
            predict((0..512).map(read), &file, &device, candidate, &Arc::default())
        };
        let along = outcome(Extra::AlongTrend(Nanos::from_millis(25)));
        along.gain_over(&outcome(Extra::Nothing))
    };
    // POSIX_FADV_RANDOM is predicted as a window of one page.
    assert!(gain(1, 4) > 2.0, "{}", gain(1, 4));
    assert!((0.99..1.01).contains(&gain(32, 4)), "the kernel reads ahead: {}", gain(32, 4));
    assert!(gain(32, 100) > 2.0, "it does not foresee these: {}", gain(32, 100));
}
