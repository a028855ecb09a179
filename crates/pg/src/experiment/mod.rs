//! Measures how fast PostgreSQL is on this storage, and how settings affect it.
//!
//! The experiment creates a private cluster on the target and loads a table of known size. Each
//! test starts cold: foreread stops the server, evicts its files from the page cache, and starts it
//! with the settings of the test. It never changes existing servers; [`given`] only reads a table
//! of one.

mod arms;
mod conclude;
mod control;
pub mod given;
mod keep;
mod prime;
mod scans;
mod session;
mod watch;

use std::sync::Arc;

use crate::server::{Moment, RunLimit, Tools};
use bench::Series;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde_json::{Value as Json, json};
use study::{Environment, Progress, ProgressEvent, Store, StudyPhase, Target};
use units::{Bytes, Nanos};

use crate::error::PgError;
use arms::PgArm;
use control::AutoProcess;
use keep::{Intent, Keeper};
use session::Session;
use study::{Findings, LiveTarget, drawn_seed};
use watch::{DeviceActivity, DeviceSampler};

pub const NAME: &str = "pg";
pub const QUESTION: &str = "What does PostgreSQL get from this storage?";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Test {
    /// `select count(*)` with a sequential scan.
    Seq,
    /// Rows in the order of an index, which differs from the table's order.
    Index,
    /// Many rows with a bitmap scan.
    Bitmap,
    /// Random selects by key, from a cold cache until all data is cached.
    Prime,
    /// pgbench's built-in, TPC-B-like transactions.
    Pgbench,
}

impl Test {
    /// Returns the test's name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether `foreread auto` runs during the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithAuto {
    #[default]
    Never,
    Always,
    /// Each trial runs twice, without and with it.
    Both,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PostgresPlan {
    /// Where to create the cluster: a directory or a virtual disk.
    pub target: Target,
    pub tests: Vec<Test>,
    /// Varied settings, `NAME=VALUE[,VALUE…]`: tunables and settings of the server.
    pub vary: Vec<String>,
    /// Whether `foreread auto` runs during the trials.
    pub auto: WithAuto,
    pub size: Bytes,
    pub shared_buffers: Bytes,
    /// Number of concurrent pgbench sessions.
    pub clients: u32,
    /// Time limit of priming, and duration of pgbench, in wall time.
    pub limit: Nanos,
    /// Cached share of table and index at which priming is complete, above 0 and at most 1.
    pub primed: f64,
    /// Number of repeats of each test under each setting.
    pub repeats: u32,
    /// Seed for the order of the trials and for the keys.
    pub seed: Option<u64>,
}

/// The measurements of one trial, in the storage's own time.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    arm: usize,
    test: Test,
    /// Duration of the test; for priming, the time until the goal was reached.
    seconds: f64,
    per_second: Option<f64>,
    moments: Vec<Moment>,
    watched: Vec<Series>,
    /// Data of the storage that the test needed; 0 if unknown.
    useful: Bytes,
    /// True if the trial completed; priming may reach its time limit.
    complete: bool,
    device: DeviceActivity,
}

impl Trial {
    /// Returns a completed trial for which only its duration is known.
    fn new(test: Test, seconds: f64) -> Self {
        Self {
            arm: 0,
            test,
            seconds,
            per_second: None,
            moments: Vec::new(),
            watched: Vec::new(),
            useful: Bytes::ZERO,
            complete: true,
            device: DeviceActivity::default(),
        }
    }
}

/// Creates a cluster, tests it, removes it, and records the trials.
pub fn run(
    plan: &PostgresPlan,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, PgError> {
    check(plan)?;
    // Reports usage errors before missing requirements.
    arms::parse(&plan.vary, u32::MAX)?;
    let tools = Tools::find()?;
    let mut arms = arms::parse(&plan.vary, tools.major())?;
    if plan.auto != WithAuto::Never {
        arms = arms::with_auto(&arms, plan.auto)?;
    }
    let mut place = LiveTarget::open(&plan.target, environment, progress)?;
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    let intent = Intent {
        target: &plan.target,
        tests: &plan.tests,
        arms: &arms,
        clients: plan.clients,
        repeats: plan.repeats,
        seed,
        cold: true,
        facts: plan.facts(&tools, seed),
    };
    let mut keeper = Keeper::begin(store, &intent, &place, environment)?;
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    (answer.seed, answer.dilation, answer.run) = (seed, place.dilation, Some(keeper.run()));
    answer.notes.push(format!("PostgreSQL {}", tools.version));
    if let Some(who) = host::idle_reclaim(&environment.root).filter(|_| plan.primes()) {
        answer.notes.push(format!(
            "this host reclaims idle cache ({}): during priming, table and index are mapped so \
             that cached data stays",
            who.display()
        ));
    }
    let job = Job { plan, arms: &arms, tools: &tools, seed, environment };
    let measured = job.measure(&mut keeper, &mut place, progress);
    let trials = keeper.end(measured, place, environment, progress)?;
    conclude::conclude(&mut answer, &arms, &trials, session::table_size(plan));
    Ok(answer)
}

impl PostgresPlan {
    fn primes(&self) -> bool {
        self.tests.contains(&Test::Prime)
    }

    /// Returns facts for the reports of the run.
    fn facts(&self, tools: &Tools, seed: u64) -> Json {
        json!({
            "version": tools.version,
            "table_mib": session::table_size(self).as_mib(),
            "rows": session::rows(self),
            "shared_buffers_mib": self.shared_buffers.as_mib(),
            "clients": self.clients,
            "limit_seconds": self.limit.as_secs_f64(),
            "primed_percent": self.primed * 100.0,
            "again": self.again(seed),
        })
    }

    /// Returns the arguments of `foreread` that repeat this run.
    fn again(&self, seed: u64) -> Vec<String> {
        let tests: Vec<&str> = self.tests.iter().map(|test| test.name()).collect();
        let mut words = vec!["pg".to_owned(), self.target.to_string()];
        words.extend(["--test".to_owned(), tests.join(",")]);
        words.extend(self.vary.iter().flat_map(|vary| ["--vary".to_owned(), vary.clone()]));
        words.extend(match self.auto {
            WithAuto::Never => None,
            WithAuto::Always => Some("--auto=only".to_owned()),
            WithAuto::Both => Some("--auto".to_owned()),
        });
        let kib = |bytes: Bytes| format!("{}K", bytes.get() / 1024);
        for (option, value) in [
            ("--size", kib(self.size)),
            ("--shared-buffers", kib(self.shared_buffers)),
            ("--clients", self.clients.to_string()),
            ("--limit", format!("{}s", self.limit.as_secs_f64())),
            ("--primed", (self.primed * 100.0).to_string()),
            ("--repeats", self.repeats.to_string()),
            ("--seed", seed.to_string()),
        ] {
            words.extend([option.to_owned(), value]);
        }
        words
    }
}

fn check(plan: &PostgresPlan) -> Result<(), PgError> {
    let wrong = |text: &str| Err(PgError::Usage(text.to_owned()));
    if matches!(plan.target, Target::Simulation(_)) {
        return Err(study::StudyError::NeedsKernel { target: plan.target.to_string() }.into());
    }
    if plan.size < Bytes::from_mib(1) {
        return wrong("the table needs at least 1 MiB");
    }
    if !(plan.primed > 0.0 && plan.primed <= 1.0) {
        return wrong("the cached share must be above 0 and at most 100 %");
    }
    if plan.clients == 0 || plan.clients > 1000 {
        return wrong("the number of clients must be from 1 to 1000");
    }
    if plan.limit < Nanos::from_secs(1) || plan.shared_buffers < Bytes::from_kib(128) {
        return wrong("the limit must be at least 1 s, and the server's cache at least 128 KiB");
    }
    Ok(())
}

/// Returns a limit that stops programs after `seconds`, or when foreread is interrupted.
fn limit_of(environment: &Environment, seconds: u64) -> RunLimit {
    let cancel = environment.cancel.clone();
    let cancelled = Arc::new(move || cancel.is_cancelled());
    RunLimit { cancelled, ..RunLimit::seconds(seconds) }
}

struct Job<'a> {
    plan: &'a PostgresPlan,
    arms: &'a [PgArm],
    tools: &'a Tools,
    seed: u64,
    environment: &'a Environment,
}

impl Job<'_> {
    fn measure(
        &self,
        keeper: &mut Keeper<'_>,
        place: &mut LiveTarget,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Trial>, PgError> {
        progress.step(&ProgressEvent::Phase(StudyPhase::LayingOut));
        let mut session = Session::make(self.plan, self.tools, place, self.environment)?;
        progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
        let trials = self.trials(keeper, &mut session, place);
        let removed = session.remove();
        let trials = trials?;
        removed?;
        Ok(trials)
    }

    /// Runs all trials: in each round, every test under every setting, in random order.
    fn trials(
        &self,
        keeper: &mut Keeper<'_>,
        session: &mut Session,
        place: &mut LiveTarget,
    ) -> Result<Vec<Trial>, PgError> {
        let tests = &self.plan.tests;
        let mut random = Pcg64::seed_from_u64(self.seed);
        let mut trials = Vec::new();
        for round in 0..self.plan.repeats {
            let arms = 0..self.arms.len();
            let all = arms.flat_map(|arm| tests.iter().map(move |test| (arm, *test)));
            let mut order: Vec<(usize, Test)> = all.collect();
            order.shuffle(&mut random);
            for (arm, test) in order {
                if self.environment.cancel.is_cancelled() {
                    return Err(PgError::Cancelled);
                }
                let trial = Trial { arm, ..self.trial(arm, test, session, place)? };
                keeper.add(round, &trial)?;
                trials.push(trial);
            }
        }
        Ok(trials)
    }

    fn trial(
        &self,
        arm: usize,
        test: Test,
        session: &mut Session,
        place: &mut LiveTarget,
    ) -> Result<Trial, PgError> {
        let Self { plan, seed, environment, .. } = *self;
        for setting in &self.arms[arm].tunables {
            place.set(setting.tunable, &setting.value)?;
        }
        session.start_cold(&self.arms[arm])?;
        place.reset_disk()?;
        let control = || control(plan, place, environment);
        let _control = (self.arms[arm].auto == Some(true)).then(control).transpose()?;
        match test {
            Test::Prime => prime::prime(plan, session, place, environment, seed),
            Test::Pgbench => prime::pgbench(plan, session, place, environment, seed),
            Test::Seq | Test::Index | Test::Bitmap => {
                scans::scan(test, plan, session, place, environment)
            }
        }
    }
}

/// Starts `foreread auto` for one trial.
fn control(
    plan: &PostgresPlan,
    place: &LiveTarget,
    environment: &Environment,
) -> Result<AutoProcess, PgError> {
    // A scan may take as long as loading; nothing takes longer.
    let seconds = session::LOAD_TIMEOUT_S.max(plan.limit.as_secs_f64() as u64 + 120);
    AutoProcess::start(&environment.server.program, &place.storage.path, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn plan() -> PostgresPlan {
        PostgresPlan {
            target: Target::Path("/data".into()),
            tests: vec![Test::Seq],
            vary: Vec::new(),
            auto: WithAuto::Never,
            size: Bytes::from_mib(64),
            shared_buffers: Bytes::from_mib(16),
            clients: 8,
            limit: Nanos::from_secs(60),
            primed: 0.99,
            repeats: 1,
            seed: Some(1),
        }
    }

    #[test]
    fn what_cannot_be_tested_is_refused() {
        assert!(check(&plan()).is_ok());
        assert!(check(&PostgresPlan { size: Bytes::from_kib(8), ..plan() }).is_err());
        assert!(check(&PostgresPlan { primed: 1.5, ..plan() }).is_err());
        assert!(check(&PostgresPlan { primed: f64::NAN, ..plan() }).is_err());
        assert!(check(&PostgresPlan { clients: 0, ..plan() }).is_err());
        assert!(check(&PostgresPlan { limit: Nanos::ZERO, ..plan() }).is_err());
    }
}
