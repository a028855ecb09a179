//! One load under one setting, in the kernel and in simulation.

use sim::{SimMachine, SimOutcome};
use units::Kib;

use super::kernel::{Bench, Done};
use super::loads::{Distance, Load};

/// Maximum relative difference of requests and bytes.
const COUNTS: f64 = 0.02;
/// Number of reads that evict everything else from a disk's own cache: more than its segments.
const ELSEWHERE: u64 = 24;

/// The results of one load under one setting, in the kernel and in simulation.
pub(crate) struct Pair {
    load: String,
    kib: u64,
    kernel: Vec<Done>,
    simulated: Vec<SimOutcome>,
}

impl Pair {
    pub(crate) fn run(
        stage: &(Bench, SimMachine),
        load: &Load,
        kib: u64,
        steps: Distance,
        seeds: u64,
    ) -> Self {
        let (bench, machine) = stage;
        let simulated = (machine.seed..machine.seed + seeds).map(|seed| {
            let machine = SimMachine { read_ahead: Kib::new(kib), seed, ..machine.clone() };
            sim::run(&machine, load.scenario(steps, &bench.starts)).expect("a run")
        });
        let simulated = simulated.collect();
        let mut this = Self { load: load.name.clone(), kib, kernel: Vec::new(), simulated };
        this.repeat(stage, load, steps);
        this
    }

    /// Runs the load in the kernel once more.
    pub(crate) fn repeat(&mut self, stage: &(Bench, SimMachine), load: &Load, steps: Distance) {
        let (bench, machine) = stage;
        bench.set_read_ahead(Kib::new(self.kib));
        let elsewhere = if machine.model.device.kind() == "hdd" { ELSEWHERE } else { 0 };
        self.kernel.push(bench.run(load.scenario(steps, &bench.starts), elsewhere));
    }

    /// Returns the relative error of the simulation in requests and bytes, by medians.
    fn counts_off(&self) -> [f64; 2] {
        let runs = &self.kernel;
        let off =
            |simulated: Vec<f64>, kernel: Vec<f64>| median(&simulated) / median(&kernel) - 1.0;
        let device = || self.simulated.iter().map(|run| run.device);
        let requests = sorted(runs.iter().map(|done| done.requests as f64));
        let bytes = sorted(runs.iter().map(|done| done.bytes as f64));
        [
            off(sorted(device().map(|device| device.requests as f64)), requests),
            off(sorted(device().map(|device| device.bytes.get() as f64)), bytes),
        ]
    }

    pub(crate) fn counts_hold(&self) -> bool {
        self.counts_off().iter().all(|off| off.abs() <= COUNTS)
    }

    /// Returns whether every kernel run lost page-cache pages, so that some were read twice.
    pub(crate) fn was_reclaimed(&self) -> bool {
        self.kernel.iter().all(|done| done.reclaimed > 0)
    }

    /// Returns the MiB/s of every run of the kernel, ascending.
    fn measured(&self) -> Vec<f64> {
        sorted(self.kernel.iter().map(|done| mib(done.useful) / done.seconds))
    }

    /// Returns the MiB/s of the simulation for each seed, ascending.
    fn predicted(&self) -> Vec<f64> {
        let rate = |run: &SimOutcome| mib(run.useful().get()) / run.elapsed.as_secs_f64();
        sorted(self.simulated.iter().map(rate))
    }

    /// Returns the relative error of the median prediction compared with the median run.
    pub(crate) fn rate_off(&self) -> f64 {
        median(&self.predicted()) / median(&self.measured()) - 1.0
    }

    /// Returns whether equal runs of the kernel differ by more than `tolerance`, and the prediction
    /// lies within their range.
    pub(crate) fn is_open(&self, tolerance: f64) -> bool {
        let (runs, predicted) = (self.measured(), median(&self.predicted()));
        let (least, most) = (runs[0], runs[runs.len() - 1]);
        most > (1.0 + tolerance) * least && (least..=most).contains(&predicted)
    }

    pub(crate) fn tell(&self) -> String {
        let [requests, bytes] = self.counts_off().map(|off| 100.0 * off);
        let (load, kib, done) = (&self.load, self.kib, &self.kernel[0]);
        let (runs, predicted) = (self.measured(), self.predicted());
        let requested: Vec<u64> = self.kernel.iter().map(|done| done.requests).collect();
        let reclaimed: Vec<u64> = self.kernel.iter().map(|done| done.reclaimed).collect();
        let note = match reclaimed.iter().sum::<u64>() {
            0 => String::new(),
            _ => format!("; pages reclaimed meanwhile: {reclaimed:?}"),
        };
        format!(
            "{load:10} {kib:5} KiB: {requested:?} requests {requests:+.1} %, {:9} bytes \
             {bytes:+.1} %, {:.2} MiB/s ({:.2} to {:.2}, {}) {:+.1} % ({:.2} to {:.2}, {}){note}",
            done.bytes,
            median(&runs),
            runs[0],
            runs[runs.len() - 1],
            runs.len(),
            100.0 * self.rate_off(),
            predicted[0],
            predicted[predicted.len() - 1],
            predicted.len(),
        )
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    f64::midpoint(low, high)
}
