//! The control loop of `auto` and `run`: it collects events, samples state, decides and acts.
//!
//! It does no I/O itself, so the same loop drives a live kernel and a simulated one.

use std::collections::BTreeMap;
use std::fmt;

use policy::{AccessEvent, DeviceCompletions, OpenFileId};
use serde::{Deserialize, Serialize};
use units::{Nanos, PageSize, Pages};

use crate::ab_test::{AbTest, TreatmentEffect};
use crate::action::{DirectoryQuery, FileAction};
use crate::controller::BdiController;
use crate::inputs::{Bounds, FileKey, FileState, Inputs, MemoryInputs, SampledFiles};
use crate::tuning::Tuning;

/// A key that the back end assigns to a bdi under control.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BdiKey(pub u32);

/// The events and the state of a bdi since the last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BdiSample {
    /// Limits for its open files. Only `samples` may change after the first sample.
    pub bounds: Bounds,
    /// Cumulative completions of its devices.
    pub completions: DeviceCompletions,
    /// Events of readers of its files, oldest first.
    pub events: Vec<(FileKey, AccessEvent)>,
}

/// The state of all bdis and of memory after an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopSample {
    /// The time of the sample, on the clock of the events.
    pub now: Nanos,
    pub bdis: BTreeMap<BdiKey, BdiSample>,
    pub memory: MemoryInputs,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The open file whose directory this is.
    pub file: OpenFileId,
    /// The files of the directory, in each order in which a program may read them.
    pub orders: Vec<Vec<FileKey>>,
}

/// The part of a back end that observes: it collects events and samples state.
pub trait EventSource {
    type Error;

    /// Returns the time, on the clock of the events.
    fn now(&self) -> Nanos;

    /// Collects the events since the last call. Returns whether anything was read from a disk.
    fn poll(&mut self) -> bool;

    /// Returns the collected events and a sample of the state. The controllers follow the open
    /// files `followed`, and will request their states.
    ///
    /// # Errors
    ///
    /// If the back end can no longer observe.
    fn sample(
        &mut self,
        followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, Self::Error>;

    /// Returns the state of an open file of a bdi at the last sample; `None` if it is closed.
    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState>;

    /// Samples accesses to these files of a bdi, including cached pages, until the next call. A
    /// back end that cannot sample reports only misses.
    fn sample_accesses(&mut self, _bdi: BdiKey, _files: &SampledFiles) {}

    /// Finds the directory of the first of the files that is open, in this call or a later one.
    fn find_directory(&mut self, bdi: BdiKey, query: &DirectoryQuery) -> Option<Listing>;

    /// Returns the path of an open file for display; `None` if it is unknown.
    fn path(&self, _file: OpenFileId) -> Option<String> {
        None
    }
}

/// A change of a bdi's window by another process, described in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalChange(pub String);

/// The number of open files whose windows were changed and restored when control of a bdi ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Open files whose windows had been changed.
    pub changed: usize,
    /// Those whose original windows were restored. Unless windows are kept, the others are closed.
    pub restored: usize,
}

impl std::ops::AddAssign for Released {
    fn add_assign(&mut self, other: Self) {
        self.changed += other.changed;
        self.restored += other.restored;
    }
}

pub trait ActionSink: EventSource {
    /// Processes the results of earlier actions. The loop calls it in every step that samples.
    ///
    /// # Errors
    ///
    /// If actions can no longer be carried out.
    fn maintain(&mut self) -> Result<(), Self::Error>;

    /// Carries out actions on open files of a bdi.
    ///
    /// # Errors
    ///
    /// If actions can no longer be carried out. A single failed action is reported instead.
    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, Self::Error>;

    /// Sets the window of files of a bdi that are opened from now on; `None` is the bdi's own
    /// window. Does nothing where the window of the bdi cannot be set.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn set_new_file_window(
        &mut self,
        _bdi: BdiKey,
        _window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, Self::Error> {
        Ok(Ok(()))
    }

    /// Reports actions without carrying them out.
    ///
    /// # Errors
    ///
    /// If they cannot be reported.
    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), Self::Error>;

    /// Checks whether another process has changed the window of a bdi.
    ///
    /// # Errors
    ///
    /// If the window cannot be read.
    fn check_external_change(
        &mut self,
        bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, Self::Error>;

    /// Keeps the directory that was found last, or releases it.
    fn keep_directory(&mut self, bdi: BdiKey, keep: bool);

    /// Restores the original windows of the bdi and of its open files.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn restore(&mut self, bdi: BdiKey) -> Result<(), Self::Error>;

    /// Sets the windows of open files again that they had before they were restored.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn reapply(&mut self, bdi: BdiKey) -> Result<(), Self::Error>;

    /// Stops managing a bdi; with `leave`, open files keep their windows.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, Self::Error>;

    /// Reports a change of the state of the loop.
    fn note(&mut self, note: &LoopNote);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopState {
    Acting,
    /// The loop only reports the actions that it would take.
    Advising,
    /// The loop has restored all windows and waits until memory pressure is over.
    MemoryPressure,
    /// The loop has restored all windows because the A/B test has shown harm.
    Harmful,
    /// The loop no longer manages any bdi.
    Unmanaged(ExternalChange),
}

/// The text that `auto status` shows.
impl fmt::Display for LoopState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acting => f.write_str("acting"),
            Self::Advising => f.write_str("advising"),
            Self::MemoryPressure => f.write_str("waiting: memory pressure"),
            Self::Harmful => f.write_str("stopped: readers are slower with it, see the effect"),
            Self::Unmanaged(ExternalChange(why)) => write!(f, "no longer managing: {why}"),
        }
    }
}

/// A change of the state of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopNote {
    /// The loop has restored all windows and takes no action in this state.
    Stopped(LoopState),
    /// Memory pressure is over, and control resumes.
    Resumed,
    /// The loop no longer manages a bdi; its open files keep their windows.
    Unmanaged(BdiKey, ExternalChange),
}

#[derive(Clone, Debug)]
pub struct LoopConfig {
    /// Report actions instead of carrying them out.
    pub dry_run: bool,
    /// Whether files that any process opens later may get another window than the bdi's own.
    pub new_files: bool,
    /// Keep the changed windows when the loop ends.
    pub leave: bool,
    pub ab_test: Option<AbTest>,
    pub page: PageSize,
    pub tuning: Tuning,
}

#[derive(Clone, Debug)]
struct ManagedBdi {
    controller: BdiController,
    is_managed: bool,
}

/// The control loop, with a controller for each bdi.
#[derive(Clone, Debug)]
pub struct ControlLoop {
    config: LoopConfig,
    bdis: BTreeMap<BdiKey, ManagedBdi>,
    state: LoopState,
    /// Whether the current slot of the A/B test is a treatment slot; true without a test.
    is_treated: bool,
    /// Since when memory pressure has disagreed with `state`.
    pressure_since: Option<Nanos>,
    /// The times of the last read from a disk and of the last sample.
    last_read: Option<Nanos>,
    last_sample: Option<Nanos>,
}

impl ControlLoop {
    pub fn new(config: LoopConfig) -> Self {
        let is_treated = config.ab_test.as_ref().is_none_or(AbTest::is_treated);
        let state = if config.dry_run { LoopState::Advising } else { LoopState::Acting };
        Self {
            config,
            bdis: BTreeMap::new(),
            state,
            is_treated,
            pressure_since: None,
            last_read: None,
            last_sample: None,
        }
    }

    pub fn state(&self) -> &LoopState {
        &self.state
    }

    pub fn controllers(&self) -> impl Iterator<Item = (BdiKey, &BdiController)> {
        self.bdis.iter().map(|(key, bdi)| (*key, &bdi.controller))
    }

    /// Returns the effect that the A/B test has measured so far; `None` if there is none yet.
    pub fn effect(&self) -> Option<TreatmentEffect> {
        self.config.ab_test.as_ref().and_then(AbTest::effect)
    }

    /// Returns the delay before the next step: at most `interval`, and less while readers are idle
    /// or have just started. `step` is the duration of the last step.
    pub fn next_delay(&self, interval: Nanos, step: Nanos) -> Nanos {
        let wanted = self.bdis.values().map(|bdi| bdi.controller.next_delay(interval)).min();
        wanted.unwrap_or(interval).max(step * self.config.tuning.min_pause_steps).min(interval)
    }

    /// Runs one interval: collects events, decides and acts.
    ///
    /// # Errors
    ///
    /// If the back end can no longer observe or act.
    pub fn step<B: ActionSink>(&mut self, backend: &mut B) -> Result<(), B::Error> {
        let read = backend.poll();
        let now = backend.now();
        if read || self.last_read.is_none() {
            self.last_read = Some(now);
        }
        let since = |at: Option<Nanos>| at.map_or(Nanos::MAX, |at| now.saturating_sub(at));
        let is_idle = since(self.last_read) > self.config.tuning.loop_idle_timeout();
        if is_idle {
            // Files opened next may be read in another way. A change by another process is detected
            // before the next action.
            for key in self.managed() {
                drop(backend.set_new_file_window(key, None)?);
            }
            if since(self.last_sample) < self.config.tuning.idle_sample_interval() {
                return Ok(());
            }
        }
        self.last_sample = Some(now);
        let mut followed = self.bdis.values().flat_map(|bdi| bdi.controller.keys());
        let mut sample = backend.sample(&mut followed)?;
        drop(followed);
        for (key, bdi) in &mut sample.bdis {
            let managed = self.bdis.entry(*key).or_insert_with(|| ManagedBdi {
                controller: BdiController::new(bdi.bounds, self.config.page),
                is_managed: true,
            });
            // Access sampling may become unavailable at any time.
            managed.controller.set_samples(bdi.bounds.samples);
            for (file, event) in bdi.events.drain(..) {
                managed.controller.on_event(file, &event);
            }
        }
        backend.maintain()?;
        self.alternate(sample.now, backend)?;
        self.on_memory_pressure(sample.now, sample.memory.under_pressure, backend)?;
        let mut inputs = Inputs {
            now: sample.now,
            completions: DeviceCompletions::default(),
            memory: sample.memory,
        };
        for (key, bdi) in sample.bdis {
            inputs.completions = bdi.completions;
            self.control(key, &inputs, is_idle, backend)?;
        }
        Ok(())
    }

    /// Decides on actions for one bdi, and carries them out.
    fn control<B: ActionSink>(
        &mut self,
        key: BdiKey,
        inputs: &Inputs,
        is_idle: bool,
        backend: &mut B,
    ) -> Result<(), B::Error> {
        let acts = self.state == LoopState::Acting && self.is_treated;
        let Some(bdi) = self.bdis.get_mut(&key) else { return Ok(()) };
        let controller = &mut bdi.controller;
        controller.pause(!acts && !self.config.dry_run);
        let mut actions = controller.decide(inputs, |file| backend.file_state(key, file));
        backend.keep_directory(key, controller.follows_files());
        let query = controller.wants_directory(inputs.now);
        if let Some(listing) = backend.find_directory(key, &query) {
            actions.extend(controller.on_directory(listing.file, listing.orders, inputs));
            backend.keep_directory(key, controller.follows_files());
        }
        backend.sample_accesses(key, &controller.wants_samples(inputs.now));
        if self.config.dry_run {
            return backend.advise(key, actions);
        }
        if !acts || !bdi.is_managed {
            return Ok(());
        }
        let new_file_window = controller.new_file_window();
        let mut result = backend.check_external_change(key)?;
        if result.is_ok() {
            result = backend.act(key, actions)?;
        }
        if result.is_ok() && self.config.new_files && !is_idle {
            result = backend.set_new_file_window(key, new_file_window)?;
        }
        let Err(change) = result else { return Ok(()) };
        bdi.is_managed = false;
        backend.release(key, true)?;
        backend.note(&LoopNote::Unmanaged(key, change.clone()));
        if self.bdis.values().all(|bdi| !bdi.is_managed) {
            self.state = LoopState::Unmanaged(change);
        }
        Ok(())
    }

    fn managed(&self) -> Vec<BdiKey> {
        let managed = self.bdis.iter().filter(|(_, bdi)| bdi.is_managed);
        if self.config.dry_run { Vec::new() } else { managed.map(|(key, _)| *key).collect() }
    }

    /// Advances the A/B test, if there is one. A new kind of slot reapplies or restores windows.
    fn alternate<B: ActionSink>(&mut self, now: Nanos, backend: &mut B) -> Result<(), B::Error> {
        if !matches!(self.state, LoopState::Acting | LoopState::MemoryPressure) {
            return Ok(());
        }
        let Some(test) = &mut self.config.ab_test else { return Ok(()) };
        let got = self.bdis.values().map(|bdi| bdi.controller.progress()).sum();
        let is_treated = test.tick(now, got, self.config.tuning.minority_share);
        let is_harm = test.effect().is_some_and(|effect| effect.is_harm());
        if is_treated != self.is_treated {
            self.is_treated = is_treated;
            // Under memory pressure, all windows are already restored.
            let keys = if self.state == LoopState::Acting { self.managed() } else { Vec::new() };
            for key in keys {
                if is_treated { backend.reapply(key)? } else { backend.restore(key)? }
            }
        }
        if is_harm {
            self.stop(LoopState::Harmful, backend)?;
        }
        Ok(())
    }

    /// Restores all windows if memory pressure lasts, and resumes control after it.
    fn on_memory_pressure<B: ActionSink>(
        &mut self,
        now: Nanos,
        under_pressure: bool,
        backend: &mut B,
    ) -> Result<(), B::Error> {
        let changes = match self.state {
            LoopState::Acting => under_pressure,
            LoopState::MemoryPressure => !under_pressure,
            LoopState::Advising | LoopState::Harmful | LoopState::Unmanaged(_) => false,
        };
        if !changes {
            self.pressure_since = None;
            return Ok(());
        }
        let since = *self.pressure_since.get_or_insert(now);
        if now.saturating_sub(since) <= self.config.tuning.fade_time {
            return Ok(());
        }
        self.pressure_since = None;
        if self.state == LoopState::Acting {
            return self.stop(LoopState::MemoryPressure, backend);
        }
        self.state = LoopState::Acting;
        backend.note(&LoopNote::Resumed);
        Ok(())
    }

    /// Restores all windows and enters `state`, in which the loop takes no action.
    fn stop<B: ActionSink>(&mut self, state: LoopState, backend: &mut B) -> Result<(), B::Error> {
        for key in self.managed() {
            backend.restore(key)?;
        }
        backend.note(&LoopNote::Stopped(state.clone()));
        self.state = state;
        Ok(())
    }

    /// Stops managing all bdis. Restores their windows unless `leave` is configured.
    ///
    /// # Errors
    ///
    /// The first error. The other bdis are restored nevertheless.
    pub fn end<B: ActionSink>(self, backend: &mut B) -> Result<Released, B::Error> {
        let (mut all, mut failed) = (Released::default(), None);
        for key in self.managed() {
            match backend.release(key, self.config.leave) {
                Ok(released) => all += released,
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(all), Err)
    }
}
