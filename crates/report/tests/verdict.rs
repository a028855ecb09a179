//! The sentences that people read first.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{Line, verdict};
use sample::{Sample, sample};
use study::{Difference, Estimate, RunStatus, Target, VerdictKind};
use units::Kib;

fn said(sample: &Sample) -> String {
    let lines = verdict(&sample.findings(), str::to_owned);
    let texts: Vec<String> = lines
        .into_iter()
        .map(|line| match line {
            Line::Sentence(text) | Line::Command(text) => text,
        })
        .collect();
    texts.join("\n")
}

#[track_caller]
fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

#[test]
fn better_says_what_it_gains_how_sure_and_what_it_costs() {
    let text = said(&sample());
    assert_says(
        &text,
        &[
            "Set read-ahead to 8192 KiB (16384 sectors)",
            "seq-1 and seq-8",
            "2.51 times as much (95 % CI 2.43 to 2.56) compared with the present 128 KiB",
            "1088 KiB (2176 sectors) already has at least 80 %",
            "up to 64.0 MiB of memory for 8 streams",
            "rand-mmap gets 40.0 times less (p99 latency 12.0 ms → 240 ms)",
            "reading 242 times what it asks for",
            "2 trials were disturbed",
            "foreread apply read_ahead=8192K --on 8:16",
        ],
    );
}

#[test]
fn the_present_setting_may_be_the_best() {
    let mut sample = sample();
    sample.run.found = Some(Kib::new(8192));
    let text = said(&sample);
    assert_says(&text, &["Keep read-ahead at 8192 KiB (16384 sectors)"]);
    assert!(!text.contains("foreread apply"), "{text}");
}

#[test]
fn no_difference_recommends_nothing() {
    let mut sample = sample();
    sample.analysis.verdict.kind = VerdictKind::NoMeasurableDifference;
    let text = said(&sample);
    assert_says(
        &text,
        &[
            "No measurable difference between the 6 settings from 4 KiB to 65536 KiB",
            "Leave it at 128 KiB (256 sectors)",
        ],
    );
    assert!(!text.contains("Set read-ahead") && !text.contains("foreread apply"), "{text}");
}

#[test]
fn a_larger_setting_that_is_not_measurably_better_is_not_recommended() {
    for (difference, low, high) in
        [(Difference::NoMeasurableDifference, 0.99, 1.03), (Difference::Inconclusive, 0.92, 1.14)]
    {
        let mut sample = sample();
        let gain = sample.analysis.verdict.gain.as_mut().unwrap();
        gain.difference = difference;
        gain.ratio = Estimate::interval(1.02, low, high);
        let text = said(&sample);
        assert_says(&text, &["Keep read-ahead at 128 KiB", "none of", "8192 KiB got 2 % more"]);
        assert!(!text.contains("Set read-ahead") && !text.contains("foreread apply"), "{text}");
    }
}

#[test]
fn what_was_measured_once_is_recommended_only_if_it_is_plainly_better() {
    let once = |ratio: f64| {
        let mut sample = sample();
        let gain = sample.analysis.verdict.gain.as_mut().unwrap();
        gain.difference = Difference::Inconclusive;
        gain.ratio = Estimate::unbounded(ratio);
        said(&sample)
    };
    assert_says(&once(1.02), &["Keep read-ahead at 128 KiB", "measured once"]);
    assert_says(&once(3.0), &["Set read-ahead to 8192 KiB", "measured once"]);
}

#[test]
fn a_smaller_setting_that_is_as_good_saves_memory() {
    let mut sample = sample();
    sample.run.found = Some(Kib::new(65536));
    let gain = sample.analysis.verdict.gain.as_mut().unwrap();
    gain.over_kib = Kib::new(65536);
    gain.difference = Difference::NoMeasurableDifference;
    let text = said(&sample);
    assert_says(&text, &["Set read-ahead to 8192 KiB", "as good as the present 65536 KiB"]);
}

#[test]
fn a_doubted_verdict_says_why_instead_of_blaming_intervals() {
    let mut sample = sample();
    sample.analysis.verdict.kind = VerdictKind::Inconclusive;
    sample.analysis.verdict.full_kib = None;
    sample.analysis.verdict.doubt = Some("the verdict would rest on 8 KiB".to_owned());
    let text = said(&sample);
    assert_says(&text, &["Inconclusive: the verdict would rest on 8 KiB.", "quieter"]);
    assert!(!text.contains("too wide"), "{text}");
}

#[test]
fn inconclusive_says_what_to_do() {
    let mut sample = sample();
    sample.analysis.verdict.kind = VerdictKind::Inconclusive;
    sample.analysis.verdict.full_kib = None;
    let text = said(&sample);
    assert_says(&text, &["Inconclusive", "--repeats"]);
    assert!(!text.contains("foreread apply"), "{text}");
}

#[test]
fn a_virtual_disk_has_a_dilation_and_nothing_to_set() {
    let mut sample = sample();
    sample.run.plan.target = Target::Virtual("raid10-2008".to_owned());
    sample.analysis.dilation = 4.0;
    let text = said(&sample);
    assert_says(&text, &["4.00 times slower than its model"]);
    assert!(!text.contains("foreread apply"), "{text}");
    sample.analysis.dilation = 0.25;
    assert_says(&said(&sample), &["4.00 times faster than its model"]);
}

#[test]
fn a_price_that_was_not_measured_is_no_price_of_nothing() {
    let mut sample = sample();
    assert!(!said(&sample).contains("was not measured at this value"));
    for price in &mut sample.analysis.verdict.price {
        price.random.clear();
    }
    assert_says(&said(&sample), &["what rand-mmap", "pay was not measured at this value"]);
}

#[test]
fn a_command_holds_no_name_that_could_run_something() {
    let mut sample = sample();
    sample.run.device_before = serde_json::json!({ "storage": { "bdi": "8:16; rm -rf x" } });
    assert!(!said(&sample).contains("rm -rf"));
}

#[test]
fn an_unfinished_run_says_so() {
    let mut sample = sample();
    sample.run.summary.status = RunStatus::Interrupted;
    assert_says(&said(&sample), &["the same command goes on with it"]);
}

#[test]
fn one_setting_alone_is_no_comparison() {
    let mut sample = sample();
    sample.analysis.cells.retain(|cell| cell.settings.read_ahead == Kib::new(4));
    sample.analysis.verdict.kind = VerdictKind::NoMeasurableDifference;
    let text = said(&sample);
    assert_says(&text, &["nothing to compare it with"]);
    assert!(!text.contains("No measurable difference"), "{text}");
}
