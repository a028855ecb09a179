//! Tests that the real kernel and the simulator agree: the same loads on a virtual disk and in
//! simulation, under five settings of read-ahead.
//!
//! Requests and bytes are compared on a disk without service time, to within 2 %. Throughput is
//! compared to within 10 %, by default for two loads under one setting. All loads take an hour and
//! run only if `FOREREAD_AGREE` is `all` or the name of a load (`docs/testing.md`).

mod kernel;
mod loads;
mod pair;

use std::path::Path;

use host::Dirs;
use sim::{FileSystem, SimMachine};
use vdisk::{DiskConfig, Lifetime, ServerCommand, VirtualDisk};

use kernel::{Bench, Turn};
use loads::{Distance, Load};
use pair::Pair;

/// The read-ahead settings in KiB: small and large, of two families. No window is much larger than
/// 1 MiB: the kernel cuts larger windows of single pages, as mappings have them, after 256 memory
/// segments, at unpredictable places.
const SETTINGS: [u64; 5] = [16, 64, 128, 512, 1088];
/// The default loads and settings of the throughput tests, and the divisor of their steps. They
/// exclude multiple streams, because equal runs of the kernel differ with them.
const SHORT_LOADS: [&str; 2] = ["seq-1", "rand-pread"];
const SHORT_SETTINGS: [u64; 1] = [128];
const SHORT_DIVISOR: usize = 4;
/// Maximum relative difference of throughput.
const THROUGHPUT: f64 = 0.10;
/// Seeds of a prediction of throughput, and maximum runs of the kernel per load and setting.
const SEEDS: u64 = 9;
const REPEATS: usize = 5;

fn bench(base: &Path, words: &str, turn: Turn) -> (Bench, SimMachine) {
    let config = DiskConfig::parse(words).expect("a disk");
    let machine =
        SimMachine { filesystem: FileSystem::XFS, ..SimMachine::new(config.model.clone()) };
    let server = ServerCommand { program: super::helper(), args: vec!["serve".into()] };
    let disk = VirtualDisk::create(&Dirs::under(base), config, &server, Lifetime::DiesWithMe);
    let disk = disk.expect("a virtual disk");
    // The dilation slows the disk, but not the processors.
    let dilation = disk.dilation();
    let mut costs = machine.costs;
    for cost in [&mut costs.call_ns, &mut costs.copy_ns, &mut costs.submit_ns, &mut costs.fault_ns]
    {
        *cost /= dilation;
    }
    (Bench::new(disk, turn), SimMachine { costs, ..machine })
}

/// Returns the value of `FOREREAD_AGREE`: `None`, `all`, or the name of a load.
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
    // Larger requests than 512 KiB would be cut if single pages are scattered in memory.
    let stage = bench(dir.path(), "zero,max_request=256K,size=1G", Turn::Fair);
    let steps = if asked().is_some() { 4096 } else { 200 };
    let steps = Distance { streams: steps, others: steps };
    let mut wrong = Vec::new();
    for load in chosen() {
        for kib in SETTINGS {
            let mut pair = Pair::run(&stage, &load, kib, steps, 1);
            if !pair.counts_hold() {
                (1..REPEATS).for_each(|_| pair.repeat(&stage, &load, steps));
            }
            println!("{}", pair.tell());
            if !pair.counts_hold() {
                wrong.push(pair.tell());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares throughput and counts by medians of runs and seeds. Equal runs can differ: two readers
/// that share a link may synchronise, and pages may be reclaimed before use. So the kernel's run is
/// repeated if counts differ, or if throughput differs by more than half of the tolerance.
fn compare_throughput(name: &str, words: &str, steps: Distance) {
    let Some((_lock, dir)) = super::stage(name) else { return };
    if !can_run(name) {
        return;
    }
    let (mut loads, mut settings, mut steps) = (chosen(), &SETTINGS[..], steps);
    if asked().is_none() {
        loads.retain(|load| SHORT_LOADS.contains(&load.name.as_str()));
        assert_eq!(loads.len(), SHORT_LOADS.len(), "they are loads of the suite");
        settings = &SHORT_SETTINGS;
        steps.streams /= SHORT_DIVISOR;
        steps.others /= SHORT_DIVISOR;
    }
    let stage = bench(dir.path(), words, Turn::First);
    let mut wrong = Vec::new();
    for load in loads {
        for &kib in settings {
            let mut pair = Pair::run(&stage, &load, kib, steps, SEEDS);
            if !pair.counts_hold() || pair.rate_off().abs() > THROUGHPUT / 2.0 {
                (1..REPEATS).for_each(|_| pair.repeat(&stage, &load, steps));
            }
            println!("{}", pair.tell());
            // Extra requests for reclaimed pages are due to chance. Counts must hold on the disk
            // without service time, whose runs end before pages are reclaimed.
            let counts_hold = pair.counts_hold() || pair.was_reclaimed();
            let rate_holds = pair.rate_off().abs() <= THROUGHPUT;
            if counts_hold && !rate_holds && pair.is_open(THROUGHPUT) {
                println!("  equal runs of the kernel differ by more than that");
            } else if !counts_hold || !rate_holds {
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
    // So slow that this machine's processing time per request is negligible.
    compare_throughput(name, "ssd-sata,max_request=256K,size=1G,dilation=250", steps);
}

#[test]
fn host_the_kernel_is_as_fast_on_a_disk_as_the_simulator_says() {
    let name = "host_the_kernel_is_as_fast_on_a_disk_as_the_simulator_says";
    let steps = Distance { streams: 1024, others: 40 };
    // Slow for the same reason: processing time per request decides whether a revolution is lost.
    compare_throughput(name, "hdd-2008,max_request=512K,size=1G,dilation=20", steps);
}
