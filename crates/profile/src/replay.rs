//! The recorded accesses in the simulator, unchanged and changed.

use std::collections::{BTreeMap, BTreeSet};

use model::layout::FileLayout;
use sim::{Costs, FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, Start};
use units::{Bytes, Kib, Nanos};
use workload::{AccessClass, AccessMethod, Hint};

use crate::device::DeviceModel;
use crate::recording::{FileAccess, PAGE_BYTES, ProfileRecording};
use crate::rewrite::{Changes, rewritten};
use crate::rules::FixChange;
use crate::steps::{Step, steps};
use crate::stream::{FileStream, StreamKey};
use crate::warm::WarmAccesses;

/// The replay may be off by this share of the recorded waits.
const MAX_REPLAY_ERROR: f64 = 0.2;
/// The window of files whose window was not seen: the kernel's default.
const DEFAULT_WINDOW: Bytes = Bytes::from_kib(128);

/// What a replay took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayTimes {
    pub elapsed: Nanos,
    pub waited: Nanos,
    /// Bytes that the device read.
    pub read: Bytes,
}

/// The accesses of some streams, on a device.
#[derive(Debug)]
pub(crate) struct ProfileReplay<'a> {
    recording: &'a ProfileRecording,
    streams: Vec<&'a FileStream>,
    steps: Vec<Step>,
    model: &'a DeviceModel,
    /// Unchanged.
    pub times: ReplayTimes,
    /// How far its waits are off, as a share.
    pub error: f64,
}

impl<'a> ProfileReplay<'a> {
    /// Replays the accesses unchanged.
    ///
    /// # Errors
    ///
    /// If they do not wait as long as they did when they were recorded.
    pub(crate) fn new(
        recording: &'a ProfileRecording,
        streams: Vec<&'a FileStream>,
        warm: &WarmAccesses,
        model: &'a DeviceModel,
    ) -> Result<Self, String> {
        let waited: Nanos = streams.iter().map(|stream| stream.waited).sum();
        let steps = steps(recording, &streams, warm);
        let times = ReplayTimes { elapsed: Nanos::ZERO, waited, read: Bytes::ZERO };
        let mut replay = Self { recording, streams, steps, model, times, error: 0.0 };
        replay.times = replay.run(&Changes::default())?;
        let simulated = replay.times.waited.as_millis_f64();
        let recorded = waited.as_millis_f64();
        replay.error = (simulated - recorded).abs() / recorded.max(1e-6);
        if replay.error > MAX_REPLAY_ERROR {
            return Err(format!(
                "the replay waits {simulated:.0} ms where {recorded:.0} ms were recorded"
            ));
        }
        Ok(replay)
    }

    /// What was recorded as waits of these streams.
    pub(crate) fn recorded(&self) -> Nanos {
        self.streams.iter().map(|stream| stream.waited).sum()
    }

    /// Replays the accesses with changes.
    pub(crate) fn run(&self, changes: &Changes<'_>) -> Result<ReplayTimes, String> {
        let (files, places, windows) = self.files(changes);
        let dilation = self.model.dilation;
        let mut opens: Vec<SimOpenFile> = Vec::new();
        let mut open_of: BTreeMap<(StreamKey, u32), u32> = BTreeMap::new();
        let mut readers: BTreeMap<u32, Vec<ReadStep>> = BTreeMap::new();
        for (reader, step) in rewritten(&self.steps, changes) {
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
                advice: None,
            });
        }
        let readers = readers.into_values().map(|steps| Reader { steps: steps.into_iter() });
        let scenario =
            Scenario { files, opens, readers: readers.collect(), limits: Limits::default() };
        let machine = SimMachine {
            read_ahead: windows.iter().copied().max().unwrap_or(DEFAULT_WINDOW.to_kib_floor()),
            file_read_ahead: windows,
            costs: Costs::NONE,
            policy: changes.policy.clone(),
            ..SimMachine::new(self.model.spec.clone())
        };
        let outcome = sim::run(&machine, scenario).map_err(|error| error.to_string())?;
        Ok(ReplayTimes {
            elapsed: outcome.elapsed.scaled(dilation),
            waited: outcome.stalled().scaled(dilation),
            read: outcome.device.bytes,
        })
    }

    /// Files with their places, and the window of each.
    fn files(&self, changes: &Changes<'_>) -> (Vec<FileOnDisk>, BTreeMap<u32, u32>, Vec<Kib>) {
        let inodes: BTreeSet<u32> = self.streams.iter().map(|stream| stream.inode).collect();
        let (mut files, mut places, mut windows) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut free = 0_u64;
        let all_placed = inodes.iter().all(|inode| self.file(*inode).start.is_some());
        for inode in inodes {
            let file = self.file(inode);
            let size = self.reached(inode).max(file.size.get()).max(PAGE_BYTES);
            let start = file.start.filter(|_| all_placed).map_or(free, Bytes::get);
            free = free.max(start) + size.next_multiple_of(PAGE_BYTES);
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

    fn of_inode(&self, inode: u32) -> impl Iterator<Item = &FileAccess> {
        let streams = self.streams.iter().filter(move |stream| stream.inode == inode);
        streams.flat_map(|stream| stream.accesses(self.recording))
    }

    /// The end of the furthest access.
    fn reached(&self, inode: u32) -> u64 {
        self.of_inode(inode).map(|it| (it.offset + it.length).get()).max().unwrap_or(0)
    }

    fn window(&self, inode: u32) -> Bytes {
        let seen = self.of_inode(inode).map(|access| access.window_limit).max();
        let seen = seen.filter(|window| !window.is_zero());
        let any = || self.recording.accesses.iter().map(|access| access.window_limit).max();
        seen.or_else(any).filter(|window| !window.is_zero()).unwrap_or(DEFAULT_WINDOW)
    }

    fn open(&self, key: StreamKey, file: u32, change: Option<&FixChange>) -> SimOpenFile {
        let is_mapped = key.1 == 0;
        let stream = self.streams.iter().find(|one| (one.inode, one.file) == key);
        let accesses = || stream.iter().flat_map(|stream| stream.accesses(self.recording));
        let (all, random) = (accesses().count(), accesses().filter(|it| it.is_random).count());
        let direct = accesses().any(|it| it.is_direct);
        let without_windows =
            is_mapped && accesses().all(|it| it.submitted.get() <= 4 * PAGE_BYTES);
        let is_random = random * 2 > all || without_windows || direct;
        let hint = match change {
            Some(FixChange::DropRandom | FixChange::Chunks(_)) => Hint::None,
            Some(FixChange::SinglePages) => Hint::Random,
            _ if is_random => Hint::Random,
            _ => Hint::None,
        };
        let method = if is_mapped { AccessMethod::Mmap } else { AccessMethod::Read };
        SimOpenFile { file, method, hint }
    }
}
