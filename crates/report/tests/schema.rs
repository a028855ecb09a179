//! The JSON is what docs/foreread.schema.json promises.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{Named, Pairing, compare_json, json};
use sample::{Sample, sample};
use serde_json::{Value, json as value};
use study::Estimate;

fn schema() -> Value {
    let text = include_str!("../../../docs/foreread.schema.json");
    serde_json::from_str(text).unwrap()
}

/// A comparison of a run with itself and of one with other cells.
#[test]
fn comparisons_are_what_their_schema_promises() {
    let text = include_str!("../../../docs/compare.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let (first, mut second) = (sample(), sample());
    second.analysis.cells.truncate(7);
    second.analysis.cells[0].throughput_mib_s = Estimate::unbounded(5.0);
    let named = [&first, &second].map(|sample| Named { findings: sample.findings(), name: None });
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

fn document(sample: &Sample) -> Value {
    let text = serde_json::to_string(&json(&sample.findings())).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Checks the part of JSON Schema that the file uses; a keyword it does not know is a failure.
/// Properties that the schema does not name are failures too: they would be undocumented.
fn problems(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fine = match keyword.as_str() {
            "$ref" => {
                let target = wanted.as_str().unwrap().trim_start_matches('#');
                problems(root, root.pointer(target).unwrap(), value, at, found);
                true
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is(value, wanted)),
                wanted => is(value, wanted),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                wanted
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    problems(root, wanted, item, &format!("{at}/{index}"), found);
                }
                true
            }
            "properties" => {
                for (key, item) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}/{key}");
                    match wanted.get(key) {
                        Some(schema) => problems(root, schema, item, &at, found),
                        None => found.push(format!("{at} is not in the schema")),
                    }
                }
                true
            }
            "$schema" | "title" | "$defs" => true,
            other => panic!("this test does not know {other}"),
        };
        if !fine {
            found.push(format!("{at}: {value} is not {keyword} {wanted}"));
        }
    }
}

fn is(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("this test does not know the type {other}"),
    }
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
fn gaps_keep_it_too() {
    let mut sample = sample();
    for cell in &mut sample.analysis.cells {
        cell.throughput_mib_s = Estimate::unbounded(cell.throughput_mib_s.median);
        (cell.amplification, cell.device_requests, cell.latency_us) = (None, None, None);
    }
    let verdict = &mut sample.analysis.verdict;
    (verdict.gain, verdict.full_kib, verdict.conservative_kib) = (None, None, None);
    verdict.price.clear();
    sample.run.found = None;
    assert_valid(&document(&sample));
    let document = document(&sample);
    assert_eq!(document["cells"][0]["throughput_mib_s"]["low"], Value::Null);
}

#[test]
fn the_check_itself_finds_mistakes() {
    let schema = schema();
    for (pointer, wrong) in [
        ("/schema_version", value!(2)),
        ("/cells/0/throughput_mib_s", value!({ "median": "fast" })),
        ("/verdict/kind", value!("splendid")),
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
