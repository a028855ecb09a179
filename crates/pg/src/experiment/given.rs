//! Tests on an existing server, which read one of its tables.

use crate::server::{Client, PgbenchLoad};
use serde_json::json;
use study::{Environment, Progress, ProgressEvent, Store, StudyPhase, Target};
use units::{Bytes, Nanos};

use super::keep::{Intent, Keeper};
use super::{DeviceSampler, NAME, PgArm, QUESTION, Test, Trial, arms, conclude, limit_of, prime};
use crate::error::PgError;
use study::{Findings, LiveTarget, drawn_seed};

/// Time limit of a scan, in seconds.
const SCAN_TIMEOUT_S: u64 = 24 * 3600;

/// A note that applies to every figure.
const CACHES: &str = "the caches of server and kernel were not emptied: cached data needed no disk";

/// A plan for an existing server.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenPlan {
    /// Storage of the server's data: its devices are counted, and its tunables varied.
    pub target: Target,
    /// Connection, as for `psql -d`.
    pub connection: String,
    /// Table to read, with its schema if necessary.
    pub table: String,
    /// Column with an integer key, for selects by key; `None` for no selects.
    pub key: Option<String>,
    /// Varied tunables of the storage. The server's settings are not changed.
    pub vary: Vec<String>,
    /// Number of concurrent pgbench sessions.
    pub clients: u32,
    /// Duration of the selects by key, in wall time.
    pub limit: Nanos,
    /// Number of repeats of each test under each setting.
    pub repeats: u32,
    pub seed: Option<u64>,
}

/// Tests an existing server by reading one table.
pub fn run(
    plan: &GivenPlan,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, PgError> {
    let table = quoted(&plan.table)?;
    let key = plan.key.as_deref().map(quoted).transpose()?;
    let arms = arms::parse(&plan.vary, u32::MAX)?;
    if let Some((name, _)) = arms.iter().find_map(|arm| arm.server.first()) {
        let text = format!(
            "{name} is a setting of the server, which is not changed with \
                            --connect"
        );
        return Err(PgError::Usage(text));
    }
    let client = Client::connect_to(&plan.connection)?;
    let mut place = LiveTarget::open(&plan.target, environment, progress)?;
    progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    let tests = if key.is_some() { vec![Test::Seq, Test::Prime] } else { vec![Test::Seq] };
    let intent = Intent {
        target: &plan.target,
        tests: &tests,
        arms: &arms,
        clients: plan.clients,
        repeats: plan.repeats,
        seed,
        cold: false,
        // Without the connection, which may contain a password.
        facts: json!({ "table": plan.table, "key": plan.key, "clients": plan.clients }),
    };
    let mut keeper = Keeper::begin(store, &intent, &place, environment)?;
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    (answer.seed, answer.run) = (seed, Some(keeper.run()));
    answer.notes.push(CACHES.to_owned());
    let reading = Reading { plan, client: &client, table, key, environment, seed };
    let measured = reading.trials(&arms, &mut keeper, &mut place);
    let (trials, size) = keeper.end(measured, place, environment, progress)?;
    conclude::conclude(&mut answer, &arms, &trials, size);
    Ok(answer)
}

/// Quotes SQL identifiers, so that a name cannot be a statement.
fn quoted(name: &str) -> Result<String, PgError> {
    let sound = !name.is_empty() && name.len() < 200 && !name.chars().any(char::is_control);
    if !sound {
        return Err(PgError::Usage(format!("{name:?} is not the name of a table or column")));
    }
    let parts = name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    Ok(parts.collect::<Vec<_>>().join("."))
}

struct Reading<'a> {
    plan: &'a GivenPlan,
    client: &'a Client,
    table: String,
    key: Option<String>,
    environment: &'a Environment,
    seed: u64,
}

impl Reading<'_> {
    fn trials(
        &self,
        arms: &[PgArm],
        keeper: &mut Keeper<'_>,
        place: &mut LiveTarget,
    ) -> Result<(Vec<Trial>, Bytes), PgError> {
        let limit = limit_of(self.environment, SCAN_TIMEOUT_S);
        let literal = self.table.replace('\'', "''");
        let size = format!("select pg_table_size('{literal}'::regclass)");
        let size = Bytes::new(self.client.run(&size, &limit)?.trim().parse().unwrap_or(0));
        let mut trials = Vec::new();
        for round in 0..self.plan.repeats {
            for (index, arm) in arms.iter().enumerate() {
                if self.environment.cancel.is_cancelled() {
                    return Err(PgError::Cancelled);
                }
                for setting in &arm.tunables {
                    place.set(setting.tunable, &setting.value)?;
                }
                let scan = Trial { arm: index, useful: size, ..self.scan(place)? };
                keeper.add(round, &scan)?;
                trials.push(scan);
                if let Some(key) = &self.key {
                    let select = Trial { arm: index, ..self.select(key, place)? };
                    keeper.add(round, &select)?;
                    trials.push(select);
                }
            }
        }
        Ok((trials, size))
    }

    fn scan(&self, place: &LiveTarget) -> Result<Trial, PgError> {
        let prepare = "set max_parallel_workers_per_gather = 0;\nset enable_indexscan = off;\n\
                       set enable_indexonlyscan = off;\nset enable_bitmapscan = off;";
        let statement = format!("select count(*) from {}", self.table);
        let limit = limit_of(self.environment, SCAN_TIMEOUT_S);
        let watch = DeviceSampler::start(&self.environment.root, &place.storage)?;
        // A new session opens files again, with the current window.
        let timed = self.client.time(prepare, &statement, &limit)?;
        Ok(Trial { device: watch.end()?, ..Trial::new(Test::Seq, timed.ms / 1000.0) })
    }

    /// Runs random selects by key for the planned duration.
    fn select(&self, key: &str, place: &LiveTarget) -> Result<Trial, PgError> {
        let limit = limit_of(self.environment, SCAN_TIMEOUT_S);
        let ends = format!("select min({key}), max({key}) from {}", self.table);
        let said = self.client.run(&ends, &limit)?;
        let ends = said
            .trim()
            .split_once('|')
            .and_then(|(low, high)| Some((low.parse::<i64>().ok()?, high.parse::<i64>().ok()?)));
        let Some((low, high)) = ends else {
            let text = format!("{key} of {} is not an integer key: {said:?}", self.table);
            return Err(PgError::Usage(text));
        };
        let script = format!(
            "\\set id random({low}, {high})\nselect * from {} where {key} = :id;\n",
            self.table
        );
        let seconds = (self.plan.limit.as_secs_f64().round() as u64).max(1);
        let (clients, seed) = (self.plan.clients, self.seed);
        let load =
            PgbenchLoad { script: Some(script), variables: Vec::new(), clients, seconds, seed };
        let watch = DeviceSampler::start(&self.environment.root, &place.storage)?;
        let ran =
            load.run(self.client, &limit_of(self.environment, seconds + 60), &mut |_| false)?;
        Ok(Trial { device: watch.end()?, ..prime::trial(Test::Prime, &ran, 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_statements() {
        assert_eq!(quoted("public.t").unwrap(), "\"public\".\"t\"");
        assert_eq!(quoted("t\"; drop table x; --").unwrap(), "\"t\"\"; drop table x; --\"");
        assert!(quoted("").is_err() && quoted("a\nb").is_err());
    }
}
