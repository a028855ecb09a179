//! The JSON conforms to docs/foreread.schema.json.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;
mod validate;

use foreread_report::{Named, Pairing, compare_json, json};
use sample::{Sample, sample};
use serde_json::{Value, json as value};
use study::{Combination, Difference, Estimate, FactorInteraction, LevelPair};
use validate::{problems, schema};

/// Compares a run with a run that has fewer and other cells.
#[test]
fn comparisons_are_what_their_schema_promises() {
    let text = include_str!("../../../docs/compare.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let (first, mut second) = (sample(), sample());
    second.analysis.cells.truncate(7);
    second.analysis.cells[0].throughput_mib_s = Estimate::unbounded(5.0);
    let named = [&first, &second].map(|sample| Named { report: sample.report(), name: None });
    let pairings = Pairing::all(&named);
    let text = serde_json::to_string(&compare_json(&pairings).unwrap()).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    problems(&schema, &schema, &document, "", &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(document["others"][0]["comparison"]["cells"].as_array().unwrap().len(), 7);
    let mut wrong = document.clone();
    wrong["others"][0]["comparison"]["cells"][0]["difference"] = value!("perhaps");
    problems(&schema, &schema, &wrong, "", &mut found);
    assert_eq!(found.len(), 1, "{found:?}");
}

/// The findings of an experiment.
#[test]
fn answers_are_what_the_schema_promises() {
    let mut answer = study::Findings::new("blocks", "What?", "disk".to_owned());
    let mut table = study::ResultTable::new("Reads", &[("request_kib", "KiB")]);
    table.rows = vec![vec![8u64.into()], vec![f64::NAN.into()]];
    answer.tables.push(table);
    let mut plot = study::ResultPlot::new("reads", "KiB", "1/s");
    plot.curves.push(study::ResultCurve { name: "one".to_owned(), points: vec![(1.0, 2.0)] });
    answer.plots.push(plot);
    let document = foreread_report::answer_json(&answer);
    validate::assert_valid_as("experiment_document", &document);
    assert_eq!(document["tables"][0]["rows"][1]["request_kib"], Value::Null);
}

fn document(sample: &Sample) -> Value {
    let text = serde_json::to_string(&json(&sample.report())).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn assert_valid(document: &Value) {
    let schema = schema();
    let mut found = Vec::new();
    problems(&schema, &schema, document, "", &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_whole_run_keeps_the_promise() {
    assert_valid(&document(&sample()));
}

#[test]
fn a_study_of_several_tunables_keeps_it() {
    let mut sample = sample();
    let ratio = Estimate::interval(1.3, 1.2, 1.4);
    let settings = sample.analysis.cells[0].settings.clone();
    sample.analysis.combination = Some(Combination {
        settings: settings.clone(),
        over: settings,
        ratio,
        difference: Difference::Faster,
    });
    let pair = LevelPair {
        levels: ["none", "64"].map(str::to_owned),
        ratio: Estimate::unbounded(1.1),
        difference: Difference::Inconclusive,
    };
    sample.analysis.interactions = vec![FactorInteraction {
        workload: "seq-8".to_owned(),
        tunables: ["scheduler", "nr_requests"].map(str::to_owned),
        baselines: ["bfq", "256"].map(str::to_owned),
        strength: 1.1,
        pairs: vec![pair],
    }];
    let mut document = document(&sample);
    assert_valid(&document);
    *document.pointer_mut("/interactions/0/strength").unwrap() = value!("strong");
    let mut found = Vec::new();
    problems(&schema(), &schema(), &document, "", &mut found);
    assert!(!found.is_empty(), "the schema looks at interactions");
}

#[test]
fn gaps_keep_it_too() {
    let mut sample = sample();
    for cell in &mut sample.analysis.cells {
        cell.throughput_mib_s = Estimate::unbounded(cell.throughput_mib_s.median);
        (cell.amplification, cell.device_requests, cell.latency_us) = (None, None, None);
    }
    let advice = &mut sample.analysis.recommendation;
    (advice.gain, advice.cost, advice.economical, advice.best) = (None, None, None, None);
    advice.conditions.clear();
    sample.run.found = None;
    assert_valid(&document(&sample));
    let document = document(&sample);
    assert_eq!(document["cells"][0]["throughput_mib_s"]["low"], Value::Null);
}

#[test]
fn the_check_itself_finds_mistakes() {
    let schema = schema();
    for (pointer, wrong) in [
        ("/schema_version", value!(1)),
        ("/cells/0/throughput_mib_s", value!({ "median": "fast" })),
        ("/recommendation/decision", value!("splendid")),
        ("/cells/0/settings", value!({ "read_ahead": 4 })),
        ("/measured_seconds", value!(-1.0)),
    ] {
        let mut document = document(&sample());
        *document.pointer_mut(pointer).unwrap() = wrong;
        let mut found = Vec::new();
        problems(&schema, &schema, &document, "", &mut found);
        assert!(!found.is_empty(), "{pointer}");
    }
}

/// The decisions of `auto` and `run`, and the status of the daemon.
#[test]
fn decisions_are_what_the_schema_promises() {
    use control::ActionKind;
    use daemon::{ActionResult, DecisionRecord, FileDecision, Status, StatusEffect};
    let file = serde_json::from_value(value!({
        "id": 77, "kind": "regular", "device": "8:1", "inode": 9, "bdi": "8:0", "size": 4096,
        "position": 0, "previous": null, "readable": true, "writable": false, "direct": false,
        "window": 131_072, "bdi_window": 131_072, "random": false,
        "holders": [{ "pid": 42, "fd": 3, "comm": "cat", "uid": 0, "cgroup": 1 }]
    }));
    let pages = units::Pages::new;
    let kinds = [
        ActionKind::SetWindow(pages(272)),
        ActionKind::Prefetch(Vec::new()),
        ActionKind::PrefetchMisses(Some(pages(4))),
        ActionKind::PrefetchMisses(None),
        ActionKind::PrefetchCalls(pages(1024)),
        ActionKind::AwaitFiles(Vec::new()),
    ];
    for kind in kinds {
        let (file, why) = (file.as_ref().map(Clone::clone).unwrap(), "it waits".to_owned());
        let decision = FileDecision { file, path: None, kind, why };
        let set = ActionResult::WindowSet { first: units::Bytes::from_kib(64) };
        let failed = ActionResult::Failed("closed".to_owned());
        for result in [set, ActionResult::Prefetching, ActionResult::Advised, failed] {
            let record = DecisionRecord::new(&decision, result, false);
            let document = serde_json::to_value(&record).unwrap();
            validate::assert_valid_as("auto_decision", &document);
            assert_eq!(document["window_before_kib"], 128);
        }
    }
    let mut status = Status::starting();
    validate::assert_valid_as("auto_status", &serde_json::to_value(&status).unwrap());
    status.effect = Some(StatusEffect { pairs: 8, ratio: 2.0, low: 1.5, high: 2.5 });
    status.push_decision(1, "a line");
    validate::assert_valid_as("auto_status", &serde_json::to_value(&status).unwrap());
}
