//! A plan run in parts, repeatedly and in any order gives the results of one uninterrupted run.
#![allow(clippy::unwrap_used)] // a test may panic

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use foreread_batch::{
    BatchPlan, CellStatus, Shard, finished_cells, read_manifest, read_result_set,
};
use serde_json::json;
use testkit::fuzz;

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a trace that reads every `stride`th block of 4 KiB.
    fn trace(&self, name: &str, stride: u64) -> PathBuf {
        let rows: String = (0..500).map(|n| format!("{},4096\n", n * stride * 4096)).collect();
        let path = self.path(name);
        fs::write(&path, format!("offset,length\n{rows}")).unwrap();
        path
    }

    /// Returns a plan of two traces with 2 × 2 × 3 cells each.
    fn plan(&self) -> BatchPlan {
        let grid = json!({
            "policy": ["linux-6.18", "none"],
            "read_ahead_kib": [128, 1024],
            "seed": [0, 1, 2],
            "device": ["hdd-2008"],
            "cache_bytes": [1 << 26],
        });
        BatchPlan {
            traces: vec![self.trace("a.csv", 1), self.trace("b.csv", 3)],
            grid: serde_json::from_value(grid).unwrap(),
            cells: Vec::new(),
            shard_seconds: 20.0,
        }
    }
}

fn run_all(shards: &[Shard], out: &Path) {
    for shard in shards {
        shard.run(out).unwrap();
    }
}

fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(out).unwrap().flatten();
    let read = |path: PathBuf| (path.display().to_string(), fs::read(path).unwrap());
    let named = entries.map(|entry| read(entry.path()));
    named
        .map(|(path, bytes)| (path.rsplit('/').next().unwrap_or_default().to_owned(), bytes))
        .collect()
}

#[test]
fn an_interrupted_run_goes_on_and_repeats_nothing() {
    let scratch = Scratch::new();
    let plan = BatchPlan { shard_seconds: 1e-9, ..scratch.plan() };
    let (whole, parts) = (scratch.path("whole"), scratch.path("parts"));
    let all = plan.shards(&whole).unwrap();
    assert_eq!((all.cells, all.finished, all.shards.len()), (24, 0, 24));
    run_all(&all.shards, &whole);
    // Run from the end, interrupted: finished shards are left out, the others keep their names.
    run_all(&all.shards[20..], &parts);
    let left = plan.shards(&parts).unwrap();
    assert_eq!((left.cells, left.finished), (24, 4));
    assert_eq!(left.shards, all.shards[..20]);
    run_all(&left.shards, &parts);
    // Running a shard twice changes nothing.
    run_all(&left.shards[..1], &parts);
    assert!(plan.shards(&parts).unwrap().shards.is_empty());
    assert_eq!(files(&parts), files(&whole));
    assert_eq!(finished_cells(&whole).unwrap().len(), 24);
}

#[test]
fn rows_are_the_same_however_cells_are_divided() {
    let scratch = Scratch::new();
    let (large, small) = (scratch.path("large"), scratch.path("small"));
    let plan = scratch.plan();
    run_all(&plan.shards(&large).unwrap().shards, &large);
    let plan = BatchPlan { shard_seconds: 1e-9, ..plan };
    run_all(&plan.shards(&small).unwrap().shards, &small);
    let (large, small) = (read_result_set(&large).unwrap(), read_result_set(&small).unwrap());
    assert_eq!((large.paths.len(), small.paths.len()), (2, 24));
    assert_eq!(large.digest, small.digest);
    assert_eq!(large.cells, BTreeMap::from([("ok".to_owned(), 24)]));
}

#[test]
fn errors_of_the_simulator_and_deaths_of_workers_are_rows() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let plan = scratch.plan();
    let beyond = plan.cells.iter().cloned().chain([serde_json::from_value(json!({
        "device": "hdd-2008", "pace": "recorded"
    }))
    .unwrap()]);
    let plan = BatchPlan { cells: beyond.collect(), ..plan };
    let shards = plan.shards(&out).unwrap().shards;
    assert_eq!(shards[0].run(&out).unwrap().errors, 1, "no times, no recorded pace");
    shards[1].poison(&out, "its worker died 3 times").unwrap();
    let set = read_result_set(&out).unwrap();
    let counts = [("error", 1), ("ok", 12), ("poisoned", 13)];
    assert_eq!(set.cells, counts.map(|(name, count)| (name.to_owned(), count)).into());
    assert!(plan.shards(&out).unwrap().shards.is_empty(), "neither is tried again");
    assert_eq!(CellStatus::Error(String::new()).name(), "error");
}

#[test]
fn what_does_not_belong_to_the_plan_is_refused_and_nothing_is_published() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let plan = scratch.plan();
    let shard = plan.shards(&out).unwrap().shards.remove(0);
    let refused = |shard: &Shard| shard.run(&out).unwrap_err().to_string();
    let old = Shard { simulator_version: "0.0.1".to_owned(), ..shard.clone() };
    assert!(refused(&old).contains("make the plan again"));
    let mut edited = shard.clone();
    edited.cells[0].seed = 99;
    assert!(refused(&edited).contains("does not follow from its cells"));
    scratch.trace("a.csv", 2);
    assert!(refused(&shard).contains("has changed"));
    fs::remove_file(scratch.path("a.csv")).unwrap();
    assert!(refused(&shard).contains("a.csv"));
    assert!(!out.exists());
}

#[test]
fn a_plan_with_mistakes_names_each_of_them() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let plan = scratch.plan();
    let with = |name: &str, values: serde_json::Value| {
        let mut plan = plan.clone();
        plan.grid.insert(name.to_owned(), values.as_array().unwrap().clone());
        plan.shards(&out).unwrap_err().to_string()
    };
    assert!(with("polcy", json!(["none"])).contains("did you mean \"policy\""));
    assert!(with("policy", json!(["nonne"])).contains("did you mean \"none\""));
    assert!(with("seed", json!([])).contains("has no values"));
    assert!(with("seed", json!(["one"])).contains("grid"));
    assert!(with("zzzzzzzz", json!([1])).contains("cell has"));
    let none = BatchPlan { traces: Vec::new(), ..plan.clone() };
    assert!(none.shards(&out).unwrap_err().to_string().contains("no traces"));
    let odd = BatchPlan { shard_seconds: f64::NAN, ..plan.clone() };
    assert!(odd.shards(&out).unwrap_err().to_string().contains("shard_seconds"));
    fs::write(scratch.path("cut.csv"), "offset,length\n0,4096\n1").unwrap();
    let mut traces = plan.traces.clone();
    traces.extend([scratch.path("cut.csv"), scratch.path("none.csv")]);
    let error = BatchPlan { traces, ..plan }.shards(&out).unwrap_err().to_string();
    assert!(error.contains("2 traces"), "{error}");
    assert!(error.contains("cut.csv:3") && error.contains("none.csv"), "{error}");
}

#[test]
fn a_manifest_is_what_was_planned() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let plan = scratch.plan();
    let (summary, manifest) = plan.write_manifest(&out).unwrap();
    assert_eq!(read_manifest(&manifest.path).unwrap(), summary.shards);
    assert_eq!(manifest.shards, 2);
    fs::write(&manifest.path, "{}\n").unwrap();
    assert!(read_manifest(&manifest.path).unwrap_err().to_string().contains("line 1"));
}

#[test]
fn damaged_results_are_an_error_and_no_panic() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let shard = scratch.plan().shards(&out).unwrap().shards.remove(0);
    let path = shard.run(&out).unwrap().part.path;
    let corpus = [fs::read(&path).unwrap()];
    let count = fuzz::run(fuzz::budget(), &corpus, |bytes| {
        fs::write(&path, bytes).unwrap();
        let _ = finished_cells(&out);
        if let Err(error) = read_result_set(&out) {
            assert!(error.to_string().contains("remove it"), "{error}");
        }
    });
    assert!(count > 10, "{count} inputs");
}
