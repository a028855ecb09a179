//! Prints hashes of the outcomes of many simulations: every policy on every kind of device under
//! every kind of workload. An optimisation must not change any of them:
//!
//! `cargo run --release -p foreread-sim --example fingerprint > before`, and again after it.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hash::{DefaultHasher, Hash, Hasher};

use foreread_sim::{Arrival, FileSystem, Limits, Replacement, Scenario, SimMachine, lay_out, run};
use units::{Bytes, Kib, Nanos};
use workload::{AccessMethod, Hint, Pattern, Workload};

const MODELS: [&str; 8] =
    ["zero", "hdd-2008", "raid10-2008", "nvme", "ssd-sata", "cloud-hdd", "mirror-2010", "nfs"];
const LOADS: [&str; 6] = ["seq-1", "seq-8", "rand-pread", "rand-mmap", "mixed", "stride"];
const FILE_SIZE: Bytes = Bytes::from_mib(6);

/// Workloads besides those of the suite, for other paths through the simulator.
fn own_loads() -> Vec<Workload> {
    let mixed = |same_open_file| Pattern::Mixed {
        random_fraction: 0.3,
        random_block: Bytes::from_kib(8),
        same_open_file,
    };
    let new = |name, pattern, kib| Workload::new(name, pattern, Bytes::from_kib(kib));
    vec![
        Workload { readers: 3, ..new("mixed-one", mixed(true), 4) },
        Workload { readers: 5, ..new("mixed-two", mixed(false), 64) },
        Workload { readers: 4, ..new("interleaved", Pattern::Interleaved { streams: 4 }, 4) },
        new("backward", Pattern::Backward, 8),
        Workload { hint: Hint::Random, readers: 16, ..new("advised", Pattern::Uniform, 16) },
        Workload { think: Nanos::from_micros(70), ..new("slow", Pattern::Disorder { span: 8 }, 4) },
        Workload { access: AccessMethod::Mmap, ..new("mapped", mixed(false), 4) },
        new("odd", Pattern::Sequential, 3),
    ]
}

/// Machines with the same device and policy; cache, file system or queue differ.
fn machines(words: &str, policy: &str) -> Vec<SimMachine> {
    let base = SimMachine { policy: policy.parse().unwrap(), ..SimMachine::parse(words).unwrap() };
    let (small, lru) = (Bytes::from_mib(4), Replacement::Lru);
    vec![
        SimMachine { arrival: Some(Arrival::Requests), ..base.clone() },
        SimMachine { arrival: Some(Arrival::Windows), read_ahead: Kib::new(1024), ..base.clone() },
        SimMachine { cache: small, filesystem: FileSystem::EXT3, seed: 5, ..base.clone() },
        SimMachine { cache: small, arrival: Some(Arrival::Windows), seed: 7, ..base.clone() },
        SimMachine { cache: small, replacement: lru, read_ahead: Kib::new(0), seed: 9, ..base },
    ]
}

fn fingerprint(machine: &SimMachine, workload: &Workload) -> u64 {
    let sizes = vec![FILE_SIZE; workload.files() as usize];
    let layout = machine.filesystem.layout;
    let files = lay_out(&sizes, workload.layout, layout, Bytes::ZERO);
    let mut scenario = Scenario::of_workload(workload, files, machine.seed).unwrap();
    scenario.limits = Limits { time: Nanos::from_secs(3), ends_with_first: false };
    // A rejected machine, such as one whose cache is too small for its policy, also has a hash.
    let outcome = run(machine, scenario);
    let mut hasher = DefaultHasher::new();
    format!("{outcome:?}").hash(&mut hasher);
    hasher.finish()
}

fn main() {
    let mut loads: Vec<Workload> =
        LOADS.iter().map(|name| Workload::named(name).unwrap()).collect();
    loads.extend(own_loads());
    for model in MODELS {
        for entry in policy::REGISTRY {
            for (number, machine) in machines(model, entry.name).iter().enumerate() {
                for load in &loads {
                    let hash = fingerprint(machine, load);
                    println!("{model} {} {number} {} {hash:016x}", entry.name, load.name);
                }
            }
        }
    }
}
