//! The real kernel and the simulator do the same: the same loads on a virtual disk and in
//! simulation, under five settings of read-ahead.
//!
//! Requests and bytes are compared on a disk that takes no time, to within 2 %. Throughput is
//! compared, to within 10 %, only where `FOREREAD_AGREE` is `all` or the name of a load, since that
//! takes half an hour and a machine that has time for it.

mod kernel;
mod loads;

use std::path::Path;

use host::Dirs;
use sim::{FileSystem, Machine, Outcome};
use units::Kib;
use vdisk::{Config, Lifetime, ServerCommand, VirtualDisk};

use kernel::{Bench, Done};
use loads::{Distance, Load};

/// The read-ahead settings in KiB: large and small, of two families. Windows of more than a
/// megabyte of single pages, as mappings have them, the kernel cuts where it has used up 256 pieces
/// of memory, wherever that is.
const SETTINGS: [u64; 5] = [16, 64, 128, 512, 1088];
/// By how much counts and throughput may differ.
const COUNTS: f64 = 0.02;
const THROUGHPUT: f64 = 0.10;
/// Seeds of a prediction of throughput, and runs of the kernel where one is not enough.
const SEEDS: u64 = 9;
const REPEATS: usize = 5;

fn bench(base: &Path, words: &str) -> (Bench, Machine) {
    let config = Config::parse(words).expect("a disk");
    let machine = Machine { filesystem: FileSystem::XFS, ..Machine::new(config.model.clone()) };
    let server = ServerCommand { program: super::helper(), args: vec!["serve".into()] };
    let disk = VirtualDisk::create(&Dirs::under(base), config, &server, Lifetime::DiesWithMe);
    let disk = disk.expect("a virtual disk");
    // What processors take is not slowed down with the disk.
    let dilation = disk.dilation();
    let mut costs = machine.costs;
    for cost in [&mut costs.call_ns, &mut costs.copy_ns, &mut costs.submit_ns, &mut costs.fault_ns]
    {
        *cost /= dilation;
    }
    (Bench::new(disk), Machine { costs, ..machine })
}

/// One load under one setting, both ways; the first run of each is the one whose requests count.
struct Pair {
    load: String,
    kib: u64,
    kernel: Vec<Done>,
    simulated: Vec<Outcome>,
}

impl Pair {
    fn run(stage: &(Bench, Machine), load: &Load, kib: u64, steps: Distance, seeds: u64) -> Self {
        let (bench, machine) = stage;
        let simulated = (machine.seed..machine.seed + seeds).map(|seed| {
            let machine = Machine { read_ahead: Kib::new(kib), seed, ..machine.clone() };
            sim::run(&machine, load.scenario(steps, &bench.starts)).expect("a run")
        });
        let simulated = simulated.collect();
        let mut this = Self { load: load.name.clone(), kib, kernel: Vec::new(), simulated };
        this.repeat(stage, load, steps);
        this
    }

    /// Lets the kernel do it once more.
    fn repeat(&mut self, stage: &(Bench, Machine), load: &Load, steps: Distance) {
        let (bench, machine) = stage;
        bench.set_read_ahead(Kib::new(self.kib));
        let elsewhere = if machine.model.device.kind() == "hdd" { 48 } else { 0 };
        self.kernel.push(bench.run(load.scenario(steps, &bench.starts), elsewhere));
    }

    /// By how much the simulation is off in requests and bytes.
    fn counts_off(&self) -> [f64; 2] {
        let off = |simulated: f64, kernel: f64| simulated / kernel - 1.0;
        let (device, kernel) = (self.simulated[0].device, &self.kernel[0]);
        [
            off(device.requests as f64, kernel.requests as f64),
            off(device.bytes.get() as f64, kernel.bytes as f64),
        ]
    }

    /// MiB/s of every run of the kernel, least first.
    fn measured(&self) -> Vec<f64> {
        sorted(self.kernel.iter().map(|done| mib(done.useful) / done.seconds))
    }

    /// The same of the simulation, one for each seed.
    fn predicted(&self) -> Vec<f64> {
        let rate = |run: &Outcome| mib(run.useful().get()) / run.elapsed.as_secs_f64();
        sorted(self.simulated.iter().map(rate))
    }

    /// By how much the median prediction is off the median run.
    fn rate_off(&self) -> f64 {
        median(&self.predicted()) / median(&self.measured()) - 1.0
    }

    /// Whether equal runs of the kernel differ by more than a prediction may, and the prediction
    /// is one of those that they could be.
    fn is_open(&self) -> bool {
        let (runs, predicted) = (self.measured(), median(&self.predicted()));
        let (least, most) = (runs[0], runs[runs.len() - 1]);
        most > (1.0 + THROUGHPUT) * least && (least..=most).contains(&predicted)
    }

    fn tell(&self) -> String {
        let [requests, bytes] = self.counts_off().map(|off| 100.0 * off);
        let (load, kib, done) = (&self.load, self.kib, &self.kernel[0]);
        let (runs, predicted) = (self.measured(), self.predicted());
        format!(
            "{load:10} {kib:5} KiB: {:6} requests {requests:+.1} %, {:9} bytes {bytes:+.1} %, \
             {:.2} MiB/s ({:.2} to {:.2}, {}) {:+.1} % ({:.2} to {:.2}, {})",
            done.requests,
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

/// What was asked for by the environment: nothing, `all`, or the name of a load.
fn asked() -> Option<String> {
    std::env::var("FOREREAD_AGREE").ok().filter(|word| !word.is_empty())
}

fn chosen() -> Vec<Load> {
    let asked = asked().filter(|word| word != "all");
    let wanted = |load: &Load| asked.as_ref().is_none_or(|name| load.name == *name);
    Load::all().into_iter().filter(wanted).collect()
}

fn can_run(name: &str) -> bool {
    match vdisk::availability(vdisk::Filesystem::Xfs) {
        Ok(()) => true,
        Err(why) => {
            println!("SKIP {name}: {why}");
            false
        }
    }
}

#[test]
fn host_the_kernel_asks_of_the_disk_what_the_simulator_says() {
    let name = "host_the_kernel_asks_of_the_disk_what_the_simulator_says";
    let Some((_lock, dir)) = super::stage(name) else { return };
    if !can_run(name) {
        return;
    }
    // Requests of more than 512 KiB would be cut where single pages are scattered in memory.
    let stage = bench(dir.path(), "zero,max_request=256K,size=1G");
    let steps = if asked().is_some() { 4096 } else { 200 };
    let steps = Distance { streams: steps, others: steps };
    let mut wrong = Vec::new();
    for load in chosen() {
        for kib in SETTINGS {
            let pair = Pair::run(&stage, &load, kib, steps, 1);
            println!("{}", pair.tell());
            let [requests, bytes] = pair.counts_off();
            if requests.abs() > COUNTS || bytes.abs() > COUNTS {
                wrong.push(pair.tell());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares throughput: medians of runs and of seeds. Two readers that share a link can fall into
/// step or not, and then equal runs differ; so what is off by half of what it may is repeated.
fn compare_throughput(name: &str, words: &str, steps: Distance, least_kib: u64) {
    if asked().is_none() {
        return println!("SKIP {name}: FOREREAD_AGREE is not `all`");
    }
    let Some((_lock, dir)) = super::stage(name) else { return };
    if !can_run(name) {
        return;
    }
    let stage = bench(dir.path(), words);
    let mut wrong = Vec::new();
    for load in chosen() {
        for kib in SETTINGS.into_iter().filter(|kib| *kib >= least_kib) {
            let mut pair = Pair::run(&stage, &load, kib, steps, SEEDS);
            if pair.rate_off().abs() > THROUGHPUT / 2.0 {
                (1..REPEATS).for_each(|_| pair.repeat(&stage, &load, steps));
            }
            println!("{}", pair.tell());
            if pair.rate_off().abs() <= THROUGHPUT {
                continue;
            }
            if pair.is_open() {
                println!("  equal runs of the kernel differ by more than that");
            } else {
                wrong.push(pair.tell());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn host_the_kernel_is_as_fast_on_flash_as_the_simulator_says() {
    let name = "host_the_kernel_is_as_fast_on_flash_as_the_simulator_says";
    let steps = Distance { streams: 1024, others: 100 };
    // So slow that what this machine needs for a request does not count.
    compare_throughput(name, "ssd-sata,max_request=256K,size=1G,dilation=250", steps, 0);
}

#[test]
fn host_the_kernel_is_as_fast_on_a_disk_as_the_simulator_says() {
    let name = "host_the_kernel_is_as_fast_on_a_disk_as_the_simulator_says";
    let steps = Distance { streams: 4096, others: 40 };
    // With smaller windows a microsecond decides whether a revolution is lost; larger requests the
    // kernel would cut where single pages are scattered in memory.
    compare_throughput(name, "hdd-2008,max_request=512K,size=1G,dilation=10", steps, 128);
}
