//! Compares the read engine with fio, on the same file in the same run.
//!
//! `cargo bench -p foreread-bench --bench engine_vs_fio [-- DIR [SIZE [REPEATS [CASE]]]]`
//!
//! Both programs read a whole file once with one thread: sequentially in blocks of 64 KiB and
//! randomly in blocks of 4 KiB, from the page cache and cold. Cold random reads stop after 1 s: if
//! most neighbours of a page have been read, the kernel mistakes random reads for a stream and
//! reads ahead, and how often depends on the order of the reads, not on the program. Runs
//! alternate, and so does the program that goes first. The table shows medians. The comparison is
//! fair because:
//!
//! - fio runs with `ioengine=psync direct=0 fadvise_hint=0 thread=1 random_generator=lfsr`: it
//!   reads each block once, in an order as random as foreread's. (fio's default random map takes
//!   the next free block after a collision; the kernel takes the resulting short runs for streams
//!   and reads ahead, which saves I/Os.) fio keeps its default latency statistics and clock;
//!   foreread keeps histograms.
//! - Requests per second cover only the reading, without start-up, as fio and foreread each count
//!   I/Os and runtime. CPU time is that of the reading thread from `getrusage(2)` in both.
//! - `cachestat(2)` verifies that a cold run starts with no page of the file in the page cache, and
//!   a cached run with all of them.

#![allow(clippy::print_stdout)] // It prints a table.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use foreread_bench::{CacheStart, Cancel, Dataset, LayOutOptions, Sample, TrialOptions, run_trial};
use host::{Root, Storage};
use serde_json::Value;
use units::{Bytes, Nanos};
use workload::{Pattern, Workload};

type Problem = Box<dyn std::error::Error>;

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    pattern: Pattern,
    block: Bytes,
    cold: bool,
}

const SEQUENTIAL: Bytes = Bytes::from_kib(64);
const RANDOM: Bytes = Bytes::from_kib(4);
const CASES: [Case; 4] = [
    Case {
        name: "sequential 64 KiB, cached",
        pattern: Pattern::Sequential,
        block: SEQUENTIAL,
        cold: false,
    },
    Case { name: "random 4 KiB, cached", pattern: Pattern::Uniform, block: RANDOM, cold: false },
    Case {
        name: "sequential 64 KiB, cold",
        pattern: Pattern::Sequential,
        block: SEQUENTIAL,
        cold: true,
    },
    Case { name: "random 4 KiB, cold", pattern: Pattern::Uniform, block: RANDOM, cold: true },
];

/// Duration of cold random reads, in seconds.
const COLD_RANDOM_SECONDS: u64 = 1;
/// Time limit of all other cases, in seconds; longer than one read of the whole file takes.
const UNLIMITED_SECONDS: u64 = 3600;

impl Case {
    /// Returns the time limit in seconds; a run also stops at the end of the file.
    fn seconds(&self) -> u64 {
        if self.cold && self.pattern == Pattern::Uniform {
            COLD_RANDOM_SECONDS
        } else {
            UNLIMITED_SECONDS
        }
    }
}

#[derive(Clone, Copy)]
struct Measured {
    requests_per_second: f64,
    cpu_per_request_ns: f64,
}

struct Arena {
    storage: Storage,
    dataset: Dataset,
    file: PathBuf,
    size: Bytes,
}

impl Arena {
    fn lay_out(dir: &Path, size: Bytes) -> Result<Self, Problem> {
        let storage = host::resolve(&Root::system(), dir)?;
        let workload = workload(&CASES[0], size);
        let options = LayOutOptions { file_size: size, seed: 1, cancel: Cancel::new() };
        let dataset = Dataset::lay_out(dir, &[workload], &options, &mut |_| {})?;
        let home = dataset.directory().ok_or("no files of our own")?;
        let name = format!("contiguous-{}-00000.data", size.get());
        let file = home.join(name);
        Ok(Self { storage, dataset, file, size })
    }

    /// Empties or fills the page cache, and verifies the result.
    fn prepare(&self, case: &Case) -> Result<(), Problem> {
        let page = sys::page_size();
        let wanted = if case.cold { Bytes::ZERO } else { self.size };
        let mut cached = Bytes::ZERO;
        for _ in 0..5 {
            let mut file = File::open(&self.file)?;
            if case.cold {
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            } else {
                std::io::copy(&mut file, &mut std::io::sink())?;
            }
            let found = sys::cachestat::cachestat(file.as_fd(), Bytes::ZERO, self.size)?;
            cached = found.cached.to_bytes(page);
            if cached == wanted {
                return Ok(());
            }
        }
        Err(format!("{cached} of the file are cached, not {wanted}").into())
    }

    fn foreread(&self, case: &Case, seed: u64) -> Result<Measured, Problem> {
        self.prepare(case)?;
        let start = if case.cold { CacheStart::Cold } else { CacheStart::AsFound };
        let options = TrialOptions {
            duration: Nanos::from_secs(case.seconds()),
            seed,
            start,
            ..TrialOptions::default()
        };
        let part = Dataset::existing(&self.file)?;
        let workload = workload(case, self.size);
        let root = Root::system();
        let sample: Sample = run_trial(&root, &self.storage, &part, &workload, &options)?;
        let cpu = (sample.cpu.user + sample.cpu.system).get() as f64;
        Ok(Measured {
            requests_per_second: sample.requests_per_second(),
            cpu_per_request_ns: cpu / sample.requests() as f64,
        })
    }

    fn fio(&self, case: &Case, seed: u64) -> Result<Measured, Problem> {
        self.prepare(case)?;
        let pattern = if case.pattern == Pattern::Uniform { "randread" } else { "read" };
        let output = Command::new("fio")
            .args(["--name=peer", "--ioengine=psync", "--direct=0", "--fadvise_hint=0"])
            .args(["--thread=1", "--numjobs=1", "--readonly", "--invalidate=0"])
            .args(["--allow_file_create=0", "--random_generator=lfsr"])
            .arg("--output-format=json")
            .arg(format!("--filename={}", self.file.display()))
            .arg(format!("--size={}", self.size.get()))
            .arg(format!("--runtime={}", case.seconds()))
            .arg(format!("--bs={}", case.block.get()))
            .arg(format!("--randseed={}", seed + 1))
            .arg(format!("--rw={pattern}"))
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let job = &report["jobs"][0];
        let number = |value: &Value| value.as_f64().ok_or("fio's report lacks a number");
        let requests = number(&job["read"]["total_ios"])?;
        // fio's CPU percentages refer to this time.
        let seconds = number(&job["read"]["runtime"])? / 1e3;
        let cpu = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0 * seconds;
        Ok(Measured {
            requests_per_second: number(&job["read"]["iops"])?,
            cpu_per_request_ns: cpu * 1e9 / requests,
        })
    }
}

fn workload(case: &Case, size: Bytes) -> Workload {
    Workload { file_size: Some(size), ..Workload::new("peer", case.pattern, case.block) }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

fn compare(arena: &Arena, case: &Case, repeats: u64) -> Result<(), Problem> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // One uncounted run of each program loads its pages and raises the CPU's clock frequency.
    arena.foreread(case, 0)?;
    arena.fio(case, 0)?;
    for repeat in 1..=repeats {
        if repeat % 2 == 1 {
            ours.push(arena.foreread(case, repeat)?);
            theirs.push(arena.fio(case, repeat)?);
        } else {
            theirs.push(arena.fio(case, repeat)?);
            ours.push(arena.foreread(case, repeat)?);
        }
    }
    let of = |runs: &[Measured], value: fn(&Measured) -> f64| median(runs.iter().map(value));
    let rate = |run: &Measured| run.requests_per_second;
    let cpu = |run: &Measured| run.cpu_per_request_ns / 1e3;
    let (our_rate, their_rate) = (of(&ours, rate), of(&theirs, rate));
    let (our_cpu, their_cpu) = (of(&ours, cpu), of(&theirs, cpu));
    println!(
        "{:<26} {our_rate:>10.0} {their_rate:>10.0} {:>6.3} {our_cpu:>10.3} {their_cpu:>10.3} \
         {:>6.3}",
        case.name,
        our_rate / their_rate,
        our_cpu / their_cpu,
    );
    Ok(())
}

fn run() -> Result<(), Problem> {
    // Cargo adds the argument `--bench`.
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let dir = match words.first() {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir()?,
    };
    let size = words.get(1).map_or(Ok(Bytes::from_gib(2)), |size| size.parse())?;
    let repeats: u64 = words.get(2).map_or(Ok(7), |repeats| repeats.parse())?;
    if Command::new("fio").arg("--version").output().is_err() {
        println!("SKIP engine_vs_fio: fio is not installed");
        return Ok(());
    }
    let arena = Arena::lay_out(&dir, size)?;
    println!("{size} in {}, medians of {repeats} alternating runs", dir.display());
    println!(
        "{:<26} {:>21} {:>6} {:>21} {:>6}",
        "", "requests/s", "ratio", "CPU µs/request", "ratio"
    );
    println!(
        "{:<26} {:>10} {:>10} {:>6} {:>10} {:>10} {:>6}",
        "", "foreread", "fio", "≥ 1", "foreread", "fio", "≤ 1"
    );
    let only = words.get(3).map_or("", String::as_str);
    let mut cases = CASES.iter().filter(|case| case.name.contains(only));
    let result = cases.try_for_each(|case| compare(&arena, case, repeats));
    arena.dataset.remove()?;
    result
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
