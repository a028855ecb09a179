//! Measures how exactly a virtual disk follows its model. Run as root on an idle machine:
//!
//! ```text
//! cargo run --release -p foreread-vdisk --example pace
//! ```
//!
//! It prints one line of JSON:
//!
//! - `zero_requests_s`: 4 KiB direct reads per second from a device without latency, 64 readers;
//! - `overhead_us`: median duration of such reads by a single reader;
//! - `error_1_ms_percent`, …: relative error against the model of the median read latency, minus
//!   that of interleaved reads from the same disk while its timing is off;
//! - `lateness_p99_us` and `lateness_p50_us`: delay with which the server handed completions to the
//!   kernel, as measured by the server, at queue depth 32 and 5 ms.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use foreread_vdisk::{DiskConfig, DiskCounters, Lifetime, ServerCommand, VirtualDisk, serve_main};
use host::Dirs;

const BLOCK_BYTES: u64 = 4096;
const DISK_SIZE: u64 = 256 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|verb| verb == "serve") {
        return Ok(serve_main(args.into_iter().skip(1))?);
    }
    let zero = disk(None)?;
    let requests = throughput(zero.device(), 64, Duration::from_secs(4))?;
    let overhead = median(alone(zero.device(), 1000)?);
    zero.remove()?;
    let mut line = format!(
        "{{\"zero_requests_s\": {requests:.0}, \"overhead_us\": {:.1}",
        overhead.as_secs_f64() * 1e6
    );
    for (millis, turns) in [(1, 40), (5, 20), (10, 10)] {
        line += &format!(", \"error_{millis}_ms_percent\": {:.2}", error(millis, turns)? * 100.0);
    }
    let counters = deep()?;
    let late = counters.lateness;
    line += &format!(
        ", \"lateness_p50_us\": {:.1}, \"lateness_p99_us\": {:.1}, \"queue_mean\": {:.1}}}",
        late.p50.as_micros_f64(),
        late.p99.as_micros_f64(),
        counters.queue_mean
    );
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Creates a raw disk with a constant latency, or with none.
fn disk(millis: Option<u32>) -> Result<VirtualDisk, Box<dyn Error>> {
    let model = match millis {
        None => "name = 'pace'\n[device]\nkind = 'zero'\ncapacity = '1GiB'\n".to_owned(),
        Some(millis) => format!(
            "name = 'pace'\n[device]\nkind = 'volume'\ncapacity = '1GiB'\nlatency_ms = {millis}.0\n\
             latency_spread = 0.0\nconcurrency = 1024\n"
        ),
    };
    let mut config = DiskConfig::new(model::Spec::from_toml(&model)?);
    config.filesystem = foreread_vdisk::Filesystem::Raw;
    config.size = units::Bytes::new(DISK_SIZE);
    config.dilation = foreread_vdisk::Dilation::Fixed(1.0);
    let server = ServerCommand { program: std::env::current_exe()?, args: vec!["serve".into()] };
    Ok(VirtualDisk::create(&Dirs::of_user(), config, &server, Lifetime::DiesWithMe)?)
}

/// Returns the requests per second of `readers` concurrent readers.
fn throughput(device: &Path, readers: u64, span: Duration) -> Result<f64, Box<dyn Error>> {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let files: Vec<File> = (0..readers).map(|_| open(device)).collect::<Result<_, _>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (seed, file) in (1..).zip(&files) {
            let (stop, total) = (&stop, &total);
            scope.spawn(move || {
                let mut reader = Reader::new(file, seed);
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) && reader.read().is_ok() {
                    count += 1;
                }
                total.fetch_add(count, Ordering::Relaxed);
            });
        }
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
    Ok(total.into_inner() as f64 / start.elapsed().as_secs_f64())
}

/// Returns the relative error of the read latency compared with the model. Timed and untimed reads
/// alternate, so that other load on the machine affects both.
fn error(millis: u32, turns: u32) -> Result<f64, Box<dyn Error>> {
    let disk = disk(Some(millis))?;
    let (mut untimed, mut timed) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        disk.set_timing(false)?;
        untimed.extend(alone(disk.device(), 30)?);
        disk.set_timing(true)?;
        timed.extend(alone(disk.device(), 30)?);
    }
    disk.remove()?;
    let model = f64::from(millis) * 1e-3;
    Ok((median(timed).as_secs_f64() - median(untimed).as_secs_f64() - model) / model)
}

/// Returns the durations of `count` sequential reads.
fn alone(device: &Path, count: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    let file = open(device)?;
    let mut reader = Reader::new(&file, 1);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        reader.read()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the disk's counters at queue depth 32.
fn deep() -> Result<DiskCounters, Box<dyn Error>> {
    let disk = disk(Some(5))?;
    disk.reset()?;
    throughput(disk.device(), 32, Duration::from_secs(4))?;
    let counters = disk.counters()?;
    disk.remove()?;
    Ok(counters)
}

fn open(device: &Path) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(device)
}

/// Reads random blocks with direct I/O.
struct Reader<'a> {
    file: &'a File,
    room: Vec<u8>,
    start: usize,
    state: u64,
}

impl<'a> Reader<'a> {
    fn new(file: &'a File, seed: u64) -> Self {
        let room = vec![0; 2 * BLOCK_BYTES as usize];
        let start = room.as_ptr().align_offset(BLOCK_BYTES as usize);
        Self { file, room, start, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn read(&mut self) -> std::io::Result<()> {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let block = self.state % (DISK_SIZE / BLOCK_BYTES);
        let buffer = &mut self.room[self.start..self.start + BLOCK_BYTES as usize];
        self.file.read_exact_at(buffer, block * BLOCK_BYTES)
    }
}
