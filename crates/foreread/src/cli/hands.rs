//! What acts on the open files of one bdi, for `auto` and `run`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::auto::{Act, Became, Decision, Status, bytes_of};
use actuate::{
    ActuateError, Actuator, Answerer, Directory, Limits, Missed, Opens, Outcome, Prefetcher,
};
use anyhow::Context as _;
use host::{Storage, page_size};
use observe::{Census, OpenFile, OpenFileFilter, OpenFileId};
use policy::control::Answer;
use tunables::{Tenure, TunableError, find};
use units::{Bytes, Pages};

use super::Context;
use super::told::{Manner, NewFiles};

/// How often what is known of closed files is forgotten.
const FORGETS: Duration = Duration::from_secs(30);
/// The window of files to be opened is not set more often than this.
const STEADY: Duration = Duration::from_secs(1);

/// What acts on the open files of one bdi.
pub(super) struct Hands {
    actuator: Actuator,
    prefetcher: Prefetcher,
    /// What answers misses, of all bdis.
    answerer: Arc<Answerer>,
    tenure: Tenure,
    /// The window of the bdi: if it is another, somebody else is at it.
    opens: Opens,
    /// When that was last set.
    opens_set: Option<Instant>,
    /// Open files that were changed: as they were before, and the window that they got.
    changed: BTreeMap<OpenFileId, (OpenFile, Bytes)>,
    /// Those that have no window just now, on the way to a smaller one: the window before.
    midway: BTreeMap<OpenFileId, Bytes>,
    /// How many were changed that are closed by now.
    closed: usize,
    /// Open files that somebody else gives advice on, and their inodes.
    yielded: BTreeMap<OpenFileId, u64>,
    /// Open files of which it was said that they cannot be changed.
    said: BTreeSet<OpenFileId>,
    /// What was last said of open files that are read ahead.
    read: BTreeMap<OpenFileId, Decision>,
    /// Open files whose misses are to be answered, as was last decided.
    answered: BTreeMap<OpenFileId, Decision>,
    /// When what is known of files that are closed was last forgotten.
    pruned: Instant,
    manner: Manner,
    /// The directory of which files are read ahead.
    directory: Option<Arc<Directory>>,
}

impl Hands {
    pub fn begin(
        context: &Context,
        storage: &Storage,
        limits: Limits,
        (census, answerer): (&Census, Arc<Answerer>),
        manner: Manner,
    ) -> anyhow::Result<Self> {
        let prefetcher = Prefetcher::begin(Actuator::with(census.clone(), limits.clone()))
            .context("cannot start a thread to read ahead")?;
        let actuator = Actuator::with(census.clone(), limits);
        let guard = super::apply::guard()?;
        let tenure = Tenure::begin(&context.dirs, &context.root, storage, &guard)?;
        let own = tenure.read(find("read_ahead")?)?.bytes().unwrap_or_default();
        Ok(Self {
            actuator,
            prefetcher,
            answerer,
            tenure,
            opens: Opens::with(own),
            opens_set: None,
            changed: BTreeMap::new(),
            midway: BTreeMap::new(),
            closed: 0,
            yielded: BTreeMap::new(),
            said: BTreeSet::new(),
            read: BTreeMap::new(),
            answered: BTreeMap::new(),
            pruned: Instant::now(),
            manner,
            directory: None,
        })
    }

    /// Whether somebody else has set the window of the bdi: then this is no business of ours.
    pub fn are_to_be_off(&self) -> anyhow::Result<Option<String>> {
        let now = self.tenure.read(find("read_ahead")?)?;
        let ours = self.opens.window();
        Ok((now != ours.into()).then(|| {
            format!("somebody set read_ahead_kb of {} from {ours} to {now}", self.tenure.bdi())
        }))
    }

    /// Has files opened with this window from now on; with the bdi's own if there is none. Somebody
    /// else who sets the bdi meanwhile is an answer, not an error.
    pub fn open_with(
        &mut self,
        window: Option<Bytes>,
        status: &mut Status,
    ) -> anyhow::Result<Option<String>> {
        let steady = self.opens_set.is_none_or(|at| at.elapsed() > STEADY);
        if window.is_some() && !steady {
            return Ok(None);
        }
        let before = self.opens.window();
        match self.opens.set(&self.actuator, &mut self.tenure, window) {
            Ok(false) => {}
            Ok(true) => {
                self.opens_set = Some(Instant::now());
                let (after, own) = (self.opens.window(), self.opens.own());
                let new = NewFiles { bdi: self.tenure.bdi(), before, after, own };
                self.manner.tell_of_new(&new, status)?;
            }
            Err(error) => {
                let error = error.into();
                return if is_by_other(&error) { Ok(Some(error.to_string())) } else { Err(error) };
            }
        }
        Ok(None)
    }

    /// Does what was decided. Somebody else who sets the bdi meanwhile is an answer, not an error.
    pub fn act(
        &mut self,
        decisions: Vec<Decision>,
        status: &mut Status,
    ) -> anyhow::Result<Option<String>> {
        let (windows, others): (Vec<_>, Vec<_>) =
            decisions.into_iter().partition(|one| matches!(one.act, Act::Window(_)));
        match self.set_windows(windows, status) {
            Err(error) if is_by_other(&error) => return Ok(Some(error.to_string())),
            result => result?,
        }
        for one in others {
            match one.act {
                Act::Answer(run) => self.answer(one, run, status)?,
                _ => self.prefetch(one, status)?,
            }
        }
        Ok(None)
    }

    /// Takes in what came of reading ahead, and forgets what is closed. To be called in every
    /// interval.
    pub fn look_after(&mut self, status: &mut Status) -> anyhow::Result<()> {
        let done = self.prefetcher.report();
        if let Some(error) = done.failed {
            return Err(error.into());
        }
        status.prefetched_bytes += done.asked.get();
        status.dropped += done.dropped;
        for (file, missed) in done.missed {
            if let Some(decision) = self.read.get(&file.id).cloned() {
                self.missed(&decision, &Outcome::Missed(missed), status)?;
            }
        }
        if self.pruned.elapsed() > FORGETS {
            self.pruned = Instant::now();
            self.prune()?;
        }
        Ok(())
    }

    /// Forgets open files that are closed.
    fn prune(&mut self) -> anyhow::Result<()> {
        let known = self.changed.keys().chain(self.yielded.keys()).chain(&self.said);
        let known = known.chain(self.read.keys()).chain(self.answered.keys());
        let ids: BTreeSet<OpenFileId> = known.copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let filter = OpenFileFilter { ids: Some(ids), ..Default::default() };
        let open = self.actuator.open_files(&filter)?;
        let open: BTreeSet<(OpenFileId, u64)> =
            open.iter().map(|file| (file.id, file.inode)).collect();
        let before = self.changed.len();
        self.changed.retain(|id, (was, _)| open.contains(&(*id, was.inode)));
        self.closed += before - self.changed.len();
        self.yielded.retain(|id, inode| open.contains(&(*id, *inode)));
        self.read.retain(|id, one| open.contains(&(*id, one.file.inode)));
        self.answered.retain(|id, one| open.contains(&(*id, one.file.inode)));
        let ids: BTreeSet<OpenFileId> = open.into_iter().map(|(id, _)| id).collect();
        self.said.retain(|id| ids.contains(id));
        self.midway.retain(|id, _| ids.contains(id));
        Ok(())
    }

    fn set_windows(
        &mut self,
        mut decisions: Vec<Decision>,
        status: &mut Status,
    ) -> anyhow::Result<()> {
        decisions.retain(|one| !self.is_yielded(&one.file));
        let wanted: Vec<(&OpenFile, Bytes)> =
            decisions.iter().filter_map(|one| Some((&one.file, window_of(one)?))).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let exact = self.actuator.set_windows(&mut self.tenure, &wanted)?;
        status.mended += exact.mended.len() as u64;
        for (decision, outcome) in decisions.iter().zip(&exact.outcomes) {
            let file = &decision.file;
            let Some(window) = window_of(decision).filter(|_| outcome.is_good()) else {
                self.missed(decision, outcome, status)?;
                continue;
            };
            let first = self.changed.remove(&file.id);
            let first = first.filter(|(was, _)| was.inode == file.inode);
            let was = first.map_or_else(|| self.without_us(file), |(was, _)| was);
            let back = was.window;
            self.changed.insert(file.id, (was, window));
            // What is only on the way to another window is no news.
            if window.is_zero() {
                self.midway.insert(file.id, file.window);
                continue;
            }
            status.windows_set += 1;
            let before = self.midway.remove(&file.id).unwrap_or(file.window);
            let file = OpenFile { window: before, ..file.clone() };
            let told = Decision { file, ..decision.clone() };
            self.manner.tell(&told, Became::Set { back }, status)?;
        }
        Ok(())
    }

    /// An open file that was not touched yet, as it would be if the bdi had not been either.
    fn without_us(&self, file: &OpenFile) -> OpenFile {
        OpenFile { window: self.opens.would_have(file), ..file.clone() }
    }

    /// Whether an open file has neither the window it was given nor the one before: its program, or
    /// somebody else, gave advice since.
    fn is_yielded(&mut self, file: &OpenFile) -> bool {
        if let Some((was, set)) = self.changed.get(&file.id)
            && was.inode == file.inode
            && ![*set, was.window].contains(&file.window)
        {
            self.changed.remove(&file.id);
            self.yielded.insert(file.id, file.inode);
            self.answered.remove(&file.id);
            self.answerer.stop(&[file.id]);
        }
        self.yielded.get(&file.id) == Some(&file.inode)
    }

    fn prefetch(&mut self, decision: Decision, status: &mut Status) -> anyhow::Result<()> {
        if !decision.why.is_empty() {
            self.manner.tell(&decision, Became::Read, status)?;
        }
        match &decision.act {
            Act::Prefetch(extents) if !extents.is_empty() => {
                let wanted = extents.iter().map(|extent| bytes_of(*extent, page_size()));
                self.prefetcher.order(decision.file.clone(), wanted.collect());
            }
            Act::Files(files) => {
                let Some(directory) = &self.directory else { return Ok(()) };
                let wanted = files.iter().map(|it| (it.file.1, it.from.to_bytes(page_size())));
                self.prefetcher.order_files(Arc::clone(directory), wanted.collect());
            }
            Act::Prefetch(_) | Act::Window(_) | Act::Answer(_) => return Ok(()),
        }
        if !decision.why.is_empty() {
            self.read.insert(decision.file.id, decision);
        }
        Ok(())
    }

    /// Has misses answered from now on, or no more.
    fn answer(
        &mut self,
        decision: Decision,
        run: Option<Pages>,
        status: &mut Status,
    ) -> anyhow::Result<()> {
        let file = &decision.file;
        // Whether it is somebody else's is asked in every interval.
        let is_yielded = self.yielded.get(&file.id) == Some(&file.inode);
        let Some(run) = run.filter(|_| !is_yielded) else {
            self.answerer.stop(&[file.id]);
            let was = self.answered.remove(&file.id).is_some();
            let is_news = was && run.is_none() && !decision.why.is_empty();
            return match is_news {
                true => self.manner.tell(&decision, Became::Answered, status),
                false => Ok(()),
            };
        };
        if !decision.why.is_empty() {
            self.manner.tell(&decision, Became::Answered, status)?;
        }
        self.answerer.answer(file.clone(), Answer::new(run));
        self.answered.insert(file.id, decision);
        Ok(())
    }

    /// Takes in that the misses of an open file are answered no more, as it could not be reached.
    pub fn not_answered(
        &mut self,
        file: &OpenFile,
        missed: Missed,
        status: &mut Status,
    ) -> anyhow::Result<()> {
        // Perhaps it was ordered again meanwhile.
        self.answerer.stop(&[file.id]);
        match self.answered.remove(&file.id) {
            Some(decision) => self.missed(&decision, &Outcome::Missed(missed), status),
            None => Ok(()),
        }
    }

    /// Takes in how open files are now: one that somebody else gave advice on is answered no more.
    pub fn yield_answered(&mut self, files: &[OpenFile]) {
        for file in files {
            if self.answered.contains_key(&file.id) {
                self.is_yielded(file);
            }
        }
    }

    /// Answers no misses until that is decided again.
    fn stop_answers(&self) {
        let files: Vec<OpenFileId> = self.answered.keys().copied().collect();
        self.answerer.stop(&files);
    }

    /// Takes the directory whose files are read one after another, or lets go of it: as long as it
    /// is held, its file system cannot be unmounted.
    pub fn look_beside(&mut self, directory: Option<Directory>) {
        self.directory = directory.map(Arc::new);
    }

    /// Takes in who has open files of that directory.
    pub fn beside(&self, files: &[OpenFile]) {
        if let Some(directory) = &self.directory {
            directory.seen(files);
        }
    }

    /// What was closed meanwhile is no news, and the rest is news once.
    fn missed(
        &mut self,
        decision: &Decision,
        outcome: &Outcome,
        status: &mut Status,
    ) -> anyhow::Result<()> {
        let gone = *outcome == Outcome::Missed(Missed::Gone);
        if !gone && self.said.insert(decision.file.id) {
            status.refused += 1;
            self.manner.tell(decision, Became::Missed(outcome.to_string()), status)?;
        }
        Ok(())
    }

    /// Gives the bdi its own window again, and the open files those that they had; how many.
    pub fn give_back(&mut self) -> anyhow::Result<usize> {
        self.prefetcher.clear();
        self.stop_answers();
        let others: HashSet<OpenFileId> = self.changed.keys().copied().collect();
        if let Err(error) = self.opens.end(&self.actuator, &mut self.tenure, &others) {
            let error = error.into();
            // If the bdi is somebody else's now, so is what is opened on it.
            if !is_by_other(&error) {
                return Err(error);
            }
        }
        let given = self.swap(|was, set| (set, was));
        // Also of what is somebody else's now.
        self.finish()?;
        // Whether to answer is decided anew, and goes with a window of its own.
        let (answered, before) = (std::mem::take(&mut self.answered), self.changed.len());
        self.changed.retain(|id, _| !answered.contains_key(id));
        self.closed += before - self.changed.len();
        given
    }

    /// Gives them the windows again that they had been given.
    pub fn take_again(&mut self) -> anyhow::Result<usize> {
        // Without a window they were only on their way to another.
        self.changed.retain(|_, (_, set)| !set.is_zero());
        self.swap(|was, set| (was, set))
    }

    /// Changes windows of open files that were changed before: `from` and `to` of the window
    /// before and the one that was given. What somebody else has changed since is his.
    fn swap(&mut self, way: fn(Bytes, Bytes) -> (Bytes, Bytes)) -> anyhow::Result<usize> {
        if self.changed.is_empty() {
            return Ok(0);
        }
        let ids = Some(self.changed.keys().copied().collect());
        let ours = OpenFileFilter { ids, ..OpenFileFilter::on_bdi(self.tenure.bdi()) };
        let now = self.actuator.open_files(&ours)?;
        let wanted: Vec<(&OpenFile, Bytes)> = now
            .iter()
            .filter_map(|file| {
                let (was, set) = self.changed.get(&file.id)?;
                let (from, to) = way(was.window, *set);
                let ours = was.inode == file.inode && file.window == from;
                ours.then_some((file, to))
            })
            .collect();
        match self.actuator.set_windows(&mut self.tenure, &wanted) {
            Ok(exact) => Ok(exact.outcomes.iter().filter(|outcome| outcome.is_good()).count()),
            // The bdi is somebody else's now: so are the windows.
            Err(error) => {
                let error = error.into();
                if is_by_other(&error) { Ok(0) } else { Err(error) }
            }
        }
    }

    /// No open file stays without a window, on its way to another, or with that of one whose misses
    /// are answered, whoever has the bdi now.
    fn finish(&self) -> anyhow::Result<()> {
        let passing = |id: &OpenFileId, set: Bytes| set.is_zero() || self.answered.contains_key(id);
        let midway = self.changed.iter().filter(|(id, (_, set))| passing(id, *set));
        let ids: BTreeSet<OpenFileId> = midway.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let filter = OpenFileFilter { ids: Some(ids), ..Default::default() };
        for file in self.actuator.open_files(&filter)? {
            let set = self.changed.get(&file.id).map(|(_, set)| *set);
            if file.window.is_zero() || set == Some(file.window) {
                self.actuator.refresh(&file)?;
            }
        }
        Ok(())
    }

    /// Ends: gives everything back unless it is to be left, and the bdi its peace.
    pub fn end(mut self, leave: bool) -> anyhow::Result<(usize, usize)> {
        self.stop_answers();
        let given = if leave { self.finish().map(|()| 0) } else { self.give_back() };
        let changed = self.changed.len() + self.closed;
        // The bdi comes back, whatever became of the open files.
        self.tenure.restore()?;
        Ok((changed, given?))
    }
}

fn is_by_other(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let tunable = match cause.downcast_ref::<ActuateError>() {
            Some(ActuateError::Tunable(error)) => Some(error),
            _ => cause.downcast_ref::<TunableError>(),
        };
        matches!(tunable, Some(TunableError::ChangedByOther { .. }))
    })
}

fn window_of(decision: &Decision) -> Option<Bytes> {
    match decision.act {
        Act::Window(pages) => Some(pages.to_bytes(page_size())),
        Act::Prefetch(_) | Act::Files(_) | Act::Answer(_) => None,
    }
}
