//! What does PostgreSQL get from this storage, and what do settings do to it?
//!
//! A private cluster is made on the target, a table of a known size is loaded, and each test starts
//! cold: the server is stopped, its files are evicted from the page cache, the server is started
//! under the settings of the moment. A server that is there already is never touched; one that is
//! named ([`given`]) is only read.

mod arms;
mod conclude;
pub mod given;
mod prime;
mod scans;
mod session;

use std::sync::Arc;

use ::postgres::{Limit, Moment, PostgresError, Tools};
use host::{BlockStat, Root, Storage};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use study::{Environment, Phase, Progress, Step, Target};
use sys::realtime;
use units::{Bytes, Nanos};

use crate::{Answer, ExperimentError, Place, Wants, drawn_seed};
use arms::Arm;
use session::Session;

/// The name of this experiment.
pub const NAME: &str = "pg";
/// What it asks.
pub const QUESTION: &str = "What does PostgreSQL get from this storage?";

/// A test of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// `select count(*)` by a sequential scan.
    Seq,
    /// Rows in the order of an index, which is not that of the table.
    Index,
    /// Many rows by a bitmap scan.
    Bitmap,
    /// Random selects by key, from cold until everything is cached.
    Prime,
    /// pgbench's own, TPC-B-like transactions.
    Pgbench,
}

impl Test {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seq => "seq",
            Self::Index => "index",
            Self::Bitmap => "bitmap",
            Self::Prime => "prime",
            Self::Pgbench => "pgbench",
        }
    }
}

/// How the server is tested.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresPlan {
    /// Where the cluster is made: a directory or a virtual disk.
    pub target: Target,
    /// What is tested.
    pub tests: Vec<Test>,
    /// What is varied: `NAME=VALUE[,VALUE…]`, tunables and settings of the server.
    pub vary: Vec<String>,
    /// The size of the table.
    pub size: Bytes,
    /// The server's own cache.
    pub shared_buffers: Bytes,
    /// Sessions of pgbench side by side.
    pub clients: u32,
    /// How long priming, and a trial of pgbench, may take at most, on the clock.
    pub limit: Nanos,
    /// The share of table and index that is cached when priming is over.
    pub primed: f64,
    /// How often each test is repeated under each setting.
    pub repeats: u32,
    /// The seed of the order and of the keys.
    pub seed: Option<u64>,
}

/// What one trial measured. Times are the storage's own.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    arm: usize,
    test: Test,
    /// How long it took; for pgbench, how long it was given.
    seconds: f64,
    /// Transactions a second over all.
    per_second: Option<f64>,
    /// How it went.
    moments: Vec<Moment>,
    /// Whether it came to its end: priming may run out of time.
    complete: bool,
    device: Device,
}

/// What the devices did meanwhile; as the clock had it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Device {
    stat: BlockStat,
    seconds: f64,
}

impl Device {
    /// The share of time in which the device had a request.
    fn utilisation(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| (self.stat.busy.as_secs_f64() / self.seconds).min(1.0))
    }
}

/// Counts what the devices do.
struct Watch<'a> {
    root: &'a Root,
    storage: &'a Storage,
    begun: Nanos,
    before: BlockStat,
}

impl<'a> Watch<'a> {
    fn start(root: &'a Root, storage: &'a Storage) -> Result<Self, ExperimentError> {
        let before = storage.stat(root)?.unwrap_or_default();
        Ok(Self { root, storage, begun: realtime::now(), before })
    }

    fn end(self) -> Result<Device, ExperimentError> {
        let seconds = realtime::now().saturating_sub(self.begun).as_secs_f64();
        let after = self.storage.stat(self.root)?.unwrap_or_default();
        Ok(Device { stat: after - self.before, seconds })
    }
}

/// Makes a cluster, tests it, removes it.
pub fn run(
    plan: &PostgresPlan,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Answer, ExperimentError> {
    check(plan)?;
    // What makes no sense is told before what is missing.
    arms::of(&plan.vary, u32::MAX)?;
    let tools = Tools::find()?;
    let arms = arms::of(&plan.vary, tools.major())?;
    let mut place = Place::open(&plan.target, Wants::default(), environment, progress)?;
    let measured = measure(plan, &arms, &tools, &mut place, environment, progress);
    let closed = place.close(progress);
    let answer = measured?;
    closed?;
    Ok(answer)
}

fn check(plan: &PostgresPlan) -> Result<(), ExperimentError> {
    let wrong = |text: &str| Err(ExperimentError::Usage(text.to_owned()));
    if matches!(plan.target, Target::Simulation(_)) {
        return Err(ExperimentError::Simulated { target: plan.target.to_string() });
    }
    if plan.size < Bytes::from_mib(1) {
        return wrong("the table needs 1 MiB at least");
    }
    if !(plan.primed > 0.0 && plan.primed <= 1.0) {
        return wrong("the share that is to be cached must be above 0 and at most 100 %");
    }
    if plan.clients == 0 || plan.clients > 1000 {
        return wrong("the number of clients must be from 1 to 1000");
    }
    if plan.limit < Nanos::from_secs(1) || plan.shared_buffers < Bytes::from_kib(128) {
        return wrong("the limit must be 1 s, the server's cache 128 KiB at least");
    }
    Ok(())
}

/// What ends programs that take too long, or when this is interrupted.
fn limit_of(environment: &Environment, seconds: u64) -> Limit {
    let cancel = environment.cancel.clone();
    let cancelled = Arc::new(move || cancel.is_cancelled());
    Limit { cancelled, ..Limit::seconds(seconds) }
}

fn measure(
    plan: &PostgresPlan,
    arms: &[Arm],
    tools: &Tools,
    place: &mut Place,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Answer, ExperimentError> {
    let mut answer = Answer::new(NAME, QUESTION, plan.target.to_string());
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    (answer.seed, answer.dilation) = (seed, place.dilation);
    answer.notes.push(format!("PostgreSQL {}", tools.version));
    progress.step(&Step::Phase(Phase::LayingOut));
    let mut session = Session::make(plan, tools, place, environment)?;
    progress.step(&Step::Phase(Phase::Measuring));
    let trials = trials(plan, arms, seed, &mut session, place, environment);
    let removed = session.remove();
    let trials = trials.map_err(interrupted)?;
    removed?;
    conclude::conclude(&mut answer, arms, &trials, session::table_size(plan));
    Ok(answer)
}

/// All trials: in each round every test under every setting, in random order.
fn trials(
    plan: &PostgresPlan,
    arms: &[Arm],
    seed: u64,
    session: &mut Session,
    place: &mut Place,
    environment: &Environment,
) -> Result<Vec<Trial>, ExperimentError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut trials = Vec::new();
    for _ in 0..plan.repeats {
        let all = (0..arms.len()).flat_map(|arm| plan.tests.iter().map(move |test| (arm, *test)));
        let mut order: Vec<(usize, Test)> = all.collect();
        order.shuffle(&mut random);
        for (arm, test) in order {
            if environment.cancel.is_cancelled() {
                return Err(ExperimentError::Cancelled);
            }
            for setting in &arms[arm].tunables {
                place.set(setting.tunable, &setting.value)?;
            }
            session.start_cold(&arms[arm])?;
            let trial = match test {
                Test::Prime => prime::prime(plan, session, place, environment, seed)?,
                Test::Pgbench => prime::pgbench(plan, session, place, environment, seed)?,
                Test::Seq | Test::Index | Test::Bitmap => {
                    scans::scan(test, plan, session, place, environment)?
                }
            };
            trials.push(Trial { arm, ..trial });
        }
    }
    Ok(trials)
}

/// What complains because it was ended.
fn interrupted(error: ExperimentError) -> ExperimentError {
    match error {
        ExperimentError::Postgres(PostgresError::Cancelled) => ExperimentError::Cancelled,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn plan() -> PostgresPlan {
        PostgresPlan {
            target: Target::Path("/data".into()),
            tests: vec![Test::Seq],
            vary: Vec::new(),
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
