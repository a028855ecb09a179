//! Reads the first 4 MiB of a file backward: fault FILE.

use std::fs::File;
use std::os::unix::fs::FileExt;

fn backward(file: &File, size: u64) -> std::io::Result<()> {
    let mut buffer = [0; 3809];
    for piece in (0..size / 3809).rev() {
        file.read_exact_at(&mut buffer, piece * 3809)?; // line of backward
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1).expect("a file");
    backward(&File::open(name)?, 4 << 20)
}
