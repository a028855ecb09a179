//! What watching costs a program that reads from the cache: a `pread(2)` loop with and without
//! probes, in turns, and the ratio of the two.
//!
//! It counts processor time, which other programs on the machine disturb less than the clock.

// Results are for whoever runs the benchmark.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use foreread_observe::Probes;

const FILE_BYTES: u64 = 16 << 20;
const ROUNDS: usize = 81;
const READS: u64 = 120_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![7; FILE_BYTES as usize])?;
    for bytes in [4096, 65536] {
        loop_over(&file, bytes, READS / 10)?; // into the cache
        let (mut rates, mut ratios) = (Vec::new(), Vec::new());
        let reads = READS * 4096 / bytes as u64;
        for round in 0..ROUNDS {
            let mut pair = [0.0; 2];
            // Each goes first every other time.
            for probed in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let probes = if probed == 1 { Some(Probes::begin()?) } else { None };
                pair[probed] = loop_over(&file, bytes, reads)?;
                drop(probes);
            }
            rates.push(pair[0]);
            ratios.push(pair[1] / pair[0]);
        }
        ratios.sort_by(f64::total_cmp);
        // The interval of order statistics that holds the median nineteen times of twenty.
        let off = (0.98 * (ROUNDS as f64).sqrt()) as usize;
        let (low, high) = (ratios[ROUNDS / 2 - off], ratios[ROUNDS / 2 + off]);
        println!(
            "cached pread of {} KiB: {:.0} reads per processor second without probes, with them \
             {:.3} of that ({low:.3} to {high:.3}, {ROUNDS} pairs)",
            bytes / 1024,
            median(rates),
            median(ratios)
        );
    }
    Ok(())
}

/// Reads per second of processor time.
fn loop_over(file: &File, bytes: usize, reads: u64) -> io::Result<f64> {
    let mut buffer = vec![0; bytes];
    let begun = processor_time();
    for number in 0..reads {
        file.read_exact_at(&mut buffer, number * bytes as u64 % FILE_BYTES)?;
    }
    Ok(reads as f64 / (processor_time() - begun))
}

fn processor_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
