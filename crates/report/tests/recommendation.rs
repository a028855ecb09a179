//! Every output has the same recommendation: a property test over generated records.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{
    Named, Pairing, ReportInput, RunReport, TermStyle, VerdictLine, compare_json, compare_terminal,
    html, json, markdown, terminal, verdict, write_csv,
};
use proptest::prelude::*;
use sample::{Sample, sample_of, trial};
use serde_json::Value;
use study::{Decision, Trial, TrialStatus};
use units::Kib;

const LOOK: TermStyle = TermStyle { width: 100, colour: false };

/// Settings to choose from.
const SETTINGS: [u64; 7] = [4, 64, 128, 1024, 1088, 8192, 65536];

/// Generates parameters of a throughput curve: base, slope, knee and noise.
fn rates() -> impl Strategy<Value = (f64, f64, f64, f64)> {
    (0.01..1000.0f64, -0.6..0.6f64, 0.5..1.5f64, prop_oneof![Just(0.0), 0.001..0.3f64])
}

fn rate((base, slope, knee, _): (f64, f64, f64, f64), kib: u64) -> f64 {
    let octaves = (kib as f64 / 4.0).log2();
    base * (slope * octaves.min(knee * 7.0)).exp2()
}

fn records() -> impl Strategy<Value = Sample> {
    let workloads = [rates(), rates(), rates()];
    let settings = prop::sample::subsequence(SETTINGS.to_vec(), 1..=SETTINGS.len());
    let drawn = (workloads, settings, 0..7u32, prop::sample::select(vec![0u64, 4, 128, 65536]));
    let noise = prop::collection::vec((-1.0..1.0f64, 0..40u32), 3 * 7 * 7);
    (drawn, noise).prop_map(|((rates, settings, repeats, found), noise)| {
        let mut noise = noise.into_iter().cycle();
        let mut trials: Vec<Trial> = Vec::new();
        for block in 0..repeats {
            for (name, of) in ["seq-1", "seq-8", "rand-mmap"].iter().zip(rates) {
                for kib in &settings {
                    let (shift, luck) = noise.next().unwrap();
                    let order = trials.len() as u32;
                    let value = rate(of, *kib) * (of.3 * shift).exp();
                    let mut trial = Trial { block, ..trial(name, *kib, value, order) };
                    if luck == 0 {
                        trial.status = TrialStatus::Disturbed;
                    }
                    trials.push(trial);
                }
            }
        }
        let mut sample = sample_of(trials);
        sample.run.found = (found > 0).then(|| Kib::new(found));
        sample.analysed()
    })
}

/// The statement of an output: a word and a value.
type Said = (&'static str, Option<u64>);

fn of_decision(decision: &Decision) -> Said {
    match decision {
        Decision::Set(kib) => ("set", Some(kib.get())),
        Decision::Keep(kib) => ("keep", Some(kib.get())),
        Decision::NoDifference => ("no_difference", None),
        Decision::Inconclusive(_) => ("inconclusive", None),
    }
}

/// Returns the statement of the first sentence about read-ahead.
fn of_sentence(text: &str) -> Said {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let value = |after: &str| -> Option<u64> {
        let rest = &flat[flat.find(after)? + after.len()..];
        rest.split(' ').next()?.parse().ok()
    };
    let places = [
        ("set", "Set read-ahead to "),
        ("keep", "Keep read-ahead at "),
        ("no_difference", "No measurable difference between "),
        ("inconclusive", "Inconclusive: "),
        ("inconclusive", "Only one setting was measured"),
    ];
    let found = places.iter().filter_map(|(word, start)| Some((flat.find(start)?, *word, *start)));
    let (_, word, start) = found.min().unwrap_or_else(|| panic!("nothing is said in\n{text}"));
    let named = matches!(word, "set" | "keep");
    (word, value(start).filter(|_| named))
}

fn document(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn of_json(advice: &Value) -> (String, Option<u64>) {
    (advice["decision"].as_str().unwrap().to_owned(), advice["read_ahead_kib"].as_u64())
}

/// Returns the settings that the CSV marks as recommended.
fn marked(report: &RunReport<'_>) -> Vec<u64> {
    let mut text = Vec::new();
    write_csv(report, &mut text).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let rows = reader
        .deserialize()
        .map(|row: Result<std::collections::BTreeMap<String, String>, _>| row.unwrap());
    let chosen = rows.filter(|row| row["marks"].split(' ').any(|mark| mark == "recommended"));
    let mut kib: Vec<u64> = chosen.map(|row| row["read_ahead_kib"].parse().unwrap()).collect();
    kib.dedup();
    kib.sort_unstable();
    kib.dedup();
    kib
}

/// Without a file of failures, which would be created among the sources.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_output_says_the_same(sample in records()) {
        let report = sample.report();
        let advice = &sample.analysis.recommendation;
        let said = of_decision(&advice.decision);
        let (word, kib) = of_json(&document(&json(&report))["recommendation"]);
        prop_assert_eq!((word.as_str(), kib), said);
        // The value that `apply --from` and `persist --from` set.
        let set = advice.to_set().map(|settings| settings.read_ahead.get());
        prop_assert_eq!(set, kib.filter(|_| said.0 == "set"));
        if sample.analysis.cells.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(of_sentence(&terminal(&report, LOOK)), said);
        prop_assert_eq!(of_sentence(&markdown(&report)), said);
        let (run, analysis) = (&sample.run, &sample.analysis);
        let page = html(&[ReportInput { run, analysis, trial_details: None, name: None }]);
        // No-break spaces are written as such.
        prop_assert_eq!(of_sentence(&page.replace("&nbsp;", " ").replace('\u{a0}', " ")), said);
        let measured: Vec<u64> = findings_settings(&report);
        let expected: Vec<u64> = said.1.into_iter().filter(|kib| measured.contains(kib)).collect();
        prop_assert_eq!(marked(&report), expected);
        let lines = verdict(&report, str::to_owned);
        let commands = lines.iter().filter_map(|line| match line {
            VerdictLine::Command(command) => Some(command.as_str()),
            VerdictLine::Sentence(_) => None,
        });
        let applied = commands.filter_map(|it| it.strip_prefix("foreread apply read_ahead="));
        let applied: Vec<u64> =
            applied.map(|rest| rest.split('K').next().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(applied, set.into_iter().collect::<Vec<_>>());
        let named = |name| Named { report, name: Some(name) };
        let twice = [named("the-first"), named("the-second")];
        let pairings = Pairing::all(&twice);
        let compared = document(&compare_json(&pairings).unwrap());
        for side in [&compared["first"], &compared["others"][0]] {
            let (word, kib) = of_json(&side["recommendation"]);
            prop_assert_eq!((word.as_str(), kib), said);
        }
        let text = compare_terminal(&pairings, LOOK);
        for side in ["the-first: ", "the-second: "] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(of_sentence(&flat[flat.find(side).unwrap()..]), said);
        }
    }
}

/// Returns the measured settings.
fn findings_settings(report: &RunReport<'_>) -> Vec<u64> {
    let cells = report.analysis.cells.iter();
    cells.map(|cell| cell.settings.read_ahead.get()).collect()
}
