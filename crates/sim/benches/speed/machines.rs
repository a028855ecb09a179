//! Workloads whose simulation is timed.

use foreread_sim::{Limits, Scenario, SimMachine, lay_out, run};
use units::{Bytes, Kib, Nanos};
use workload::{Pattern, Workload};

use super::clock::own_seconds;

pub struct Case {
    pub name: String,
    machine: SimMachine,
    workload: Workload,
    size: Bytes,
}

impl Case {
    fn new(words: &str, workload: &str, read_ahead: u64, size: Bytes) -> Self {
        let machine = SimMachine::parse(words).unwrap();
        let machine = SimMachine { read_ahead: Kib::new(read_ahead), ..machine };
        let name = format!("{workload} {} {read_ahead}K", machine.model.name);
        Self { name, machine, workload: named(workload), size }
    }

    /// Returns the simulated page references per second.
    pub fn rate(&self, page_by_page: bool, seconds: f64) -> f64 {
        let (mut references, mut spent) = (0, 0.0);
        let mut seed = 1;
        while spent < seconds {
            let machine = SimMachine { page_by_page, seed, ..self.machine.clone() };
            let sizes = vec![self.size; self.workload.files() as usize];
            let layout = machine.filesystem.layout;
            let files = lay_out(&sizes, self.workload.layout, layout, Bytes::ZERO);
            let mut scenario = Scenario::of_workload(&self.workload, files, seed).unwrap();
            scenario.limits = Limits { time: Nanos::MAX, ends_with_first: true };
            let begun = own_seconds();
            let outcome = run(&machine, scenario).unwrap();
            spent += own_seconds() - begun;
            references += outcome.cache.references.get();
            seed += 1;
        }
        references as f64 / spent
    }
}

/// Returns a workload of the standard suite, or `scans`: eight readers that scan their files in
/// reads of 64 KiB, as databases and copy programs do; one read in ten is a random read of 8 KiB.
/// 1.4 % of the page references of `scans` are random. In `mixed` of the suite, which reads streams
/// page by page to expose read-ahead, 10 % are.
fn named(name: &str) -> Workload {
    if name != "scans" {
        return Workload::named(name).unwrap();
    }
    let pattern = Pattern::Mixed {
        random_fraction: 0.1,
        random_block: Bytes::from_kib(8),
        same_open_file: false,
    };
    Workload { readers: 8, ..Workload::new(name, pattern, Bytes::from_kib(64)) }
}

/// Returns streams and mixed workloads on disks, arrays and flash, with caches that hold all data
/// and caches that do not.
pub fn cases() -> Vec<Case> {
    let gib = Bytes::from_gib(1);
    vec![
        Case::new("hdd-2008", "seq-1", 128, gib),
        Case::new("hdd-2008", "seq-8", 128, Bytes::from_mib(256)),
        Case::new("raid10-2008", "seq-8", 1024, gib),
        Case::new("raid10-2008,kernel=linux-on-demand,cache=512M", "seq-8", 1024, gib),
        Case::new("nvme,cache=512M", "seq-8", 1024, gib),
        Case::new("hdd-2008", "scans", 128, Bytes::from_mib(256)),
        Case::new("raid10-2008", "scans", 1024, gib),
        Case::new("nvme", "scans", 1024, gib),
        Case::new("nvme,cache=256M", "scans", 128, gib),
        Case::new("hdd-2008", "mixed", 128, Bytes::from_mib(256)),
        Case::new("raid10-2008", "mixed", 1024, gib),
        Case::new("nvme", "mixed", 1024, gib),
        Case::new("nvme,cache=256M", "mixed", 128, gib),
    ]
}
