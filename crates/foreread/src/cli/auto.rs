//! `foreread auto`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::auto::{Bounds, Decision, Regulators, Source, Tracker};
use actuate::{Actuator, Limits, Missed, Outcome, Rule};
use anyhow::Context as _;
use clap::Args;
use host::{BdiId, page_size, parse_meminfo, resolve};
use observe::{OpenFile, OpenFileFilter, OpenFileId};
use report::clean::plain;
use tunables::Tenure;
use units::{Bytes, Nanos};

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;
use crate::signals::Signals;

/// The least share of free memory that windows may fill: one part in this many.
const MEMORY_SHARE: u64 = 8;

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
    #[arg(long, value_name = "TIME", default_value = "500ms")]
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
    /// Open files of which it was said that they cannot be changed.
    said: BTreeSet<OpenFileId>,
}

impl Auto {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let interval = Duration::from_nanos(self.interval.get());
        if interval < Duration::from_millis(100) || interval > Duration::from_secs(60) {
            let problem = format!("--interval {}: from 100 ms to 60 s makes sense", self.interval);
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
        let result = self.control(context, &storage.bdi, &mut source, hands.as_mut(), &signals);
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
        Ok(Hands { actuator, tenure, changed: BTreeMap::new(), mended: 0, said: BTreeSet::new() })
    }

    fn control(
        &self,
        context: &Context,
        bdi: &BdiId,
        source: &mut Source,
        mut hands: Option<&mut Hands>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let (mut tracker, mut regulators) = (Tracker::new(), Regulators::default());
        tracker.take(source.beginning());
        let end = self.span.map(|span| Instant::now() + Duration::from_nanos(span.get()));
        while !signals.cancelled() && end.is_none_or(|end| Instant::now() < end) {
            let mut view = None;
            source.look(|record| view = tracker.take(record).or(view.take()))?;
            if let Some(mut view) = view.filter(|view| view.interval_s > 0.0) {
                view.streams.retain(|stream| stream.bdi.as_ref() == Some(bdi));
                let bounds = self.bounds(context);
                let decisions = regulators.decide(&view, &tracker, bounds, page_size());
                self.act(decisions, hands.as_deref_mut())?;
            }
            std::thread::sleep(Duration::from_nanos(self.interval.get()));
        }
        Ok(())
    }

    fn bounds(&self, context: &Context) -> Bounds {
        let memory = context.root.read("/proc/meminfo").map(|text| parse_meminfo(&text));
        let available = memory.ok().and_then(|memory| memory.get("MemAvailable").copied());
        let share = available.unwrap_or_default().get() / MEMORY_SHARE;
        Bounds { most: self.max, memory: Bytes::new(share) }
    }

    fn act(&self, decisions: Vec<Decision>, hands: Option<&mut Hands>) -> anyhow::Result<()> {
        let Some(hands) = hands else {
            return decisions.iter().try_for_each(|one| say("would set", one, None));
        };
        let wanted: Vec<(&OpenFile, Bytes)> =
            decisions.iter().map(|one| (&one.file, one.window)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let exact = hands.actuator.set_windows(&mut hands.tenure, &wanted)?;
        hands.mended += exact.mended.len();
        for (decision, outcome) in decisions.iter().zip(&exact.outcomes) {
            if !outcome.is_good() {
                // What was closed meanwhile is no news, and the rest is news once.
                let gone = *outcome == Outcome::Missed(Missed::Gone);
                if !gone && hands.said.insert(decision.file.id) {
                    say("", decision, Some(outcome))?;
                }
                continue;
            }
            let file = &decision.file;
            let first = hands.changed.remove(&file.id);
            let first = first.filter(|(was, _)| was.inode == file.inode);
            let was = first.map_or_else(|| file.clone(), |(was, _)| was);
            hands.changed.insert(file.id, (was, decision.window));
            say("set", decision, None)?;
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

/// One line: who, what, why; or what came of it if it could not be done.
fn say(word: &str, one: &Decision, failed: Option<&Outcome>) -> anyhow::Result<()> {
    let holder = one.file.holders.first();
    let who = holder.map_or_else(String::new, |one| format!("{} ({}) ", plain(&one.comm), one.pid));
    let path = one.path.as_deref().map_or_else(|| format!("inode {}", one.file.inode), plain);
    let (before, after) = (one.file.window, one.window);
    output::print(&match failed {
        Some(outcome) => format!("{who}{path}: {outcome}; {after} would be right\n"),
        None => format!("{who}{path}: {word} window {before} → {after}, as {}\n", one.why),
    })
}
