//! Replays the recorded accesses in the simulator, unchanged and changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::layout::FileLayout;
use observe::AdviceCallKind;
use policy::{Extent, FileTree};
use sim::{
    Costs, FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome,
    Start,
};
use units::{Bytes, Kib, Nanos};
use workload::{AccessClass, AccessMethod, Hint, RangeAdvice};

use crate::advice_values::SEQUENTIAL_VALUE;
use crate::code::mapped_code;
use crate::device::DeviceModel;
use crate::directories::file_tree;
use crate::overhead::{WaitOverhead, recorded_service, service};
use crate::prefetch_list::{ADVICE_BYTES, in_place_order};
use crate::recording::{PAGE_BYTES, ProfileRecording};
use crate::rewrite::{Changes, rewritten};
use crate::rules::FixChange;
use crate::steps::{PieceBound, Step, steps};
use crate::stream::{FileStream, StreamKey};
use crate::waits::PageWaits;
use crate::warm::WarmAccesses;

/// Maximum error of a replay, as a share of the recorded waits.
const MAX_REPLAY_ERROR: f64 = 0.2;
/// Window of files whose window was not recorded: the kernel's default.
const DEFAULT_WINDOW: Bytes = Bytes::from_kib(128);

/// Number of corrections of the request delay.
const FITTING_STEPS: u32 = 3;
/// Maximum round-trip delay of a request; the device model must explain the rest.
const MAX_REQUEST_DELAY: Nanos = Nanos::from_micros(100);
/// Maximum standard deviation of request times, in multiples of `MAX_REQUEST_DELAY`. Above it,
/// their mean does not show the delay: the rotation of a disk has a larger effect.
const MOST_DEVIATION: f64 = 10.0;
/// Factors of the request delay in the variations of a replay, each with its own seed: a slightly
/// later request may take a whole rotation of a disk longer.
const DELAY_PARTS: [f64; 5] = [1.0, 0.5, 0.75, 1.25, 1.5];
/// Recordings with more steps are not varied, because chance effects average out.
const MAX_STEPS_VARIED: usize = 20_000;

/// Results of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayTimes {
    pub elapsed: Nanos,
    pub waited: Nanos,
    /// Bytes that the device read.
    pub read: Bytes,
    /// Number of waits of all readers.
    pub stalls: u64,
}

/// A simulation and the lane of each of its readers.
#[derive(Clone, Debug)]
struct Simulated {
    outcome: SimOutcome,
    lanes: Vec<u32>,
}

impl Simulated {
    /// Returns the number of waits of all readers.
    fn stalls(&self) -> u64 {
        self.outcome.readers.iter().map(|reader| reader.stalls).sum()
    }

    /// Returns the number of waits of each lane.
    fn stalls_of_lanes(&self) -> BTreeMap<u32, u64> {
        let stalls = self.outcome.readers.iter().map(|reader| reader.stalls);
        self.lanes.iter().copied().zip(stalls).collect()
    }
}

/// Returns the files of these streams, in the order of the simulation.
fn inodes_of(streams: &[&FileStream]) -> BTreeSet<u32> {
    streams.iter().map(|stream| stream.inode).collect()
}

/// The accesses of some streams, to be replayed on a device.
#[derive(Debug)]
pub(crate) struct ProfileReplay<'a> {
    recording: &'a ProfileRecording,
    streams: Vec<&'a FileStream>,
    /// Steps with the upper bound of each touch of a mapping; the lower bound if that differs.
    steps: Vec<Step>,
    least_steps: Option<Vec<Step>>,
    pub model: &'a DeviceModel,
    /// The part of each mapped file that is code.
    code: BTreeMap<u32, Extent>,
    file_tree: Arc<FileTree>,
    /// Recorded waits of these streams for pages.
    pub recorded: Nanos,
    overhead: WaitOverhead,
    /// Number of waits of each lane in the unchanged replay.
    stalls: BTreeMap<u32, u64>,
    /// Results of the unchanged replay.
    pub times: ReplayTimes,
    /// Absolute error of its waits.
    pub error: Nanos,
}

impl<'a> ProfileReplay<'a> {
    /// Creates a replay and runs it unchanged.
    ///
    /// # Errors
    ///
    /// If the simulator refuses the device or a window.
    pub(crate) fn new(
        recording: &'a ProfileRecording,
        streams: Vec<&'a FileStream>,
        warm: &WarmAccesses,
        model: &'a DeviceModel,
    ) -> Result<Self, String> {
        let waits = PageWaits::of(recording);
        let accesses = streams.iter().flat_map(|stream| stream.accesses(recording));
        let recorded: Nanos = accesses.map(|access| waits.waited(access)).sum();
        let steps_to = |bound| steps(recording, &streams, warm, &waits, bound);
        let (steps, least) = (steps_to(PieceBound::Most), steps_to(PieceBound::Least));
        let differ = steps.iter().zip(&least).any(|(most, least)| most.length != least.length);
        let least_steps = differ.then_some(least);
        let mut replay = Self {
            recording,
            code: mapped_code(recording),
            file_tree: Arc::new(file_tree(recording, inodes_of(&streams))),
            streams,
            steps,
            least_steps,
            model,
            recorded,
            overhead: WaitOverhead::default(),
            stalls: BTreeMap::new(),
            times: ReplayTimes::default(),
            error: Nanos::ZERO,
        };
        replay.fit()?;
        Ok(replay)
    }

    /// Fits the time of each request beyond the device model, so that requests take as long as the
    /// recorded ones. Keeps the model's time if the waits then match the recording better: if
    /// requests differ in size, their mean says nothing about the device.
    fn fit(&mut self) -> Result<(), String> {
        let unchanged = |delay| self.simulated(&self.steps, &Changes::default(), delay, 0);
        let mut simulated = unchanged(Nanos::ZERO)?;
        let processor =
            WaitOverhead::of_processor(self.recording, &self.streams, &simulated.outcome);
        let mut found = vec![(processor, simulated.clone())];
        if let Some((recorded, deviation)) = recorded_service(self.recording, &self.streams) {
            let dilation = self.model.dilation;
            let most = MAX_REQUEST_DELAY.get() as f64;
            let mut delay = Nanos::ZERO;
            for _ in 0..if deviation < MOST_DEVIATION * most { FITTING_STEPS } else { 0 } {
                let missing = (recorded - service(&simulated.outcome, dilation)) / dilation;
                delay = Nanos::new((delay.get() as f64 + missing).clamp(0.0, most) as u64);
                simulated = unchanged(delay)?;
            }
            let outcome = &simulated.outcome;
            let device =
                processor.with_device_overhead(&self.streams, outcome, recorded, delay, dilation);
            found.insert(0, (device, simulated));
        }
        let fits = found.into_iter().map(|(overhead, simulated)| {
            self.stalls = simulated.stalls_of_lanes();
            let times = self.times_of(&simulated, &overhead);
            let error = times.waited.max(self.recorded) - times.waited.min(self.recorded);
            (error, times, overhead, std::mem::take(&mut self.stalls))
        });
        if let Some(closest) = fits.min_by_key(|(error, ..)| *error) {
            (self.error, self.times, self.overhead, self.stalls) = closest;
        }
        Ok(())
    }

    /// Fails if the waits differ from the recorded ones by more than `MAX_REPLAY_ERROR`.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.error <= self.recorded.scaled(MAX_REPLAY_ERROR) {
            return Ok(());
        }
        let [simulated, recorded] =
            [self.times.waited, self.recorded].map(|time| time.as_millis_f64());
        Err(format!("the replay waits {simulated:.0} ms where {recorded:.0} ms were recorded"))
    }

    /// Returns the upper bound of savings: all waits and their CPU overhead.
    pub(crate) fn most_saved(&self) -> Nanos {
        let stalls = self.times.stalls as f64;
        self.recorded + Nanos::new((self.overhead.processor_ns * stalls) as u64)
    }

    /// Replays the accesses with changes.
    pub(crate) fn run(&self, changes: &Changes<'_>) -> Result<ReplayTimes, String> {
        self.run_varied(&self.steps, changes, 0)
    }

    /// Replays with the lower bound of touches of mappings; `None` if the bounds are equal.
    pub(crate) fn run_least(&self, changes: &Changes<'_>) -> Option<Result<ReplayTimes, String>> {
        self.least_steps.as_ref().map(|steps| self.run_varied(steps, changes, 0))
    }

    fn run_varied(
        &self,
        steps: &[Step],
        changes: &Changes<'_>,
        variation: usize,
    ) -> Result<ReplayTimes, String> {
        let overhead = self.overhead.scale_delay(DELAY_PARTS[variation]);
        let simulated = self.simulated(steps, changes, overhead.request_delay, variation as u64)?;
        Ok(self.times_of(&simulated, &overhead))
    }

    /// Returns the mean savings of the changes and the standard deviation of single replays, in
    /// nanoseconds. The unchanged replay is not varied, because its times were recorded.
    pub(crate) fn saved(&self, changes: &Changes<'_>) -> Result<(f64, f64), String> {
        let before = self.times.elapsed.get() as f64;
        let variations = if self.steps.len() > MAX_STEPS_VARIED { 1 } else { DELAY_PARTS.len() };
        let saved = (0..variations).map(|variation| {
            let after = self.run_varied(&self.steps, changes, variation)?;
            Ok(before - after.elapsed.get() as f64)
        });
        let saved = saved.collect::<Result<Vec<f64>, String>>()?;
        let count = saved.len() as f64;
        let mean = saved.iter().sum::<f64>() / count;
        let squares: f64 = saved.iter().map(|one| (one - mean).powi(2)).sum();
        Ok((mean, (squares / (count - 1.0).max(1.0)).sqrt()))
    }

    /// Returns the times with the overhead of each wait. A lane's steps already contain the CPU
    /// overhead of its waits in the unchanged replay. Lanes with less than 10 % of the most waits
    /// are left out: they mostly wait for other lanes, as a shell does, and would exit earlier too.
    fn times_of(&self, simulated: &Simulated, overhead: &WaitOverhead) -> ReplayTimes {
        let outcome = &simulated.outcome;
        let most = self.stalls.values().max().copied().unwrap_or(0);
        let counts = |lane| self.stalls.get(lane).is_none_or(|stalls| stalls * 10 >= most);
        let dilated = |time: Nanos| time.scaled(self.model.dilation);
        let waited = |stalled, stalls| overhead.waited(dilated(stalled), stalls);
        let lanes = simulated.lanes.iter().zip(&outcome.readers).filter(|(lane, _)| counts(lane));
        let ends = lanes.map(|(lane, reader)| {
            let working = dilated(reader.elapsed.saturating_sub(reader.stalled));
            let unchanged = self.stalls.get(lane).copied().unwrap_or(0);
            let fewer = unchanged as f64 - reader.stalls as f64;
            working.get() as f64 - overhead.processor_ns * fewer
                + waited(reader.stalled, reader.stalls)
        });
        let nanos = |time: f64| Nanos::new(time.max(0.0) as u64);
        ReplayTimes {
            elapsed: nanos(ends.fold(0.0, f64::max)),
            waited: nanos(waited(outcome.stalled(), simulated.stalls()))
                + dilated(outcome.queue_wait()),
            read: outcome.device.bytes,
            stalls: simulated.stalls(),
        }
    }

    fn simulated(
        &self,
        steps: &[Step],
        changes: &Changes<'_>,
        request_delay: Nanos,
        seed: u64,
    ) -> Result<Simulated, String> {
        let (files, places, windows) = self.files(changes);
        let dilation = self.model.dilation;
        let mut opens: Vec<SimOpenFile> = Vec::new();
        let mut open_of: BTreeMap<(StreamKey, u32), u32> = BTreeMap::new();
        let mut readers: BTreeMap<u32, Vec<ReadStep>> = BTreeMap::new();
        for (reader, step) in rewritten(steps, changes) {
            let change = changes.streams.get(&step.key).copied();
            let owner = if change == Some(&FixChange::OwnOpenFiles) { step.tid } else { 0 };
            let open = *open_of.entry((step.key, owner)).or_insert_with(|| {
                opens.push(self.open(step.key, places[&step.key.0], change));
                opens.len() as u32 - 1
            });
            readers.entry(reader).or_default().push(ReadStep {
                open,
                offset: Bytes::new(step.offset),
                length: Bytes::new(step.length),
                class: AccessClass::Stream,
                start: Start::After(Nanos::new(step.think).scaled(1.0 / dilation)),
                advice: step.advice,
            });
        }
        let lanes: Vec<u32> = readers.keys().copied().collect();
        let prefetcher = self.prefetcher(changes, &places, &mut opens);
        let readers = readers.into_values().chain((!prefetcher.is_empty()).then_some(prefetcher));
        let readers = readers.map(|steps| Reader { steps: steps.into_iter() });
        let scenario =
            Scenario { files, opens, readers: readers.collect(), limits: Limits::default() };
        let machine = SimMachine {
            read_ahead: windows.iter().copied().max().unwrap_or(DEFAULT_WINDOW.to_kib_floor()),
            file_read_ahead: windows,
            file_tree: Some(Arc::clone(&self.file_tree)),
            costs: Costs::NONE,
            request_delay,
            seed,
            policy: changes.policy.clone(),
            ..SimMachine::new(self.model.spec.clone())
        };
        let mut outcome = sim::run_lists(&machine, scenario).map_err(|error| error.to_string())?;
        outcome.readers.truncate(lanes.len());
        Ok(Simulated { outcome, lanes })
    }

    /// Returns the advice calls with which `--prove` prefetches, for [`FixChange::Prefetched`].
    fn prefetcher(
        &self,
        changes: &Changes<'_>,
        places: &BTreeMap<u32, u32>,
        opens: &mut Vec<SimOpenFile>,
    ) -> Vec<ReadStep> {
        let prefetched =
            changes.streams.iter().filter(|(_, change)| ***change == FixChange::Prefetched);
        // Other files may be on another device.
        let inodes = prefetched.map(|(key, _)| key.0).filter(|inode| places.contains_key(inode));
        let inodes: BTreeSet<u32> = inodes.collect();
        let read = self.steps.iter().filter(|step| step.advice.is_none() && !step.is_warm);
        let read = read.map(|step| (step.key.0, step.offset, step.length));
        let submitted = self.recording.submitted.iter();
        let submitted = submitted.map(|it| (it.inode, it.offset.get(), it.length.get()));
        let wanted = read.chain(submitted).filter(|(inode, ..)| inodes.contains(inode));
        let mut open_of = BTreeMap::new();
        let mut steps = Vec::new();
        for (inode, start, end) in in_place_order(self.recording, wanted) {
            let open = *open_of.entry(inode).or_insert_with(|| {
                let file = places[&inode];
                let method = AccessMethod::Read;
                let hint = Hint::Random;
                opens.push(SimOpenFile { hint, ..SimOpenFile::new(file, method) });
                opens.len() as u32 - 1
            });
            for offset in (start..end).step_by(ADVICE_BYTES as usize) {
                steps.push(ReadStep {
                    open,
                    offset: Bytes::new(offset),
                    length: Bytes::new(ADVICE_BYTES.min(end - offset)),
                    class: AccessClass::Stream,
                    start: Start::After(Nanos::ZERO),
                    advice: Some(RangeAdvice::WillNeed),
                });
            }
        }
        steps
    }

    /// Returns the files, the index of each by inode, and the window of each.
    fn files(&self, changes: &Changes<'_>) -> (Vec<FileOnDisk>, BTreeMap<u32, u32>, Vec<Kib>) {
        let inodes = inodes_of(&self.streams);
        let (mut files, mut places, mut windows) = (Vec::new(), BTreeMap::new(), Vec::new());
        let reached = self.reached();
        let known = inodes.iter().map(|inode| {
            let reached = reached.get(inode).copied().unwrap_or(0);
            let file = self.file(*inode);
            (file.start, reached.max(file.size.get()).max(PAGE_BYTES))
        });
        let known: Vec<(Option<Bytes>, u64)> = known.collect();
        let starts = starts(&known, self.model.spec.capacity());
        for ((inode, (_, size)), start) in inodes.into_iter().zip(known).zip(starts) {
            places.insert(inode, files.len() as u32);
            files.push(FileOnDisk {
                size: Bytes::new(size),
                start: Bytes::new(start),
                layout: FileLayout::Contiguous,
                pieces: None,
            });
            let of_file = changes.streams.range((inode, 0)..=(inode, u64::MAX));
            let set = of_file.map(|(_, change)| *change).find_map(|change| match change {
                FixChange::SetWindow(window) => Some(*window),
                _ => None,
            });
            let window = changes.window.or(set).unwrap_or_else(|| self.window(inode));
            windows.push(window.to_kib_floor());
        }
        (files, places, windows)
    }

    fn file(&self, inode: u32) -> &crate::recording::ProfiledFile {
        &self.recording.files[inode as usize]
    }

    /// Returns the end of the furthest step in each file.
    fn reached(&self) -> BTreeMap<u32, u64> {
        let mut reached = BTreeMap::new();
        for step in self.steps.iter().filter(|step| step.advice.is_none()) {
            let end: &mut u64 = reached.entry(step.key.0).or_default();
            *end = (*end).max(step.offset + step.length);
        }
        reached
    }

    /// Returns a file's window without advice: `SEQUENTIAL` doubles that of an open file.
    fn window(&self, inode: u32) -> Bytes {
        let streams = self.streams.iter().filter(|stream| stream.inode == inode);
        let seen = streams.filter_map(|stream| {
            let seen = stream.accesses(self.recording).map(|access| access.window_limit).max()?;
            Some(if self.is_sequential(stream) { Bytes::new(seen.get() / 2) } else { seen })
        });
        let seen = seen.max().filter(|window| !window.is_zero());
        let device = self.file(inode).id.device;
        let of_device = || self.recording.read_ahead.get(&device).copied();
        seen.or_else(of_device).unwrap_or(DEFAULT_WINDOW)
    }

    /// Returns whether the program advised sequential reads on its open file.
    fn is_sequential(&self, stream: &FileStream) -> bool {
        let mut advice = stream.advice(self.recording, true);
        stream.file != 0
            && advice
                .any(|one| one.call == AdviceCallKind::Fadvise && one.advice == SEQUENTIAL_VALUE)
    }

    fn open(&self, key: StreamKey, file: u32, change: Option<&FixChange>) -> SimOpenFile {
        let is_mapped = key.1 == 0;
        let stream = self.streams.iter().find(|one| (one.inode, one.file) == key);
        let accesses = || stream.iter().flat_map(|stream| stream.accesses(self.recording));
        let (all, random) = (accesses().count(), accesses().filter(|it| it.is_random).count());
        let direct = accesses().any(|it| it.is_direct);
        let without_windows =
            is_mapped && all > 0 && accesses().all(|it| it.submitted.get() <= 4 * PAGE_BYTES);
        let is_random = random * 2 > all || without_windows || direct;
        let hint = match change {
            Some(FixChange::DropRandom | FixChange::Chunks(_)) => Hint::None,
            Some(FixChange::SinglePages | FixChange::AskedPieces) => Hint::Random,
            _ if is_random => Hint::Random,
            _ if stream.is_some_and(|stream| self.is_sequential(stream)) => Hint::Sequential,
            _ => Hint::None,
        };
        let method = if is_mapped { AccessMethod::Mmap } else { AccessMethod::Read };
        let code = self.code.get(&key.0).copied().filter(|_| is_mapped);
        let missed = || accesses().filter(|it| !it.submitted.is_zero());
        let only_mapped = missed().filter(|it| it.only_mapped).count() * 2 > missed().count();
        SimOpenFile { file, method, hint, code, only_mapped }
    }
}

/// Returns where each file starts on a device of this capacity, in bytes. Its own start, if that is
/// known, and its size are given. Other files follow those with a start, or end with the device.
fn starts(files: &[(Option<Bytes>, u64)], capacity: Bytes) -> Vec<u64> {
    let pages = |size: &u64| size.next_multiple_of(PAGE_BYTES);
    let ends = files.iter().filter_map(|(start, size)| Some(start.as_ref()?.get() + pages(size)));
    let unknown: u64 =
        files.iter().filter(|(start, _)| start.is_none()).map(|(_, size)| pages(size)).sum();
    let mut free = ends.max().unwrap_or(0).min(capacity.get().saturating_sub(unknown));
    let start = |(start, size): &(Option<Bytes>, u64)| {
        let next = free;
        if start.is_none() {
            free += pages(size);
        }
        start.map_or(next, Bytes::get)
    };
    files.iter().map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_place_is_unknown_follows_the_others_and_moves_none() {
        let at = |start| Some(Bytes::new(start));
        let files = [(None, 5000), (at(1 << 20), 100), (None, 1), (at(0), 4096)];
        let large = Bytes::from_gib(1);
        let mib = 1 << 20;
        assert_eq!(starts(&files, large), [mib + 4096, mib, mib + 3 * 4096, 0]);
        assert_eq!(starts(&[(None, 5000), (None, 1)], large), [0, 8192]);
    }

    #[test]
    fn a_file_whose_place_is_unknown_is_within_the_device() {
        let files = [(Some(Bytes::from_mib(1)), 5000), (None, 5000), (None, 1)];
        let end = (1 << 20) + 8192;
        assert_eq!(starts(&files, Bytes::new(end))[1..], [end - 3 * 4096, end - 4096]);
    }
}
