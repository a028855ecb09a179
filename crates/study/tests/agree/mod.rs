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

/// One load under one setting, both ways.
struct Pair {
    load: String,
    kib: u64,
    kernel: Done,
    simulated: Outcome,
}

impl Pair {
    fn run(stage: &(Bench, Machine), load: &Load, kib: u64, steps: Distance) -> Self {
        let (bench, machine) = stage;
        bench.set_read_ahead(Kib::new(kib));
        let elsewhere = if machine.model.device.kind() == "hdd" { 48 } else { 0 };
        let kernel = bench.run(load.scenario(steps, &bench.starts), elsewhere);
        let machine = Machine { read_ahead: Kib::new(kib), ..machine.clone() };
        let simulated = sim::run(&machine, load.scenario(steps, &bench.starts)).expect("a run");
        Self { load: load.name.clone(), kib, kernel, simulated }
    }

    /// By how much the simulation is off in requests, bytes and throughput.
    fn off(&self) -> [f64; 3] {
        let off = |simulated: f64, kernel: f64| simulated / kernel - 1.0;
        let device = self.simulated.device;
        let rate = self.simulated.useful().get() as f64 / self.simulated.elapsed.as_secs_f64();
        [
            off(device.requests as f64, self.kernel.requests as f64),
            off(device.bytes.get() as f64, self.kernel.bytes as f64),
            off(rate, self.kernel.useful as f64 / self.kernel.seconds),
        ]
    }

    fn tell(&self) -> String {
        let [requests, bytes, rate] = self.off().map(|off| 100.0 * off);
        let (load, kib, done) = (&self.load, self.kib, &self.kernel);
        let mib_s = done.useful as f64 / f64::from(1 << 20) / done.seconds;
        format!(
            "{load:10} {kib:5} KiB: {:6} requests {requests:+.1} %, {:9} bytes {bytes:+.1} %, \
             {mib_s:.2} MiB/s {rate:+.1} % in {:.1} s",
            done.requests, done.bytes, done.seconds
        )
    }
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
            let pair = Pair::run(&stage, &load, kib, steps);
            println!("{}", pair.tell());
            let [requests, bytes, _] = pair.off();
            if requests.abs() > COUNTS || bytes.abs() > COUNTS {
                wrong.push(pair.tell());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares throughput; what is off is done again, since a machine can be busy for a moment.
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
            let mut pairs = Vec::new();
            while pairs.len() < 3 {
                let pair = Pair::run(&stage, &load, kib, steps);
                println!("{}", pair.tell());
                let holds = pair.off()[2].abs() <= THROUGHPUT;
                pairs.push(pair);
                if holds {
                    break;
                }
            }
            if pairs.iter().all(|pair| pair.off()[2].abs() > THROUGHPUT) {
                wrong.extend(pairs.iter().map(Pair::tell));
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
