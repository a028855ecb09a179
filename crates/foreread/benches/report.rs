//! Measures `foreread report` for simulated studies of 1,000 and 10,000 trials. The aim is one
//! second for the first.
//!
//! Each trial has the same data as a measured one: histograms, counters, time lines. The trials are
//! copies of a hundred simulated ones, which `report` cannot detect.
#![allow(clippy::unwrap_used)] // a benchmark may panic
#![allow(clippy::print_stdout)] // its numbers are its result
#![allow(dead_code)] // the browser tests share more code than this needs

#[path = "../tests/program/mod.rs"]
mod program;
#[path = "../tests/browser/scratch.rs"]
mod scratch;

use std::time::{Duration, Instant};

use scratch::Scratch;

/// Required by the shared scratch module; only the tests use it.
const PUBLISHED: &str = include_str!("../../study/tests/data/published-tables.json");

const ROUNDS: usize = 7;
/// Time limit of a report of a thousand trials.
const AIM: Duration = Duration::from_secs(1);

fn main() {
    for copies in [10, 100] {
        let scratch = Scratch::new();
        scratch.hundred_trials();
        scratch.multiply(copies);
        let mut rounds: Vec<(Duration, f64)> = (0..ROUNDS)
            .map(|_| {
                let (begun, cpu) = (Instant::now(), children_cpu_seconds());
                scratch.foreread(&["report", "1", "-o", "report.html"]);
                (begun.elapsed(), children_cpu_seconds() - cpu)
            })
            .collect();
        rounds.sort_by_key(|(wall, _)| *wall);
        let (wall, cpu) = rounds[ROUNDS / 2];
        let size = std::fs::metadata(scratch.path("report.html")).unwrap().len();
        println!(
            "report of {} trials: median {:.3} s of wall time ({cpu:.2} s of processor time), \
             {:.2} MB, {:.2} of the second that 1,000 trials may take",
            copies * 100,
            wall.as_secs_f64(),
            size as f64 / 1e6,
            wall.as_secs_f64() / AIM.as_secs_f64(),
        );
    }
}

/// Returns the processor time of child processes that have exited, in seconds (proc(5): `cutime`
/// and `cstime`, in hundredths).
fn children_cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
