//! Reads a file with one fault each, or with --fixed without it: fault PATTERN FILE [--fixed].

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const SIZE: u64 = 4 << 20;

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

/// Short runs here and there through a buffer of the library; fixed, one after another.
fn ramp(file: &File, fixed: bool) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(4096, file);
    let mut buffer = [0; 4096];
    for run in 0..100_u64 {
        let place = if fixed { run } else { run * 7919 % 800 };
        reader.seek(SeekFrom::Start(place * 20 * 4096))?;
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
