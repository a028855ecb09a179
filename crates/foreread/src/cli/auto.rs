//! `foreread auto`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::auto::{Act, Bounds, Decision, MemoryState, Pilot, Record, Source, bytes_of};
use actuate::{Actuator, Limits, Missed, Outcome, Rule};
use anyhow::Context as _;
use clap::Args;
use host::{Storage, page_size, resolve};
use observe::{OpenFile, OpenFileFilter, OpenFileId};
use report::clean::plain;
use tunables::Tenure;
use units::{Bytes, Nanos};

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;
use crate::signals::Signals;

/// Keep each open file on a storage at the window that its readers need
///
/// Watches who reads and how, as `foreread watch` does, and sets the window of each open file by
/// itself: more where readers wait and more wins, less where what was read ahead is evicted unused
/// or a mapping is read at random. Files that are open already are reached, too. Each act is one
/// line: what, and why. When it ends, every open file has the window back that it had.
///
///   foreread auto /srv/data --advise      says what it would do, and does nothing
///   foreread auto /srv/data --only user:postgres --max 4M
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Auto {
    /// A directory, mount point or device
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long, visible_alias = "dry-run")]
    advise: bool,
    /// The largest window for any open file
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    max: Bytes,
    /// How often to decide
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Nanos,
    /// End after this time; default: when told to by a signal
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Nanos>,
    /// Leave the windows as they are at the end
    #[arg(long)]
    leave: bool,
    /// Only open files of these: pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH
    #[arg(long, value_name = "RULE")]
    only: Vec<Rule>,
    /// Never open files of these
    #[arg(long, value_name = "RULE")]
    except: Vec<Rule>,
}

/// What acts, where acting is wanted.
struct Hands {
    actuator: Actuator,
    tenure: Tenure,
    /// Open files that were changed: as they were before, and the window that they got.
    changed: BTreeMap<OpenFileId, (OpenFile, Bytes)>,
    mended: usize,
    /// What was read ahead.
    prefetched: Bytes,
    /// Open files of which it was said that they cannot be changed.
    said: BTreeSet<OpenFileId>,
}

impl Auto {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let interval = Duration::from_nanos(self.interval.get());
        if interval < Duration::from_millis(20) || interval > Duration::from_secs(60) {
            let problem = format!("--interval {}: from 20 ms to 60 s makes sense", self.interval);
            return Err(Usage(problem).into());
        }
        let storage = resolve(&context.root, &self.target)?;
        let mut source = super::watch::begin(context)?;
        if !source.sees_readers() {
            // The reason was said as a note; as an error it has its exit code.
            observe::Census::begin()?;
        }
        let signals = Signals::listen().context("cannot listen for signals")?;
        let mut hands = if self.advise { None } else { Some(self.hands(context, &storage)?) };
        let result = self.control(context, &storage, &mut source, hands.as_mut(), &signals);
        if let Some(hands) = hands {
            hands.give_back(context, self.leave)?;
        }
        result?;
        Ok(signals.which().map_or(Exit::Fine, Exit::Signal))
    }

    fn hands(&self, context: &Context, storage: &host::Storage) -> anyhow::Result<Hands> {
        let limits = Limits { allow: self.only.clone(), deny: self.except.clone() };
        let actuator = Actuator::begin(limits)?;
        let guard = super::apply::guard()?;
        let tenure = Tenure::begin(&context.dirs, &context.root, storage, &guard)?;
        Ok(Hands {
            actuator,
            tenure,
            changed: BTreeMap::new(),
            mended: 0,
            prefetched: Bytes::ZERO,
            said: BTreeSet::new(),
        })
    }

    fn control(
        &self,
        context: &Context,
        storage: &Storage,
        source: &mut Source,
        mut hands: Option<&mut Hands>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let bounds = Bounds { most: self.max.to_pages_floor(page_size()), ..Bounds::default() };
        let counted = storage.devices.clone();
        let mut pilot = Pilot::new(storage.bdi.clone(), counted, bounds, page_size());
        let end = self.span.map(|span| Instant::now() + Duration::from_nanos(span.get()));
        while !signals.cancelled() && end.is_none_or(|end| Instant::now() < end) {
            let mut snapshot = None;
            source.look(|record| match record {
                Record::Event(event) => pilot.see(&event),
                Record::Snapshot(now) => snapshot = Some(now),
                Record::Begin(_) => {}
            })?;
            if let Some(snapshot) = snapshot {
                let on_it =
                    snapshot.files.iter().filter(|it| it.bdi.as_ref() == Some(&storage.bdi));
                let memory = MemoryState::look(&context.root, on_it);
                let decisions = pilot.decide(&snapshot, &memory);
                self.act(decisions, hands.as_deref_mut())?;
            }
            std::thread::sleep(Duration::from_nanos(self.interval.get()));
        }
        Ok(())
    }

    fn act(&self, decisions: Vec<Decision>, hands: Option<&mut Hands>) -> anyhow::Result<()> {
        let Some(hands) = hands else {
            let said = decisions.iter().filter(|one| !one.why.is_empty());
            return said.cloned().try_for_each(|one| say("would ", &one, None));
        };
        let (windows, prefetches): (Vec<_>, Vec<_>) =
            decisions.into_iter().partition(|one| matches!(one.act, Act::Window(_)));
        hands.set_windows(&windows)?;
        prefetches.iter().try_for_each(|one| hands.prefetch(one))
    }
}

impl Hands {
    fn set_windows(&mut self, decisions: &[Decision]) -> anyhow::Result<()> {
        let wanted: Vec<(&OpenFile, Bytes)> =
            decisions.iter().filter_map(|one| Some((&one.file, window_of(one)?))).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let exact = self.actuator.set_windows(&mut self.tenure, &wanted)?;
        self.mended += exact.mended.len();
        for (decision, outcome) in decisions.iter().zip(&exact.outcomes) {
            let file = &decision.file;
            let Some(window) = window_of(decision).filter(|_| outcome.is_good()) else {
                self.missed(decision, outcome)?;
                continue;
            };
            let first = self.changed.remove(&file.id);
            let first = first.filter(|(was, _)| was.inode == file.inode);
            let was = first.map_or_else(|| file.clone(), |(was, _)| was);
            self.changed.insert(file.id, (was, window));
            say("", decision, None)?;
        }
        Ok(())
    }

    fn prefetch(&mut self, decision: &Decision) -> anyhow::Result<()> {
        let Act::Prefetch(extents) = &decision.act else { return Ok(()) };
        if !decision.why.is_empty() {
            say("", decision, None)?;
        }
        let wanted: Vec<(Bytes, Bytes)> =
            extents.iter().map(|extent| bytes_of(*extent, page_size())).collect();
        match self.actuator.prefetch_all(&decision.file, &wanted)? {
            Ok(read) => self.prefetched += read,
            Err(missed) => self.missed(decision, &Outcome::Missed(missed))?,
        }
        Ok(())
    }

    /// What was closed meanwhile is no news, and the rest is news once.
    fn missed(&mut self, decision: &Decision, outcome: &Outcome) -> anyhow::Result<()> {
        let gone = *outcome == Outcome::Missed(Missed::Gone);
        if !gone && self.said.insert(decision.file.id) {
            say("", decision, Some(outcome))?;
        }
        Ok(())
    }
}

impl Hands {
    /// Gives the open files the windows back that they had, and the bdi its peace.
    fn give_back(mut self, context: &Context, leave: bool) -> anyhow::Result<()> {
        let on_bdi = OpenFileFilter::on_bdi(self.tenure.bdi());
        let mut given = 0;
        if !leave {
            // What somebody else has changed since is his.
            let now = self.actuator.open_files(&on_bdi)?;
            let ours = |file: &&OpenFile| {
                let known = self.changed.get(&file.id);
                known.is_some_and(|(was, set)| was.inode == file.inode && *set == file.window)
            };
            let wanted: Vec<(&OpenFile, Bytes)> = now
                .iter()
                .filter(ours)
                .filter_map(|file| Some((file, self.changed.get(&file.id)?.0.window)))
                .collect();
            let exact = self.actuator.set_windows(&mut self.tenure, &wanted)?;
            given = exact.outcomes.iter().filter(|outcome| outcome.is_good()).count();
        }
        self.tenure.restore()?;
        context.note(&format!(
            "{} open files were changed, {given} of them have their window back now (the others \
             are closed{}); {} that were opened in an instant of change were mended",
            self.changed.len(),
            if leave { " or left as they are" } else { "" },
            self.mended
        ));
        Ok(())
    }
}

fn window_of(decision: &Decision) -> Option<Bytes> {
    match decision.act {
        Act::Window(pages) => Some(pages.to_bytes(page_size())),
        Act::Prefetch(_) => None,
    }
}

/// One line: who, what, why; or what came of it if it could not be done.
fn say(word: &str, one: &Decision, failed: Option<&Outcome>) -> anyhow::Result<()> {
    let holder = one.file.holders.first();
    let who = holder.map_or_else(String::new, |one| format!("{} ({}) ", plain(&one.comm), one.pid));
    let path = one.path.as_deref().map_or_else(|| format!("inode {}", one.file.inode), plain);
    let what = match window_of(one) {
        Some(after) => format!("{word}set window {} → {after}", one.file.window),
        None => format!("{word}read ahead"),
    };
    output::print(&match failed {
        Some(outcome) => format!("{who}{path}: {outcome}; would {what}, as {}\n", one.why),
        None => format!("{who}{path}: {what}, as {}\n", one.why),
    })
}
