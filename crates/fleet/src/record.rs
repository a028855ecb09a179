//! Converts the runs of a host's record to rows of the database.

use std::path::Path;

use serde_json::{Value, json};
use study::{RunStatus, Store};

use crate::error::FleetError;
use crate::uuid;

/// A row for the database: kind and document.
pub(crate) type DatabaseRow = (&'static str, Value);

/// Returns the rows of all completed runs of a record. A run that is still running is left for the
/// next import.
pub(crate) fn rows(path: &Path, host_id: &str) -> Result<Vec<DatabaseRow>, FleetError> {
    let Some(store) = Store::open_read_only(path)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for summary in store.runs()? {
        if summary.status == RunStatus::Running {
            continue;
        }
        let mut trials = Vec::new();
        let run = store.load_with(summary.id, |trial, record| {
            trials.push((trial.order, json!({ "record": record })));
        })?;
        let (number, created) = (summary.id.0.to_le_bytes(), summary.created_unix_s.to_le_bytes());
        let seed = run.seed.to_le_bytes();
        // A record never reuses a number, so a run keeps this identity.
        let id = uuid::derived("foreread run", &[host_id.as_bytes(), &number, &created, &seed]);
        rows.push((
            "run",
            json!({
                "run_uuid": id, "host_id": host_id, "number": summary.id,
                "created_unix_s": summary.created_unix_s, "command": summary.command,
                "target": summary.target, "status": summary.status, "error": summary.error,
                "version": summary.version, "plan": run.plan, "machine": run.machine,
            }),
        ));
        for trial in &run.trials {
            let record = trials.iter().find(|(order, _)| *order == trial.order);
            rows.push((
                "trial",
                json!({
                    "run_uuid": id, "number": trial.order, "block": trial.block,
                    "workload": trial.workload, "settings": trial.settings,
                    "started_unix_s": trial.started_unix_s, "status": trial.status,
                    "figures": trial.figures,
                    "record": record.map(|(_, record)| &record["record"]),
                }),
            ));
        }
    }
    Ok(rows)
}
