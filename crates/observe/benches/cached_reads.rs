//! Measures the cost of the probes for a program that reads from the cache: the ratio of the rates
//! of a `pread(2)` loop with and without probes, in alternation. The probes sample no file, another
//! file, or the file that is read, which is selected again as often as in `auto`.
//!
//! The rates are per processor time, which other programs affect less than wall-clock time.

// The benchmark prints its results.
#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foreread_observe::Probes;
use host::DevNo;

const FILE_BYTES: u64 = 16 << 20;
const ROUNDS: usize = 81;
const READS: u64 = 120_000;
/// The usual interval between decisions of `auto`.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// The file that is sampled while the loop runs.
#[derive(Clone, Copy, Debug)]
enum Sampled {
    Nothing,
    OtherFile,
    ThisFile,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![7; FILE_BYTES as usize])?;
    for sampled in [Sampled::Nothing, Sampled::OtherFile, Sampled::ThisFile] {
        for bytes in [4096, 65536] {
            compare(&file, sampled, bytes)?;
        }
    }
    Ok(())
}

fn compare(file: &File, sampled: Sampled, bytes: usize) -> Result<(), Box<dyn std::error::Error>> {
    loop_over(file, bytes, READS / 10)?; // into the cache
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    let reads = READS * 4096 / bytes as u64;
    for round in 0..ROUNDS {
        let mut pair = [0.0; 2];
        // Each of the two is first in every other round.
        for probed in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let sampler = if probed == 1 { Some(Sampler::begin(file, sampled)?) } else { None };
            pair[probed] = loop_over(file, bytes, reads)?;
            drop(sampler);
        }
        rates.push(pair[0]);
        ratios.push(pair[1] / pair[0]);
    }
    ratios.sort_by(f64::total_cmp);
    // The order statistics that bound the 95 % confidence interval of the median.
    let off = (0.98 * (ROUNDS as f64).sqrt()) as usize;
    let (low, high) = (ratios[ROUNDS / 2 - off], ratios[ROUNDS / 2 + off]);
    println!(
        "cached pread of {} KiB, sampled {sampled:?}: {:.0} reads per processor second without \
         probes, with them {:.3} of that ({low:.3} to {high:.3}, {ROUNDS} pairs)",
        bytes / 1024,
        median(rates),
        median(ratios)
    );
    Ok(())
}

/// The probes, and a thread that drains them and selects the sampled file as often as `auto`.
struct Sampler {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    fn begin(file: &File, sampled: Sampled) -> Result<Self, Box<dyn std::error::Error>> {
        let mut probes = Probes::load()?;
        let files = files(file, sampled)?;
        if !probes.sample(&files)? && !files.is_empty() {
            return Err("this kernel reports no reads".into());
        }
        let ends = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !own.load(Ordering::Relaxed) {
                std::thread::sleep(SAMPLE_INTERVAL);
                probes.drain(drop);
                drop(probes.sample(&files));
            }
        });
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the files to sample. The other file is not read; its inode differs in the lowest bits.
fn files(file: &File, sampled: Sampled) -> io::Result<BTreeSet<(DevNo, u64)>> {
    let metadata = file.metadata()?;
    let (device, inode) = (DevNo::from_raw(metadata.dev()), metadata.ino());
    Ok(match sampled {
        Sampled::Nothing => BTreeSet::new(),
        Sampled::OtherFile => BTreeSet::from([(device, inode + 1)]),
        Sampled::ThisFile => BTreeSet::from([(device, inode)]),
    })
}

/// Returns the reads per second of processor time.
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
