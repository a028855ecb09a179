//! Another implementation, DuckDB from Python, reads the Parquet file of a run.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and says what it skips

mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foreread_report::write_parquet;
use sample::{Sample, sample_of, trial};
use serde_json::Value;
use units::Kib;

/// Prints the column types and all rows as JSON; real numbers are text, without loss.
const SCRIPT: &str = "
import duckdb, json, sys
table = duckdb.execute(\"select * from read_parquet(?)\", [sys.argv[1]])
columns = [[column[0], str(column[1])] for column in table.description]
exact = lambda value: repr(value) if isinstance(value, float) else value
rows = [[exact(value) for value in row] for row in table.fetchall()]
print(json.dumps({'columns': columns, 'rows': rows}))
";

/// Returns a Python interpreter that has DuckDB; `make deps` installs one in target/venv.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    [own, PathBuf::from("python3")].into_iter().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import duckdb"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// Returns more trials than a group of eight definition levels, some with odd names or no values.
fn runs() -> Sample {
    let mut trials: Vec<_> =
        (0..11).map(|at| trial("seq-1", 4 << at, 0.5 + f64::from(at), at)).collect();
    trials[3].workload = "größe \u{1b}[31m, \"x\"".to_owned();
    trials[3].disturbances = vec!["other reads".to_owned(), "memory pressure".to_owned()];
    trials[4].figures.amplification = None;
    trials[5].figures.latency_us = None;
    trials[6].figures.throughput_mib_s = f64::NAN;
    sample_of(trials)
}

#[test]
fn another_implementation_reads_every_value() {
    let Some(python) = python() else {
        println!(
            "SKIP another_implementation_reads_every_value: no Python with DuckDB (make deps)"
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.parquet");
    let sample = runs();
    let runs = [sample.report(), sample.report()];
    write_parquet(&runs, std::fs::File::create(&path).unwrap()).unwrap();
    let output = Command::new(python).arg("-c").arg(SCRIPT).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();

    let columns = read["columns"].as_array().unwrap();
    let at = |name: &str| columns.iter().position(|column| column[0] == name).unwrap();
    for (name, kind) in [("run", "BIGINT"), ("workload", "VARCHAR"), ("amplification", "DOUBLE")] {
        assert_eq!(columns[at(name)][1], kind, "{name}");
    }
    let rows = read["rows"].as_array().unwrap();
    let trials = &sample.run.trials;
    assert_eq!(rows.len(), 2 * trials.len());
    for (row, trial) in rows.iter().zip(trials.iter().chain(trials)) {
        let real = |name: &str| row[at(name)].as_str().map(|text| text.parse::<f64>().unwrap());
        let figures = &trial.figures;
        assert_eq!(row[at("run")], 7);
        assert_eq!(row[at("target")], "/srv/data");
        assert_eq!(row[at("trial")], trial.order);
        let window = row[at("read_ahead_kib")].as_u64().unwrap();
        assert_eq!(Kib::new(window), trial.settings.read_ahead);
        let rate = Some(figures.throughput_mib_s).filter(|rate| rate.is_finite());
        assert_eq!(real("throughput_mib_s"), rate, "trial {}", trial.order);
        assert_eq!(real("amplification"), figures.amplification);
        assert_eq!(real("latency_us_p50"), figures.latency_us.map(|of| of.p50));
        assert_eq!(real("latency_us_p99"), figures.latency_us.map(|of| of.p99));
        assert_eq!(real("random_latency_us_p50"), None);
        assert_eq!(real("started_unix_s"), Some(trial.started_unix_s));
        assert_eq!(row[at("disturbances")], trial.disturbances.join("; "));
    }
    let name = rows[3][at("workload")].as_str().unwrap();
    assert!(name.starts_with("größe") && name.ends_with("\"x\"") && !name.contains('\u{1b}'));
}
