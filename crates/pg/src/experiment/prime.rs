//! Random selects from a cold cache until all data is cached, and pgbench's built-in transactions.

use crate::server::{Moment, Pgbench, PgbenchLoad};
use bench::Series;
use host::idle_reclaim;
use study::Environment;
use sys::hold::Hold;
use units::{Bytes, Nanos};

use super::session::{Session, rows};
use super::watch::SampledSeries;
use super::{DeviceSampler, PostgresPlan, Test, Trial, limit_of};
use crate::error::PgError;
use study::LiveTarget;

const SELECT_SCRIPT: &str = "\\set id random(1, :rows)\nselect pad from foreread where id = :id;\n";
/// Additional time for a program to start and exit, in seconds.
const OVERHEAD_S: u64 = 60;
/// Interval at which cached pages are marked as used, in seconds; shorter than the age at which
/// hosts reclaim idle pages.
const HOLD_INTERVAL_S: f64 = 1.0;

/// Selects rows by random keys until table and index are cached, or until the time limit.
pub(super) fn prime(
    plan: &PostgresPlan,
    session: &Session,
    place: &LiveTarget,
    environment: &Environment,
    seed: u64,
) -> Result<Trial, PgError> {
    let load = PgbenchLoad {
        script: Some(SELECT_SCRIPT.to_owned()),
        variables: vec![("rows".to_owned(), rows(plan).to_string())],
        ..load(plan, seed)
    };
    let mut priming = Priming {
        session,
        goal: plan.primed,
        held: Held::new(session, environment)?,
        course: SampledSeries::new(vec![Series::level("cached of table and index", "%")]),
        reached: 0.0,
        primed: None,
        problem: None,
    };
    let watch = DeviceSampler::start(&environment.root, &place.storage)?;
    let limit = limit_of(environment, load.seconds + OVERHEAD_S);
    let ran = load.run(&session.client, &limit, &mut |seconds| priming.is_over(seconds))?;
    let device = watch.end()?;
    if let Some(error) = priming.problem {
        return Err(error);
    }
    let seconds = priming.primed.unwrap_or(ran.seconds) / place.dilation;
    let complete = priming.primed.is_some();
    let useful = Bytes::new((session.watched_size()?.get() as f64 * priming.reached) as u64);
    let watched = priming.course.series();
    let trial = trial(Test::Prime, &ran, place.dilation);
    Ok(Trial { seconds, complete, device, useful, watched, ..trial })
}

struct Priming<'a> {
    session: &'a Session,
    /// Share of table and index to be cached.
    goal: f64,
    held: Held,
    course: SampledSeries,
    /// Cached share at the last check.
    reached: f64,
    /// Time from the start until the goal was reached, in seconds; `None` before.
    primed: Option<f64>,
    problem: Option<PgError>,
}

impl Priming<'_> {
    /// Checks the cached share at this time; returns whether priming is complete or failed.
    fn is_over(&mut self, seconds: f64) -> bool {
        match self.held.renew(seconds).and_then(|()| self.session.cached()) {
            Ok(share) => self.note(seconds, share),
            Err(error) => self.problem = Some(error),
        }
        self.primed.is_some() || self.problem.is_some()
    }

    fn note(&mut self, seconds: f64, share: f64) {
        self.reached = share;
        let at = Nanos::from_secs_f64(seconds);
        if self.course.is_due(at) || share >= self.goal {
            self.course.push(at, &[share * 100.0]);
        }
        self.primed = (share >= self.goal).then_some(seconds);
    }
}

/// Keeps cached data on a host that reclaims idle cache, because priming measures the time until
/// all data has been read once.
struct Held {
    files: Vec<Hold>,
    renewed: f64,
}

impl Held {
    fn new(session: &Session, environment: &Environment) -> Result<Self, PgError> {
        let is_reclaimed = idle_reclaim(&environment.root).is_some();
        let files = if is_reclaimed { session.hold()? } else { Vec::new() };
        Ok(Self { files, renewed: 0.0 })
    }

    /// Also holds data that was cached since the last call, at most once per second.
    fn renew(&mut self, seconds: f64) -> Result<(), PgError> {
        if seconds - self.renewed < HOLD_INTERVAL_S {
            return Ok(());
        }
        self.renewed = seconds;
        let renewed = self.files.iter_mut().try_for_each(|file| file.renew().map(drop));
        renewed.map_err(|error| {
            PgError::NotPossible(format!(
                "cannot keep idle cache, which this host reclaims: {error}"
            ))
        })
    }
}

/// Runs pgbench's built-in transactions for the planned duration.
pub(super) fn pgbench(
    plan: &PostgresPlan,
    session: &Session,
    place: &LiveTarget,
    environment: &Environment,
    seed: u64,
) -> Result<Trial, PgError> {
    let load = load(plan, seed);
    let watch = DeviceSampler::start(&environment.root, &place.storage)?;
    let limit = limit_of(environment, load.seconds + OVERHEAD_S);
    let ran = load.run(&session.client, &limit, &mut |_| false)?;
    Ok(Trial { device: watch.end()?, ..trial(Test::Pgbench, &ran, place.dilation) })
}

fn load(plan: &PostgresPlan, seed: u64) -> PgbenchLoad {
    let seconds = (plan.limit.as_secs_f64().round() as u64).max(1);
    PgbenchLoad { script: None, variables: Vec::new(), clients: plan.clients, seconds, seed }
}

/// Converts to the storage's own time: with dilation k, rates are k times as high.
pub(super) fn trial(test: Test, ran: &Pgbench, dilation: f64) -> Trial {
    let own = |moment: &Moment| Moment {
        seconds: moment.seconds / dilation,
        per_second: moment.per_second * dilation,
    };
    Trial {
        per_second: ran.per_second.map(|rate| rate * dilation),
        moments: ran.moments.iter().map(own).collect(),
        ..Trial::new(test, ran.seconds / dilation)
    }
}
