//! Writers: they write new files, or rewrite foreread's files in place, and flush them.
//!
//! Data in the page cache is not on the device yet, so each writer finishes with `fsync(2)`, whose
//! time counts. The file size limits the amount of data; the time limit stops only the writing,
//! never the flush.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::fs::OFlags;
use sys::realtime;
use sys::thread_usage::thread_cpu;
use units::{Bytes, Nanos};
use workload::Pattern;

use crate::dataset::ToolDirectory;
use crate::dataset::home::room_in;
use crate::error::write_error;
use crate::input::TrialInput;
use crate::reader::{ReaderTally, collect, cpu_between};
use crate::watch::DeviceWatch;
use crate::{BenchError, Disturbance, Sample, TrialOptions, cold};

/// Runs a workload that writes. New files are in their own directory, which is removed before this
/// function returns.
pub(crate) fn run(input: &TrialInput<'_>) -> Result<Sample, BenchError> {
    let Some(home) = input.dataset.directory() else {
        let (path, workload) = (input.storage.path.clone(), input.workload.name.clone());
        return Err(BenchError::OnlyRead { path, workload });
    };
    let own = ToolDirectory::make(home)?;
    let sample = input.write_trial(own.path());
    let removed = own.remove();
    let sample = sample?;
    removed?;
    Ok(sample)
}

struct Writer<'a> {
    path: PathBuf,
    file: File,
    size: Bytes,
    block: usize,
    rewrites: bool,
    seed: u64,
    /// Time limit for writing, in wall time.
    duration: Nanos,
    start: &'a Barrier,
    over: &'a AtomicBool,
    options: &'a TrialOptions,
}

impl TrialInput<'_> {
    fn write_trial(&self, own: &Path) -> Result<Sample, BenchError> {
        let rewrites = self.workload.pattern == Pattern::Rewrite;
        let size = self.dataset.size_of(self.workload);
        let data = if rewrites { self.dataset.files(self.workload)? } else { Vec::new() };
        let files: Vec<(PathBuf, File)> = match rewrites {
            true => data.iter().map(|file| open(&file.path)).collect::<Result<_, _>>()?,
            false => self.create(own, size)?,
        };
        let cold = cold::evict(self.root, &data, self.options.drop_caches, &self.options.cancel)?;
        settle(own)?;
        let (begun, watch, tallies) = self.race(files, size)?;
        let undrained = self.drain()?;
        let settled = realtime::now().saturating_sub(begun);
        let observed = watch.finish(self.root, self.storage, None)?;
        let mut sample = collect(self.workload, self.options, tallies, cold);
        sample.settled = settled;
        sample.elapsed = sample.readers.iter().map(|it| it.elapsed).max().unwrap_or_default();
        sample.exhausted = sample.readers.iter().all(|writer| writer.useful >= size);
        let written = sample.useful();
        sample.moved = if rewrites { written + written } else { written };
        sample.device = observed.device;
        if !cold.resident.is_zero() {
            sample.disturbances.push(Disturbance::WarmStart { resident: cold.resident });
        }
        // The trial causes all writes, and the stalls of tasks that wait for them.
        let found = observed.disturbances(Bytes::ZERO, false).into_iter();
        sample.disturbances.extend(found.filter(|found| {
            !matches!(
                found,
                Disturbance::ForeignTraffic { .. } | Disturbance::MemoryPressure { .. }
            )
        }));
        sample.disturbances.extend(undrained);
        Ok(sample)
    }

    /// Starts one writer for each file; each writes at most `size`. Returns the start time, the
    /// device's counters since then, and each writer's result.
    fn race(
        &self,
        files: Vec<(PathBuf, File)>,
        size: Bytes,
    ) -> Result<(Nanos, DeviceWatch, Vec<ReaderTally>), BenchError> {
        let (start, over) = (Barrier::new(files.len() + 1), AtomicBool::new(false));
        let writer = |(path, file)| Writer {
            path,
            file,
            size,
            block: self.workload.block.get() as usize,
            rewrites: self.workload.pattern == Pattern::Rewrite,
            seed: self.options.seed,
            duration: self.options.duration.scaled(self.options.dilation),
            start: &start,
            over: &over,
            options: self.options,
        };
        let writers: Vec<Writer<'_>> = files.into_iter().map(writer).collect();
        let (begun, watch, tallies) = std::thread::scope(|scope| {
            let threads: Vec<_> =
                writers.into_iter().map(|writer| scope.spawn(move || writer.run())).collect();
            let watch = DeviceWatch::start(self.root, self.storage);
            over.store(watch.is_err(), Ordering::Relaxed);
            start.wait();
            let begun = realtime::now();
            let tallies: Result<Vec<ReaderTally>, BenchError> =
                threads.into_iter().map(join).collect();
            (begun, watch, tallies)
        });
        let watch = watch?;
        if self.options.cancel.is_cancelled() {
            return Err(BenchError::Cancelled);
        }
        Ok((begun, watch, tallies?))
    }

    /// Creates the new files, if there is space for them.
    fn create(&self, own: &Path, size: Bytes) -> Result<Vec<(PathBuf, File)>, BenchError> {
        let needed = size * u64::from(self.workload.readers);
        let available = room_in(own).map_err(BenchError::io("read the free space of", own))?;
        if needed > available {
            return Err(no_space(own, needed, None));
        }
        let create = |index: u32| {
            let path = own.join(format!("{index:05}.data"));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(|error| write_error(own, error))?;
            Ok((path, file))
        };
        (0..self.workload.readers).map(create).collect()
    }
}

/// Opens one of foreread's own files for rewriting.
fn open(path: &Path) -> Result<(PathBuf, File), BenchError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(BenchError::io("open", path))?;
    Ok((path.to_owned(), file))
}

/// Syncs the file system, so that earlier writes are not counted.
fn settle(own: &Path) -> Result<(), BenchError> {
    let sync = || Ok(rustix::fs::syncfs(File::open(own)?)?);
    sync().map_err(BenchError::io("sync", own))
}

fn no_space(dir: &Path, needed: Bytes, source: Option<io::Error>) -> BenchError {
    let available = room_in(dir).unwrap_or_default();
    BenchError::NoSpace { path: dir.to_owned(), needed, available, source }
}

fn join(
    thread: ScopedJoinHandle<'_, Result<ReaderTally, BenchError>>,
) -> Result<ReaderTally, BenchError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Writer<'_> {
    fn run(self) -> Result<ReaderTally, BenchError> {
        let mut buffer = vec![0; self.block];
        // The device might not write compressible data.
        Pcg64Mcg::seed_from_u64(self.seed).fill_bytes(&mut buffer);
        let cpu = thread_cpu();
        self.start.wait();
        let result = self.write_all(&mut buffer);
        if result.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        let mut tally = result?;
        let account = |cpu: io::Result<_>| {
            cpu.map_err(BenchError::io("read the account of", "/proc/thread-self"))
        };
        tally.cpu = cpu_between(account(cpu)?, account(thread_cpu())?);
        Ok(tally)
    }

    fn write_all(&self, buffer: &mut [u8]) -> Result<ReaderTally, BenchError> {
        let start = realtime::now();
        let mut tally = ReaderTally::default();
        let (mut now, mut at) = (start, 0);
        let end = start.get().saturating_add(self.duration.get());
        while at < self.size.get() && now.get() < end {
            if self.over.load(Ordering::Relaxed) || self.options.cancel.is_cancelled() {
                return Ok(tally);
            }
            let length = (self.size.get() - at).min(buffer.len() as u64);
            self.block(&mut buffer[..length as usize], at)?;
            let after = realtime::now();
            tally.stream.latency.record(after.saturating_sub(now));
            (now, at) = (after, at + length);
            tally.sample.requests += 1;
        }
        self.file.sync_all().map_err(|error| self.failed(error))?;
        tally.sample.useful = Bytes::new(at);
        tally.stream.useful = Bytes::new(at);
        tally.sample.elapsed = realtime::now().saturating_sub(start);
        Ok(tally)
    }

    /// Writes one block, or reads, modifies and writes it.
    fn block(&self, buffer: &mut [u8], at: u64) -> Result<(), BenchError> {
        if self.rewrites {
            let read = |source| {
                let (path, offset) = (self.path.clone(), Bytes::new(at));
                BenchError::Read { path, offset, source }
            };
            self.file.read_exact_at(buffer, at).map_err(read)?;
        }
        // Every block differs.
        for (byte, place) in buffer.iter_mut().zip(at.to_le_bytes()) {
            *byte ^= place.wrapping_add(1);
        }
        self.file.write_all_at(buffer, at).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> BenchError {
        let dir = self.path.parent().unwrap_or(&self.path);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                no_space(dir, self.size, Some(error))
            }
            _ => write_error(dir, error),
        }
    }
}
