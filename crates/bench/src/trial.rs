//! One trial: readers at work on a data set, with everything counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::{Root, Storage};
use rustix::process::{Resource, getrlimit, setrlimit};
use sys::realtime;
use units::{Bytes, Nanos};
use workload::{Pattern, Sharing, Workload};

use crate::dataset::DataFile;
use crate::memory::MemoryLimit;
use crate::reader::{Course, Reader, Tally};
use crate::source::Source;
use crate::threads::{accompany, spawn};
use crate::timeline::SLOTS;
use crate::watch::{self, Observed, Watch};
use crate::{
    BenchError, Cancel, ClassSample, ColdProof, CpuTime, Dataset, Disturbance, Sample, Timeline,
    cold, outside, write,
};

/// What is in the page cache when the readers start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheStart {
    /// Nothing of the data: it is evicted, and that is proved.
    #[default]
    Cold,
    /// What happens to be there.
    AsFound,
}

/// How a trial is run.
#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// How long the readers work at most, in the storage's own time.
    pub duration: Nanos,
    /// How many times slower than its model the storage runs: duration and think time are
    /// stretched by it. 1 for real storage.
    pub dilation: f64,
    /// The seed of the accesses.
    pub seed: u64,
    /// Whether to write to `/proc/sys/vm/drop_caches` besides evicting the data. That disturbs
    /// everybody on the machine.
    pub drop_caches: bool,
    /// What is in the cache at the start.
    pub start: CacheStart,
    /// What the page cache and all else of this process may take meanwhile; no limit if `None`.
    pub memory_limit: Option<Bytes>,
    /// How long to wait, in the storage's own time, for requests under way at the end.
    pub drain_limit: Nanos,
    /// Ends the trial early, within about 100 ms.
    pub cancel: Cancel,
}

impl Default for TrialOptions {
    fn default() -> Self {
        Self {
            duration: Nanos::from_secs(5),
            dilation: 1.0,
            seed: 0,
            drop_caches: false,
            start: CacheStart::Cold,
            memory_limit: None,
            drain_limit: Nanos::from_secs(10),
            cancel: Cancel::new(),
        }
    }
}

impl TrialOptions {
    fn validate(&self) -> Result<(), BenchError> {
        let bad = |option, value: &dyn ToString, wanted| {
            Err(BenchError::BadOption { option, value: value.to_string(), wanted })
        };
        if !(self.dilation.is_finite() && self.dilation > 0.0) {
            return bad("dilation", &self.dilation, "a number above 0");
        }
        if self.duration == Nanos::ZERO {
            return bad("duration", &self.duration, "more than nothing");
        }
        Ok(())
    }
}

/// Runs `workload` once on `dataset`, which lies on `storage`.
///
/// All readers start together. The trial is over when its time is, or when the first reader has
/// used up its data, so that no tail with fewer readers is measured. Then the requests under way,
/// read-ahead among them, are waited for, and the counters are read. Files are opened anew for
/// each trial, because an open file keeps the read-ahead window that was set when it was opened.
pub fn run_trial(
    root: &Root,
    storage: &Storage,
    dataset: &Dataset,
    workload: &Workload,
    options: &TrialOptions,
) -> Result<Sample, BenchError> {
    options.validate()?;
    workload.validate()?;
    if let Some(outside) = &workload.outside {
        return outside::run(root, storage, dataset, workload, outside, options);
    }
    if workload.writes() {
        return write::run(root, storage, dataset, workload, options);
    }
    let files = dataset.files(workload)?;
    let cold = match options.start {
        CacheStart::AsFound => cold::as_found(&distinct(&files))?,
        CacheStart::Cold => {
            cold::evict(root, &distinct(&files), options.drop_caches, &options.cancel)?
        }
    };
    let course = Arc::new(Course::default());
    let readers = prepare(workload, &files, options, &course)?;
    let limited = options.memory_limit.map(MemoryLimit::enter).transpose()?;
    let threads = spawn(readers)?;
    let watch = Watch::start(root, storage);
    let start = course.start(threads.len());
    if watch.is_err() {
        course.end(start, false);
    }
    let watch = watch?;
    let mut moments = Vec::with_capacity(SLOTS as usize);
    // To look takes memory, which is for the readers where there is little.
    let looks = limited.is_none();
    let mut look = || moments.extend(looks.then(|| watch.moment(root, storage)).flatten());
    let tallies = accompany(threads, &course, start, options, &mut look)
        .map_err(|problem| explain(problem, root, storage, options))?;
    let memory = limited.map(MemoryLimit::leave);
    let limit = options.drain_limit.scaled(options.dilation);
    let undrained = watch::drain(root, storage, limit, &options.cancel)?;
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
        // A process that came and went counts with the time of the whole: its own short haste is
        // no rate that lasted.
        let elapsed = sample.elapsed;
        sample.readers.iter_mut().for_each(|reader| reader.elapsed = elapsed);
    }
    sample.device = observed.device;
    sample.timeline.device = moments;
    let of_reads = of_reads(dataset, workload, &files, options, &sample, &observed);
    sample.disturbances.extend(of_reads);
    sample.disturbances.extend(undrained);
    Ok(sample)
}

/// What disturbed readers: a cache that was not cold, and whatever was observed that was not ours.
fn of_reads(
    dataset: &Dataset,
    workload: &Workload,
    files: &[DataFile],
    options: &TrialOptions,
    sample: &Sample,
    observed: &Observed,
) -> Vec<Disturbance> {
    let mut disturbances = Vec::new();
    let is_cold = options.start == CacheStart::Cold;
    let data = distinct(files).iter().map(|file| file.length).sum();
    if is_cold && sample.cold.resident > dataset.tolerated_resident(data) {
        disturbances.push(Disturbance::WarmStart { resident: sample.cold.resident });
    }
    let proves_cold = is_cold && dataset.is_dense() && workload.reads_each_block_once();
    let found = observed.disturbances(sample.useful(), proves_cold).into_iter();
    // Memory that we made scarce ourselves disturbs nothing: it is the condition.
    let ours = |found: &Disturbance| {
        options.memory_limit.is_some() && matches!(found, Disturbance::MemoryPressure { .. })
    };
    disturbances.extend(found.filter(|found| !ours(found)));
    disturbances
}

/// When the last reader was done.
fn last(sample: &Sample) -> Nanos {
    sample.readers.iter().map(|reader| reader.elapsed).max().unwrap_or_default()
}

/// The files without those that are there twice, as those that a trace has opened twice.
fn distinct(files: &[DataFile]) -> Vec<DataFile> {
    let mut distinct: Vec<DataFile> = files.to_vec();
    distinct.sort_by(|a, b| (&a.path, a.start).cmp(&(&b.path, b.start)));
    distinct.dedup();
    distinct
}

/// What has been read ahead of streams and would have been theirs next: whatever is in the cache
/// beyond their ends, where nothing was at the start. Only of files that one reader has to himself
/// and goes through in order can it be told.
fn ahead(
    workload: &Workload,
    files: &[DataFile],
    options: &TrialOptions,
    tallies: &[Tally],
) -> Result<Bytes, BenchError> {
    let in_order = workload.pattern == Pattern::Sequential && workload.sharing == Sharing::OwnFile;
    if !in_order || options.start != CacheStart::Cold {
        return Ok(Bytes::ZERO);
    }
    let of_reader = |(reader, tally): (u32, &Tally)| match tally.reached {
        Some((file, end)) => {
            cold::resident_from(&files[workload.file_of(reader, file) as usize], end)
        }
        None => Ok(Bytes::ZERO),
    };
    (0..).zip(tallies).map(of_reader).sum()
}

/// Opens everything and lays out the readers' work.
fn prepare(
    workload: &Workload,
    files: &[DataFile],
    options: &TrialOptions,
    course: &Arc<Course>,
) -> Result<Vec<Reader>, BenchError> {
    let times = if workload.replay.is_some() { 1 } else { 2 * u64::from(workload.readers) };
    allow_open_files(files.len() as u64 * times);
    let mut opener = Opener { workload, files, shared: BTreeMap::new() };
    let beside = matches!(workload.pattern, Pattern::Mixed { same_open_file: false, .. });
    let largest = match workload.pattern {
        Pattern::Mixed { random_block, .. } => workload.block.max(random_block),
        _ => workload.block,
    };
    let reader = |reader| {
        let own = || (0..workload.files_per_reader).map(|file| workload.file_of(reader, file));
        let sizes: Vec<Bytes> = own().map(|file| files[file as usize].length).collect();
        let mut open = |second| -> Result<Vec<Arc<Source>>, BenchError> {
            own().map(|file| opener.open(file, second)).collect()
        };
        Ok(Reader {
            sources: open(false)?,
            beside: if beside { open(true)? } else { Vec::new() },
            accesses: workload.accesses(reader, &sizes, options.seed)?,
            block: largest,
            think: workload.think.scaled(options.dilation),
            dilation: options.dilation,
            ends_all: workload.replay.is_none(),
            duration: options.duration.scaled(options.dilation),
            course: Arc::clone(course),
        })
    };
    (0..workload.readers).map(reader).collect()
}

/// Opens files, each once for all readers if they share open files.
struct Opener<'a> {
    workload: &'a Workload,
    files: &'a [DataFile],
    shared: BTreeMap<(u32, bool), Arc<Source>>,
}

impl Opener<'_> {
    fn open(&mut self, file: u32, second: bool) -> Result<Arc<Source>, BenchError> {
        let (workload, part) = (self.workload, &self.files[file as usize]);
        let (access, hint) = workload.access_of(file);
        let open = || Source::open(part, access, hint).map(Arc::new);
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

/// Raises the limit of open files as far as it must and may be; opening says it if that is not
/// enough.
fn allow_open_files(needed: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = needed + 256;
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// A read error on a device that is gone is told as that, and one for want of the memory that we
/// took away ourselves as that.
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

/// What all readers together are accounted for; `None` if one of them is not.
fn own_bytes(tallies: &[Tally]) -> Option<Bytes> {
    tallies.iter().map(|tally| tally.device_bytes).sum()
}

pub(crate) fn collect(
    workload: &Workload,
    options: &TrialOptions,
    tallies: Vec<Tally>,
    cold: ColdProof,
) -> Sample {
    let mut sample = Sample {
        workload: workload.name.clone(),
        seed: options.seed,
        dilation: options.dilation,
        elapsed: Nanos::ZERO,
        exhausted: false,
        readers: Vec::with_capacity(tallies.len()),
        stream: ClassSample::default(),
        random: ClassSample::default(),
        cpu: CpuTime::default(),
        device: None,
        ahead: Bytes::ZERO,
        moved: Bytes::ZERO,
        settled: Nanos::ZERO,
        cold,
        timeline: Timeline::over(options.duration.scaled(options.dilation)),
        series: Vec::new(),
        request_sizes: Vec::new(),
        tool: None,
        memory: None,
        disturbances: Vec::new(),
    };
    for tally in tallies {
        sample.timeline.add(&tally.pace);
        sample.readers.push(tally.sample);
        sample.stream.add(&tally.stream);
        sample.random.add(&tally.random);
        sample.cpu.user += tally.cpu.user;
        sample.cpu.system += tally.cpu.system;
    }
    sample
}
