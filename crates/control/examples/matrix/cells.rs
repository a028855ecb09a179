//! Runs one workload on one device with each static window and with the policy under test.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use foreread_control::POLICIES;
use model::Spec;
use sim::{SimMachine, SimOutcome};
use units::{Bytes, Kib, Nanos};

use super::works::MatrixCase;

pub const DEVICES: &[&str] =
    &["hdd-2008", "raid10-2008", "cloud-hdd", "cloud-ssd", "ssd-sata", "nvme", "nfs"];
/// Sizes of the static windows in KiB: powers of two, and 17 · 2ⁿ pages of 4 KiB.
pub const WINDOWS: &[u64] =
    &[4, 16, 64, 128, 256, 512, 544, 1024, 1088, 2048, 2176, 4096, 4352, 8192];
/// Index of the kernel's default, 128 KiB, in [`WINDOWS`].
pub const DEFAULT_PLACE: usize = 3;

#[derive(Clone, Debug)]
pub struct MatrixCell {
    /// Throughput of all readers in MiB/s. If streams and random reads belong to readers that do
    /// not wait for each other, the geometric mean of the throughputs of both classes.
    pub rate: f64,
    /// Bytes read from the device ÷ bytes that readers requested, without priming and without
    /// read-ahead pages that still awaited their reader at the end.
    pub amplification: f64,
    /// Bytes read to prime files ÷ bytes that readers requested.
    pub primed: f64,
    pub stalls: u64,
    /// Outcome of the simulation; `None` for a cell from the file of remembered results.
    outcome: Option<Box<SimOutcome>>,
}

impl MatrixCell {
    fn of(outcome: SimOutcome, apart: bool) -> Self {
        let rate = |bytes: Bytes| bytes.as_mib() / outcome.elapsed.as_secs_f64().max(1e-9);
        let classes = (rate(outcome.stream.useful), rate(outcome.random.useful));
        let amplification = outcome.amplification_unprimed().unwrap_or(0.0);
        Self {
            rate: if apart { (classes.0 * classes.1).sqrt() } else { rate(outcome.useful()) },
            amplification,
            primed: outcome.primed().get() as f64 / outcome.useful().get().max(1) as f64,
            stalls: outcome.readers.iter().map(|reader| reader.stalls).sum(),
            outcome: Some(Box::new(outcome)),
        }
    }

    /// Prints exact counts and the first 60 decisions; only the main figures if remembered.
    pub fn explain(&self, name: &str) {
        let Some(outcome) = &self.outcome else {
            println!(
                "  {name}: {:.2} MiB/s, {:.2} times the bytes, {} stalls",
                self.rate, self.amplification, self.stalls
            );
            return;
        };
        let (device, cache) = (&outcome.device, &outcome.cache);
        println!(
            "  {name}: {:.2} MiB/s in {:.1} s; {} requests of {:.0} KiB, {} wanted {}, {} stalls \
             of {:.2} ms; pages: {} read, {} used, {} late, {} missed, {} evicted unused, {} \
             primed; {} windows of {:.0} pages",
            self.rate,
            outcome.elapsed.as_secs_f64(),
            device.requests,
            device.bytes.get() as f64 / 1024.0 / (device.requests.max(1)) as f64,
            device.bytes,
            outcome.useful(),
            self.stalls,
            outcome.stalled().as_millis_f64() / (self.stalls.max(1)) as f64,
            cache.read,
            cache.used,
            cache.late,
            cache.misses,
            cache.thrashed,
            outcome.policy_stats.primed,
            cache.windows,
            cache.read.get() as f64 / cache.windows.max(1) as f64,
        );
        for (at, line) in outcome.policy_stats.decisions.iter().take(60) {
            println!("    {:.1} s {line}", at.as_secs_f64());
        }
    }
}

/// Results of static windows from earlier runs of this example, stored in a file. They do not
/// depend on the controller under development.
pub struct RememberedCells {
    known: BTreeMap<String, MatrixCell>,
    file: Option<Mutex<std::fs::File>>,
}

impl RememberedCells {
    /// Reads the results in this file, and creates it if it is missing; empty without a path.
    ///
    /// # Errors
    ///
    /// If the file cannot be created or read.
    pub fn of(path: Option<PathBuf>) -> std::io::Result<Self> {
        let Some(path) = path else { return Ok(Self { known: BTreeMap::new(), file: None }) };
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
        let text = std::fs::read_to_string(&path)?;
        let known = text.lines().filter_map(|line| {
            let (key, numbers) = line.split_once('\t')?;
            let numbers: Vec<f64> =
                numbers.split('\t').map(str::parse).collect::<Result<_, _>>().ok()?;
            let [rate, amplification, stalls] = numbers[..] else { return None };
            let stalls = stalls as u64;
            Some((
                key.to_owned(),
                MatrixCell { rate, amplification, primed: 0.0, stalls, outcome: None },
            ))
        });
        Ok(Self { known: known.collect(), file: Some(Mutex::new(file)) })
    }

    fn cell(&self, key: &str, run: impl FnOnce() -> MatrixCell) -> MatrixCell {
        if let Some(cell) = self.known.get(key) {
            return cell.clone();
        }
        let cell = run();
        if let Some(mut file) = self.file.as_ref().and_then(|file| file.lock().ok()) {
            let (rate, read, stalls) = (cell.rate, cell.amplification, cell.stalls);
            // A result that cannot be stored is simulated again in the next run.
            let _ = writeln!(file, "{key}\t{rate}\t{read}\t{stalls}");
        }
        cell
    }
}

#[derive(Debug)]
pub struct MatrixOptions {
    /// Policy that is compared with static windows.
    pub policy: String,
    /// Simulated time limit of a cell, unless its workload sets its own.
    pub time: Nanos,
    pub seed: u64,
}

#[derive(Debug)]
pub struct MatrixRow {
    pub name: String,
    pub statics: Vec<MatrixCell>,
    pub own: MatrixCell,
    pub auto: MatrixCell,
}

impl MatrixRow {
    pub fn of(
        device: &str,
        case: MatrixCase,
        how: &MatrixOptions,
        remembered: &RememberedCells,
    ) -> Self {
        let work = case.work();
        let base = machine(device, how.seed);
        let data = base.cache * 4;
        let cell = |words: &str, kib: u64| {
            let policy = POLICIES.parse(words).expect("a policy");
            let machine = SimMachine { policy, read_ahead: Kib::new(kib), ..base.clone() };
            MatrixCell::of(work.run(&machine, data, how.time), work.apart)
        };
        let fixed = |kib: u64| {
            let name = case.name();
            let key = format!("{device} {name} {kib} {} {}", how.time.get(), how.seed);
            remembered.cell(&key, || cell("linux-6.18", kib))
        };
        let statics: Vec<MatrixCell> = WINDOWS.iter().map(|kib| fixed(*kib)).collect();
        let own = fixed(own_default(device, &base));
        Self {
            name: case.name().to_owned(),
            statics,
            own,
            auto: cell(&how.policy, WINDOWS[DEFAULT_PLACE]),
        }
    }

    pub fn default(&self) -> &MatrixCell {
        &self.statics[DEFAULT_PLACE]
    }

    /// Returns the index of the smallest static window within 0.01 % of the highest throughput.
    pub fn best(&self) -> usize {
        let most = self.statics.iter().map(|cell| cell.rate).fold(0.0, f64::max);
        self.statics.iter().position(|cell| cell.rate >= most * 0.9999).unwrap_or(DEFAULT_PLACE)
    }

    /// Returns the throughput with `auto` ÷ the throughput with the default window.
    pub fn gain(&self) -> f64 {
        self.auto.rate / self.default().rate.max(1e-9)
    }
}

/// Returns the kernel's own default in KiB: twice the largest request if rotational, else 128.
fn own_default(device: &str, machine: &SimMachine) -> u64 {
    let rotational = matches!(device, "hdd-2008" | "raid10-2008" | "cloud-hdd");
    let largest = machine.model.host().max_request.to_kib_floor().get();
    if rotational { (2 * largest).clamp(128, 8192) } else { 128 }
}

fn machine(device: &str, seed: u64) -> SimMachine {
    let fast = matches!(device, "nvme" | "ssd-sata" | "nfs");
    let spec = Spec::parse(device).expect("a model");
    let cache = if fast { Bytes::from_gib(2) } else { Bytes::from_gib(1) };
    SimMachine { cache, seed, ..SimMachine::new(spec) }
}
