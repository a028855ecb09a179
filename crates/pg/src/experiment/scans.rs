//! Scans the table, each time with the intended query plan.

use study::Environment;

use super::session::{Session, rows, table_size, touched};
use super::{DeviceSampler, PostgresPlan, Test, Trial, limit_of};
use crate::error::PgError;
use study::LiveTarget;

/// Time limit of a scan, in seconds.
const SCAN_TIMEOUT_S: u64 = 3600;
/// Index and bitmap scans fetch one of this many rows.
const ROWS_PER_FETCH: u64 = 20;

pub(super) fn scan(
    test: Test,
    plan: &PostgresPlan,
    session: &Session,
    place: &LiveTarget,
    environment: &Environment,
) -> Result<Trial, PgError> {
    let some = (rows(plan) / ROWS_PER_FETCH).max(1);
    let (prepare, statement) = statements(test, some);
    let limit = limit_of(environment, SCAN_TIMEOUT_S);
    let watch = DeviceSampler::start(&environment.root, &place.storage)?;
    let timed = session.client.time(&prepare, &statement, &limit)?;
    let device = watch.end()?;
    let expected = if test == Test::Seq { rows(plan) } else { some };
    if timed.rows.trim().parse() != Ok(expected) {
        let text = format!("{} rows instead of {expected}", timed.rows);
        return Err(PgError::Garbage { program: "postgres".to_owned(), text });
    }
    let useful = if test == Test::Seq { table_size(plan) } else { touched(plan, some) };
    let seconds = timed.ms / 1000.0 / place.dilation;
    Ok(Trial { useful, device, ..Trial::new(test, seconds) })
}

/// Returns the settings that force the query plan, and the statement.
fn statements(test: Test, some: u64) -> (String, String) {
    let off = |names: &[&str]| -> String {
        names.iter().map(|name| format!("set enable_{name} = off;\n")).collect()
    };
    let single = "set max_parallel_workers_per_gather = 0;\n";
    let (prepare, statement) = match test {
        Test::Index => (
            off(&["seqscan", "bitmapscan", "sort"]),
            format!(
                "select count(pad) from (select pad from foreread order by shuffled limit {some}) s"
            ),
        ),
        Test::Bitmap => (
            off(&["seqscan", "indexscan", "indexonlyscan"]),
            format!("select count(pad) from foreread where shuffled < {some}"),
        ),
        _ => (
            off(&["indexscan", "indexonlyscan", "bitmapscan"]),
            "select count(*) from foreread".to_owned(),
        ),
    };
    (format!("{single}{prepare}"), statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planner_has_no_choice() {
        let (prepare, statement) = statements(Test::Bitmap, 7);
        assert!(prepare.contains("enable_seqscan = off") && statement.ends_with("shuffled < 7"));
        let (prepare, _) = statements(Test::Seq, 7);
        assert!(prepare.contains("enable_indexonlyscan = off"));
        assert!(statements(Test::Index, 7).1.contains("order by shuffled limit 7"));
    }
}
