//! Runs one trial: readers on a data set, with I/O, CPU time and memory counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::{Root, Storage};
use rustix::process::{Resource, getrlimit, setrlimit};
use sys::realtime;
use units::{Bytes, Nanos};
use workload::{Pattern, Sharing, Workload};

use crate::dataset::DataFile;
use crate::input::TrialInput;
use crate::memory::MemoryLimit;
use crate::reader::{ReaderTally, StartGate, TrialReader, collect};
use crate::source::DataSource;
use crate::threads::{spawn, wait_for_readers};
use crate::timeline::SLOT_COUNT;
use crate::watch::{self, DeviceWatch};
use crate::{BenchError, CacheStart, Dataset, Sample, TrialOptions, cold, outside, write};

/// Runs `workload` once on `dataset`, which is on `storage`.
///
/// All readers start together. The trial is over at its time limit, or when the first reader has
/// exhausted its data, so that it includes no phase with fewer readers. The trial then waits for
/// requests in flight, including read-ahead, and reads the counters. Files are opened for each
/// trial, because an open file keeps the window that was set when it was opened.
pub fn run_trial(
    root: &Root,
    storage: &Storage,
    dataset: &Dataset,
    workload: &Workload,
    options: &TrialOptions,
) -> Result<Sample, BenchError> {
    options.validate()?;
    workload.validate()?;
    let input = TrialInput { root, storage, dataset, workload, options };
    if let Some(outside) = &workload.outside {
        return outside::run(&input, outside);
    }
    if workload.writes() {
        return write::run(&input);
    }
    let files = dataset.files(workload)?;
    let cold = input.cold(&distinct(&files))?;
    let course = Arc::new(StartGate::default());
    let readers = prepare(workload, &files, options, &course)?;
    let limited = options.memory_limit.map(MemoryLimit::enter).transpose()?;
    let threads = spawn(readers)?;
    let watch = DeviceWatch::start(root, storage);
    let start = course.start(threads.len());
    if watch.is_err() {
        course.end(start, false);
    }
    let watch = watch?;
    let mut moments = Vec::with_capacity(SLOT_COUNT as usize);
    // Reading the counters takes memory, which the readers need if memory is limited.
    let looks = limited.is_none();
    let mut look = || moments.extend(looks.then(|| watch.moment(root, storage)).flatten());
    let tallies = wait_for_readers(threads, &course, start, options, &mut look)
        .map_err(|problem| explain(problem, root, storage, options))?;
    let memory = limited.map(MemoryLimit::leave);
    let undrained = input.drain()?;
    let settled = realtime::now().saturating_sub(start);
    let observed = watch.finish(root, storage, own_bytes(&tallies))?;
    let ahead = ahead(workload, &files, options, &tallies)?;
    let mut sample = collect(workload, options, tallies, cold);
    (sample.ahead, sample.settled) = (ahead, settled);
    sample.memory = memory;
    let (end, exhausted) = course.ending().unwrap_or_else(|| (start + last(&sample), true));
    sample.elapsed = end.saturating_sub(start);
    sample.exhausted = exhausted;
    if workload.replay.is_some() {
        // A process that exits early counts with the total time: its own short rate did not last.
        let elapsed = sample.elapsed;
        sample.readers.iter_mut().for_each(|reader| reader.elapsed = elapsed);
    }
    sample.device = observed.device;
    sample.timeline.device = moments;
    let is_cold = options.start == CacheStart::Cold;
    let proves_cold = is_cold && dataset.is_dense() && workload.reads_each_block_once();
    let data = distinct(&files).iter().map(|file| file.length).sum();
    let found = input.disturbances(cold, data, &observed, sample.useful(), proves_cold);
    sample.disturbances.extend(found);
    sample.disturbances.extend(undrained);
    Ok(sample)
}

/// Returns when the last reader finished, since the start.
fn last(sample: &Sample) -> Nanos {
    sample.readers.iter().map(|reader| reader.elapsed).max().unwrap_or_default()
}

/// Returns the distinct files; a trace may open a file twice.
fn distinct(files: &[DataFile]) -> Vec<DataFile> {
    let mut distinct: Vec<DataFile> = files.to_vec();
    distinct.sort_by(|a, b| (&a.path, a.start).cmp(&(&b.path, b.start)));
    distinct.dedup();
    distinct
}

/// Returns the data that was read ahead of streams and would have been read next: all cached data
/// after their ends, if the cache was empty at the start. Known only for files that a single reader
/// reads in order; otherwise 0.
fn ahead(
    workload: &Workload,
    files: &[DataFile],
    options: &TrialOptions,
    tallies: &[ReaderTally],
) -> Result<Bytes, BenchError> {
    let in_order = workload.pattern == Pattern::Sequential && workload.sharing == Sharing::OwnFile;
    if !in_order || options.start != CacheStart::Cold {
        return Ok(Bytes::ZERO);
    }
    let of_reader = |(reader, tally): (u32, &ReaderTally)| match tally.reached {
        Some((file, end)) => {
            cold::resident_from(&files[workload.file_of(reader, file) as usize], end)
        }
        None => Ok(Bytes::ZERO),
    };
    (0..).zip(tallies).map(of_reader).sum()
}

/// Opens all files and prepares the readers.
fn prepare(
    workload: &Workload,
    files: &[DataFile],
    options: &TrialOptions,
    course: &Arc<StartGate>,
) -> Result<Vec<TrialReader>, BenchError> {
    let times = if workload.replay.is_some() { 1 } else { 2 * u64::from(workload.readers) };
    allow_open_files(files.len() as u64 * times);
    let mut opener = Opener { workload, files, shared: BTreeMap::new() };
    let has_own_files = matches!(workload.pattern, Pattern::Mixed { same_open_file: false, .. });
    let largest = match workload.pattern {
        Pattern::Mixed { random_block, .. } => workload.block.max(random_block),
        _ => workload.block,
    };
    let reader = |reader| {
        let own = || (0..workload.files_per_reader).map(|file| workload.file_of(reader, file));
        let sizes: Vec<Bytes> = own().map(|file| files[file as usize].length).collect();
        let mut open = |second| -> Result<Vec<Arc<DataSource>>, BenchError> {
            own().map(|file| opener.open(file, second)).collect()
        };
        Ok(TrialReader {
            sources: open(false)?,
            random_sources: if has_own_files { open(true)? } else { Vec::new() },
            accesses: workload.accesses(reader, &sizes, options.seed)?,
            block: largest,
            think: workload.think.scaled(options.dilation),
            has_think_times: workload.has_think_times(),
            dilation: options.dilation,
            ends_all: workload.replay.is_none(),
            duration: options.duration.scaled(options.dilation),
            course: Arc::clone(course),
        })
    };
    (0..workload.readers).map(reader).collect()
}

/// Opens files; readers that share open files get the same open file.
struct Opener<'a> {
    workload: &'a Workload,
    files: &'a [DataFile],
    shared: BTreeMap<(u32, bool), Arc<DataSource>>,
}

impl Opener<'_> {
    fn open(&mut self, file: u32, second: bool) -> Result<Arc<DataSource>, BenchError> {
        let (workload, part) = (self.workload, &self.files[file as usize]);
        let (access, hint) = workload.access_of(file);
        let open = || DataSource::open(part, access, hint).map(Arc::new);
        if workload.sharing != Sharing::SharedOpenFile {
            return open();
        }
        match self.shared.get(&(file, second)) {
            Some(source) => Ok(Arc::clone(source)),
            None => {
                let source = open()?;
                self.shared.insert((file, second), Arc::clone(&source));
                Ok(source)
            }
        }
    }
}

/// Raises the limit of open files as far as needed and permitted. If that is not enough, opening a
/// file fails later.
fn allow_open_files(needed: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = needed + 256;
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Replaces a read error by its cause: a device that has disappeared, or the memory limit.
fn explain(
    problem: BenchError,
    root: &Root,
    storage: &Storage,
    options: &TrialOptions,
) -> BenchError {
    match (&problem, options.memory_limit) {
        (BenchError::Read { source, .. }, Some(limit))
            if source.kind() == std::io::ErrorKind::OutOfMemory =>
        {
            return BenchError::OutOfMemory { limit };
        }
        _ => {}
    }
    match problem {
        BenchError::Read { .. } => match watch::gone_device(root, storage) {
            Some(device) => BenchError::DeviceGone { device },
            None => problem,
        },
        other => other,
    }
}

/// Returns the data that devices read for all readers; `None` if any reader has no accounting.
fn own_bytes(tallies: &[ReaderTally]) -> Option<Bytes> {
    tallies.iter().map(|tally| tally.device_bytes).sum()
}
