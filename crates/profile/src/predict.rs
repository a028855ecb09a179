//! What a fix would win: the recorded accesses in the simulator, unchanged and changed.

use std::collections::{BTreeMap, BTreeSet};

use model::Spec;
use model::layout::FileLayout;
use sim::{Costs, FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, Start};
use units::{Bytes, Kib, Nanos};
use workload::{AccessClass, AccessMethod, Hint};

use crate::recording::{AccessKind, FileAccess, ProfileRecording};
use crate::rules::FixChange;
use crate::stream::FileStream;

/// The replay may be off by this share of the recorded waits.
const MAX_REPLAY_ERROR: f64 = 0.2;
/// The window of files whose window was not seen: the kernel's default.
const DEFAULT_WINDOW: Bytes = Bytes::from_kib(128);

/// What was predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub saved: Nanos,
    /// How far the replay was off, as a share.
    pub error: f64,
}

/// A step and what it belongs to, before the change is applied.
#[derive(Clone, Copy, Debug)]
struct Step {
    key: (u32, u64),
    tid: u32,
    offset: u64,
    length: u64,
    think: u64,
    goes_on: bool,
}

/// The accesses of some streams.
struct Replay<'a> {
    recording: &'a ProfileRecording,
    streams: Vec<&'a FileStream>,
    waited: Nanos,
    model: &'a Spec,
}

/// Predicts what a change of these streams wins.
///
/// # Errors
///
/// Why it cannot be predicted.
pub(crate) fn predict(
    recording: &ProfileRecording,
    streams: Vec<&FileStream>,
    change: &FixChange,
    model: &Spec,
) -> Result<Prediction, String> {
    let waited: Nanos = streams.iter().map(|stream| stream.waited).sum();
    let replay = Replay { recording, streams, waited, model };
    let steps = replay.steps();
    let (recorded, _) = replay.run(&steps, None)?;
    let simulated = recorded.stalled();
    let error = (simulated.get() as f64 - waited.get() as f64).abs() / waited.get().max(1) as f64;
    if error > MAX_REPLAY_ERROR {
        return Err(format!(
            "the replay waits {:.0} ms where {:.0} ms were recorded",
            simulated.as_millis_f64(),
            waited.as_millis_f64()
        ));
    }
    let thinking: u64 = steps.iter().map(|step| step.think).sum();
    let (changed, _) = replay.run(&steps, Some(change))?;
    let saved = match change {
        // Prefetching overlaps with the program's own work.
        FixChange::Parallel(_) => {
            let after = changed.elapsed.get().max(thinking);
            recorded.elapsed.get().saturating_sub(after)
        }
        _ => recorded.elapsed.saturating_sub(changed.elapsed).get(),
    };
    Ok(Prediction { saved: Nanos::new(saved).min(replay.waited), error })
}

impl Replay<'_> {
    /// The steps of all threads, each thread's in order.
    fn steps(&self) -> Vec<Step> {
        let mut accesses: Vec<&FileAccess> =
            self.streams.iter().flat_map(|stream| stream.accesses(self.recording)).collect();
        accesses.sort_by_key(|access| (access.tid, access.start));
        let first = accesses.iter().map(|access| access.start).min().unwrap_or_default();
        let mut steps = Vec::new();
        let mut last: Option<&FileAccess> = None;
        for (index, access) in accesses.iter().enumerate() {
            let before = last.filter(|last| last.tid == access.tid);
            let since = before.map_or(first, |last| last.end);
            let idle = access.start.saturating_sub(since).get();
            let working =
                access.end.saturating_sub(access.start).saturating_sub(access.blocked).get();
            let calls = u64::from(access.calls);
            let length = access.length.get() / calls.max(1);
            let next = accesses.get(index + 1).filter(|next| next.tid == access.tid);
            let length = match access.kind {
                AccessKind::Fault => mapped_length(access, next.copied()),
                AccessKind::Read => length,
            };
            for call in 0..calls {
                let offset = access.offset.get() + call * length;
                let goes_on = call > 0 || before.is_some_and(|last| follows(last, access));
                let think = working / calls + if call == 0 { idle } else { 0 };
                let key = (access.inode, access.file);
                steps.push(Step { key, tid: access.tid, offset, length, think, goes_on });
            }
            last = Some(access);
        }
        steps
    }

    /// Runs the steps with or without a change.
    fn run(
        &self,
        steps: &[Step],
        change: Option<&FixChange>,
    ) -> Result<(sim::SimOutcome, usize), String> {
        let (files, places, windows) = self.files(change);
        let mut opens: Vec<SimOpenFile> = Vec::new();
        let mut open_of: BTreeMap<(u32, u64, u32), u32> = BTreeMap::new();
        let own = change == Some(&FixChange::OwnOpenFiles);
        let mut readers: BTreeMap<u32, Vec<ReadStep>> = BTreeMap::new();
        let changed = changed_steps(steps, change);
        for (reader, step) in &changed {
            let tid = if own { step.tid } else { 0 };
            let open = *open_of.entry((step.key.0, step.key.1, tid)).or_insert_with(|| {
                opens.push(self.open(step.key, places[&step.key.0], change));
                opens.len() as u32 - 1
            });
            readers.entry(*reader).or_default().push(ReadStep {
                open,
                offset: Bytes::new(step.offset),
                length: Bytes::new(step.length),
                class: AccessClass::Stream,
                start: Start::After(Nanos::new(step.think)),
                advice: None,
            });
        }
        let scenario = Scenario {
            files,
            opens,
            readers: readers
                .into_values()
                .map(|steps| Reader { steps: steps.into_iter() })
                .collect(),
            limits: Limits::default(),
        };
        let machine = SimMachine {
            file_read_ahead: windows,
            costs: Costs::NONE,
            ..SimMachine::new(self.model.clone())
        };
        let outcome = sim::run(&machine, scenario).map_err(|error| error.to_string())?;
        Ok((outcome, changed.len()))
    }

    /// Files with their places, and the window of each.
    fn files(&self, change: Option<&FixChange>) -> (Vec<FileOnDisk>, BTreeMap<u32, u32>, Vec<Kib>) {
        let inodes: BTreeSet<u32> = self.streams.iter().map(|stream| stream.inode).collect();
        let (mut files, mut places, mut windows) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut free = 0_u64;
        let all_placed = inodes.iter().all(|inode| self.file(*inode).start.is_some());
        for inode in inodes {
            let file = self.file(inode);
            let size = self.reached(inode).max(file.size.get()).max(4096);
            let start = file.start.filter(|_| all_placed).map_or(free, Bytes::get);
            free = free.max(start) + size.next_multiple_of(4096);
            places.insert(inode, files.len() as u32);
            files.push(FileOnDisk {
                size: Bytes::new(size),
                start: Bytes::new(start),
                layout: FileLayout::Contiguous,
                pieces: None,
            });
            let window = match change {
                Some(FixChange::SetWindow(window)) => *window,
                _ => self.window(inode),
            };
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

    fn open(&self, key: (u32, u64), file: u32, change: Option<&FixChange>) -> SimOpenFile {
        let is_mapped = key.1 == 0;
        let stream = self.streams.iter().find(|one| (one.inode, one.file) == key);
        let accesses = || stream.iter().flat_map(|stream| stream.accesses(self.recording));
        let (all, random) = (accesses().count(), accesses().filter(|it| it.is_random).count());
        let direct = accesses().any(|it| it.is_direct);
        let without_windows = is_mapped && accesses().all(|it| it.submitted.get() <= 4 * 4096);
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

/// What a fault stands for: up to the next one if that goes on, as what it maps along with its own
/// page does not fault.
fn mapped_length(access: &FileAccess, next: Option<&FileAccess>) -> u64 {
    let next = next.filter(|next| next.inode == access.inode && next.kind == access.kind);
    let gap = next.and_then(|next| next.offset.get().checked_sub(access.offset.get()));
    gap.filter(|gap| (4096..=64 << 10).contains(gap)).unwrap_or(access.length.get())
}

fn follows(last: &FileAccess, next: &FileAccess) -> bool {
    (last.inode, last.file) == (next.inode, next.file) && last.offset + last.length == next.offset
}

/// The steps under a change, each with its reader.
fn changed_steps(steps: &[Step], change: Option<&FixChange>) -> Vec<(u32, Step)> {
    match change {
        Some(FixChange::Chunks(size)) => chunked(steps, size.get().max(4096)),
        Some(FixChange::WholeRuns) => whole_runs(steps),
        Some(FixChange::Parallel(readers)) => {
            let readers = u64::from((*readers).max(1));
            let mut jobs = 0_u64;
            let mut parallel = Vec::new();
            for step in steps {
                jobs += u64::from(!step.goes_on);
                let step = Step { think: 0, ..*step };
                parallel.push(((jobs % readers) as u32, step));
            }
            parallel
        }
        _ => steps.iter().map(|step| (step.tid, *step)).collect(),
    }
}

/// Reads whole aligned pieces at the first access of each; the rest only takes the program's time.
fn chunked(steps: &[Step], size: u64) -> Vec<(u32, Step)> {
    let mut loaded: BTreeSet<((u32, u64), u64)> = BTreeSet::new();
    let mut result: Vec<(u32, Step)> = Vec::new();
    let mut thinking: BTreeMap<u32, u64> = BTreeMap::new();
    for step in steps {
        let waiting = thinking.entry(step.tid).or_default();
        *waiting += step.think;
        let last = (step.offset + step.length.max(1) - 1) / size;
        for chunk in step.offset / size..=last {
            if loaded.insert((step.key, chunk)) {
                let think = std::mem::take(waiting);
                result
                    .push((step.tid, Step { offset: chunk * size, length: size, think, ..*step }));
            }
        }
    }
    add_last(&mut result, &thinking);
    result
}

/// Reads a run of contiguous steps at once.
fn whole_runs(steps: &[Step]) -> Vec<(u32, Step)> {
    let mut result: Vec<(u32, Step)> = Vec::new();
    let mut thinking: BTreeMap<u32, u64> = BTreeMap::new();
    for step in steps {
        match result.last_mut() {
            Some((tid, run)) if step.goes_on && *tid == step.tid && run.key == step.key => {
                run.length += step.length;
                *thinking.entry(step.tid).or_default() += step.think;
            }
            _ => {
                let think = step.think + thinking.remove(&step.tid).unwrap_or(0);
                result.push((step.tid, Step { think, ..*step }));
            }
        }
    }
    add_last(&mut result, &thinking);
    result
}

/// Time after the last read is not lost: a thread re-reads its last byte after it.
fn add_last(result: &mut Vec<(u32, Step)>, thinking: &BTreeMap<u32, u64>) {
    for (tid, think) in thinking.iter().filter(|(_, think)| **think > 0) {
        if let Some((_, step)) = result.iter().rev().find(|(of, _)| of == tid).copied() {
            let step = Step { length: 1, think: *think, ..step };
            result.push((*tid, step));
        }
    }
}
