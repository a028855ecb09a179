//! Reads a file with one flaw, or with --fixed without it: fault PATTERN FILE [--fixed].

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const SIZE: u64 = 2 << 20;
const RUN: usize = 20 * 4096;

unsafe extern "C" {
    fn readahead(fd: i32, offset: i64, count: usize) -> isize;
}

fn backward(file: &File, fixed: bool) -> std::io::Result<()> {
    let length = if fixed { 65536 } else { 3809 };
    let mut buffer = vec![0; length as usize];
    let pieces = SIZE / length;
    for piece in 0..pieces {
        let piece = if fixed { piece } else { pieces - 1 - piece };
        file.read_exact_at(&mut buffer, piece * length)?; // line of backward
    }
    Ok(())
}

/// Returns a pseudo-random number that is the same in each run.
fn scattered(index: u64) -> u64 {
    let word = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ word >> 31
}

/// Reads short runs at random places with a buffered reader; fixed, it requests each run at once.
fn ramp(file: &File, fixed: bool) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(4096, file);
    let mut buffer = [0; 4096];
    for run in 0..100_u64 {
        let start = scattered(run) % 800 * RUN as u64;
        if fixed {
            // SAFETY: the descriptor is open, and no pointer is passed.
            unsafe { readahead(file.as_raw_fd(), start as i64, RUN) };
        }
        reader.seek(SeekFrom::Start(start))?;
        for _ in 0..20 {
            reader.read_exact(&mut buffer)?; // line of ramp
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let file = File::open(&words[2])?;
    let fixed = words.iter().any(|word| word == "--fixed");
    match words[1].as_str() {
        "ramp" => ramp(&file, fixed),
        _ => backward(&file, fixed),
    }
}
