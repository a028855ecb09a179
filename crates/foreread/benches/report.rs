//! How long `foreread report` takes: a simulated study of 1,000 trials, and one of 10,000. The aim
//! is a second for the first.
//!
//! Every trial has all that a measured one has: histograms, counters, time lines. They are a
//! hundred simulated ones, each many times over, which the report does not know.
#![allow(clippy::unwrap_used)] // a benchmark may panic
#![allow(clippy::print_stdout)] // its numbers are its result
#![allow(dead_code)] // what the tests of the browser share with it is more than it needs

#[path = "../tests/program/mod.rs"]
mod program;
#[path = "../tests/browser/scratch.rs"]
mod scratch;

use std::time::{Duration, Instant};

use scratch::Scratch;

/// Used by the tests only, in addition to their scratch directory.
const PUBLISHED: &str = include_str!("../../study/tests/data/published-tables.json");

const ROUNDS: usize = 7;
/// What a report of a thousand trials may take.
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

/// Processor time of the processes that were waited for, in seconds (proc(5): `cutime` and
/// `cstime`, in hundredths).
fn children_cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
