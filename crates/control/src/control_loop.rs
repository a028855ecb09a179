//! The loop of `auto` and `run`: collect events, sample the state of things, decide, act.
//!
//! It is pure, and the same above a live kernel and a simulated one.

use std::collections::BTreeMap;
use std::fmt;

use policy::{AccessEvent, DeviceCompletions, OpenFileId};
use serde::{Deserialize, Serialize};
use units::{Nanos, PageSize, Pages};

use crate::ab_test::{AbTest, TreatmentEffect};
use crate::action::FileAction;
use crate::controller::BdiController;
use crate::inputs::{Bounds, FileKey, FileState, Inputs, MemoryInputs, SampledFiles};
use crate::tuning::control_loop as tuning;

/// A bdi under control, by any number that the back end gives it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BdiKey(pub u32);

/// What was collected for a bdi, and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BdiSample {
    /// Bounds for its open files; they count when the bdi is seen first.
    pub bounds: Bounds,
    /// What its devices have completed so far.
    pub completions: DeviceCompletions,
    /// What happened to readers of its files, oldest first.
    pub events: Vec<(FileKey, AccessEvent)>,
}

/// The state of things after an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopSample {
    /// On the clock of the events.
    pub now: Nanos,
    pub bdis: BTreeMap<BdiKey, BdiSample>,
    pub memory: MemoryInputs,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The open file by which the directory was found.
    pub file: OpenFileId,
    /// Its files, in the orders in which they may be read.
    pub orders: Vec<Vec<FileKey>>,
}

/// Where events come from.
pub trait EventSource {
    type Error;

    /// The time, on the clock of the events.
    fn now(&self) -> Nanos;

    /// Collects what has happened since the last call. Whether anything was read from a disk.
    fn poll(&mut self) -> bool;

    /// Hands over what was collected, and samples the state of things. The controllers follow the
    /// open files `followed`, and will ask for their states.
    ///
    /// # Errors
    ///
    /// If nothing can be observed any more.
    fn sample(
        &mut self,
        followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, Self::Error>;

    /// The state of an open file of a bdi as of the last sample; `None` if it is closed.
    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState>;

    /// Samples accesses to these files of a bdi, cached pages included, until the next call. A back
    /// end that cannot do so reports misses only.
    fn sample_accesses(&mut self, _bdi: BdiKey, _files: &SampledFiles) {}

    /// The directory of one of these open files, the first that is open: at once, or in a later
    /// call.
    fn find_directory(&mut self, bdi: BdiKey, wanted: &[OpenFileId]) -> Option<Listing>;

    /// The path of an open file, for people, where it is known.
    fn path(&self, _file: OpenFileId) -> Option<String> {
        None
    }
}

/// Another process has changed the window of a bdi, as a sentence says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalChange(pub String);

/// What was restored when control of a bdi ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Open files whose windows had been changed.
    pub changed: usize,
    /// Those of them that have their first windows again. The others are closed.
    pub restored: usize,
}

impl std::ops::AddAssign for Released {
    fn add_assign(&mut self, other: Self) {
        self.changed += other.changed;
        self.restored += other.restored;
    }
}

pub trait ActionSink: EventSource {
    /// Takes in the results of earlier actions. Called in every step that samples.
    ///
    /// # Errors
    ///
    /// If no action can be carried out any more.
    fn maintain(&mut self) -> Result<(), Self::Error>;

    /// Carries out actions on open files of a bdi.
    ///
    /// # Errors
    ///
    /// If no action can be carried out any more. One that fails alone is reported and is no error.
    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, Self::Error>;

    /// Has files of a bdi opened with this window from now on; `None` is the bdi's own.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn set_new_file_window(
        &mut self,
        bdi: BdiKey,
        window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, Self::Error>;

    /// Reports what would be done, and does nothing.
    ///
    /// # Errors
    ///
    /// If it cannot be reported.
    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), Self::Error>;

    /// Whether another process has changed the window of a bdi.
    ///
    /// # Errors
    ///
    /// If the window cannot be read.
    fn check_external_change(
        &mut self,
        bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, Self::Error>;

    /// Keeps the directory that was found last, or lets go of it.
    fn keep_directory(&mut self, bdi: BdiKey, keep: bool);

    /// Gives the bdi and its open files their first windows again.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn restore(&mut self, bdi: BdiKey) -> Result<(), Self::Error>;

    /// Gives open files the windows again that they had before they were restored.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn reapply(&mut self, bdi: BdiKey) -> Result<(), Self::Error>;

    /// Ends control of a bdi; with `leave`, open files keep their windows.
    ///
    /// # Errors
    ///
    /// As for [`ActionSink::act`].
    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, Self::Error>;

    /// Reports that the loop does something else from now on.
    fn note(&mut self, note: &LoopNote);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopState {
    Acting,
    /// It reports what it would do.
    Advising,
    /// It has restored everything, and waits until memory pressure is over.
    MemoryPressure,
    /// It has restored everything, as the A/B test has shown harm.
    Harmful,
    /// It manages no bdi any more.
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

/// A change of what the loop does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopNote {
    /// Everything is restored, and nothing is done in this state.
    Stopped(LoopState),
    /// Memory pressure is over, and control resumes.
    Resumed,
    /// Control of a bdi has ended; its open files keep their windows.
    Unmanaged(BdiKey, ExternalChange),
}

#[derive(Clone, Debug)]
pub struct LoopConfig {
    /// Report actions instead of carrying them out.
    pub dry_run: bool,
    /// Whether files that are opened later may get another window than the bdi's own, whichever
    /// process opens them.
    pub new_files: bool,
    /// Leave windows as they are at the end.
    pub leave: bool,
    pub ab_test: Option<AbTest>,
    pub page: PageSize,
}

#[derive(Clone, Debug)]
struct ManagedBdi {
    controller: BdiController,
    is_managed: bool,
}

/// The loop around the controllers of all bdis.
#[derive(Clone, Debug)]
pub struct ControlLoop {
    config: LoopConfig,
    bdis: BTreeMap<BdiKey, ManagedBdi>,
    state: LoopState,
    /// Whether the slot of the A/B test is one of treatment.
    is_treated: bool,
    /// Since when memory pressure has been other than what the state is for.
    pressure_since: Option<Nanos>,
    /// When something was last read from a disk, and when the state was last sampled.
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

    /// What the A/B test has shown so far.
    pub fn effect(&self) -> Option<TreatmentEffect> {
        self.config.ab_test.as_ref().and_then(AbTest::effect)
    }

    /// How long to wait before the next step. It is usually `interval`, and less while readers
    /// begin; `step` is how long the last step took.
    pub fn next_delay(&self, interval: Nanos, step: Nanos) -> Nanos {
        let wanted = self.bdis.values().map(|bdi| bdi.controller.next_delay(interval)).min();
        wanted.unwrap_or(interval).max(step * tuning::MIN_PAUSE_STEPS).min(interval)
    }

    /// One interval.
    ///
    /// # Errors
    ///
    /// If the back end can observe or act no more.
    pub fn step<B: ActionSink>(&mut self, backend: &mut B) -> Result<(), B::Error> {
        let read = backend.poll();
        let now = backend.now();
        if read || self.last_read.is_none() {
            self.last_read = Some(now);
        }
        let since = |at: Option<Nanos>| at.map_or(Nanos::MAX, |at| now.saturating_sub(at));
        let is_idle = since(self.last_read) > tuning::IDLE_TIMEOUT;
        if is_idle {
            // What is opened next may be read in another way. A change by another process is found
            // when there is something to do.
            for key in self.managed() {
                drop(backend.set_new_file_window(key, None)?);
            }
            if since(self.last_sample) < tuning::IDLE_SAMPLE_INTERVAL {
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
            // Sampling may fail at any time.
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

    /// Decides for one bdi, and acts.
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
        let wanted = controller.wants_directory(inputs.now);
        if let Some(listing) = backend.find_directory(key, &wanted) {
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

    /// Treatment and none in turns, if there is an A/B test.
    fn alternate<B: ActionSink>(&mut self, now: Nanos, backend: &mut B) -> Result<(), B::Error> {
        if !matches!(self.state, LoopState::Acting | LoopState::MemoryPressure) {
            return Ok(());
        }
        let Some(test) = &mut self.config.ab_test else { return Ok(()) };
        let got = self.bdis.values().map(|bdi| bdi.controller.progress()).sum();
        let is_treated = test.tick(now, got);
        let is_harm = test.effect().is_some_and(|effect| effect.is_harm());
        if is_treated != self.is_treated {
            self.is_treated = is_treated;
            // Under memory pressure everything is restored anyhow.
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

    /// Restores everything if memory pressure lasts, and resumes after it.
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
        if now.saturating_sub(since) <= tuning::PRESSURE_DELAY {
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

    /// Restores everything and does nothing more in this state.
    fn stop<B: ActionSink>(&mut self, state: LoopState, backend: &mut B) -> Result<(), B::Error> {
        for key in self.managed() {
            backend.restore(key)?;
        }
        backend.note(&LoopNote::Stopped(state.clone()));
        self.state = state;
        Ok(())
    }

    /// Ends: restores everything, unless it is to be left.
    ///
    /// # Errors
    ///
    /// The first error; the other bdis are restored nevertheless.
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
