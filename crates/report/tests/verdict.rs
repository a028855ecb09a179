//! The first sentences of a report.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{
    Named, Pairing, TermStyle, VerdictLine, compare_terminal, terminal, verdict,
};
use sample::{Sample, sample};
use study::{RunStatus, Target, TrialStatus};
use units::Kib;

fn said(sample: &Sample) -> String {
    let lines = verdict(&sample.report(), str::to_owned);
    let texts: Vec<String> = lines
        .into_iter()
        .map(|line| match line {
            VerdictLine::Sentence(text) | VerdictLine::Command(text) => text,
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
fn the_first_sentence_says_what_it_gains_on_which_condition_and_what_it_costs() {
    let text = said(&sample());
    assert_says(
        &text,
        &[
            "Set read-ahead to 8192 KiB (16384 sectors) if no process reads mapped files at \
             random: throughput of seq-1 and seq-8 ×2.50 (95 % CI",
            "compared with the current 128 KiB, but rand-mmap ×0.025.",
            "Otherwise keep 128 KiB (256 sectors): no measured setting gains 10 % without that",
            "up to 128 MiB of memory for 8 streams",
            "rand-mmap ×0.025 (p99 latency 375 ms → 15.0 s), reading 2048 times the requested data",
            "2 trials were disturbed",
            "foreread apply read_ahead=8192K --on 8:16",
        ],
    );
}

#[test]
fn the_time_of_a_simulation_is_not_called_measuring() {
    let look = TermStyle { width: 100, colour: false };
    let mut sample = sample();
    assert_says(&terminal(&sample.report(), look), &[" s of measuring, seed"]);
    sample.run.plan.target = Target::parse("sim:hdd-2008").unwrap();
    assert_says(&terminal(&sample.report(), look), &[" s of simulated time, seed"]);
}

#[test]
fn runs_without_a_common_cell_cannot_be_compared() {
    let (first, mut second) = (sample(), sample());
    second.analysis.cells.clear();
    let runs = [&first, &second].map(|sample| Named { report: sample.report(), name: None });
    let text = compare_terminal(&Pairing::all(&runs), TermStyle { width: 1000, colour: false });
    let words = ["cannot be compared: no workload was measured at the same setting in both."];
    assert_says(&text, &words);
}

#[test]
fn a_setting_without_the_cost_stands_beside_the_condition() {
    let mapped = |kib: u64| {
        if kib <= 128 {
            1.0
        } else if kib <= 1088 {
            0.7
        } else {
            0.02
        }
    };
    let text = said(&sample().with_rates("rand-mmap", mapped));
    assert_says(&text, &["Otherwise set 1088 KiB (2176 sectors): ×2.0", "rand-mmap ×0.70"]);
}

#[test]
fn the_present_setting_may_be_the_best() {
    let mut sample = sample();
    sample.run.found = Some(Kib::new(8192));
    let text = said(&sample.with_rates("rand-mmap", |_| 1.0));
    assert_says(&text, &["Keep read-ahead at 8192 KiB (16384 sectors): none of the 6 settings"]);
    assert!(!text.contains("foreread apply"), "{text}");
}

#[test]
fn no_difference_recommends_nothing() {
    let flat = |_| 100.0;
    let sample = sample().with_rates("seq-1", flat).with_rates("seq-8", flat);
    let text = said(&sample.with_rates("rand-mmap", |_| 1.0));
    assert_says(
        &text,
        &[
            "No measurable difference between the 6 settings from 4 KiB to 65536 KiB",
            "Keep 128 KiB (256 sectors)",
        ],
    );
    assert!(!text.contains("Set read-ahead") && !text.contains("foreread apply"), "{text}");
}

#[test]
fn a_gain_below_a_tenth_keeps_the_present_setting_and_is_named() {
    let low = |kib: u64| if kib < 128 { 20.0 } else { 100.0 + 8.0 * (kib as f64 / 65536.0) };
    let text = said(&sample().with_rates("seq-1", low).with_rates("seq-8", low));
    assert_says(&text, &["Keep read-ahead at 128 KiB", "10 % that justify", "65536 KiB, gives"]);
    assert!(!text.contains("Set read-ahead") && !text.contains("foreread apply"), "{text}");
}

#[test]
fn what_was_measured_once_says_so() {
    let mut sample = sample();
    sample.run.trials.retain(|trial| trial.block == 0);
    assert_says(&said(&sample.analysed()), &["Set read-ahead to", "measured once"]);
}

#[test]
fn a_smaller_setting_that_is_as_fast_saves_memory() {
    let mut sample = sample();
    sample.run.found = Some(Kib::new(65536));
    let flat = |kib: u64| if kib < 1024 { 20.0 } else { 100.0 };
    let text = said(&sample.with_rates("seq-1", flat).with_rates("seq-8", flat));
    let less = "with rand-mmap ×6.00 and up to 1008 MiB less memory for 8 streams";
    assert_says(&text, &["Set read-ahead to 1024 KiB", "as fast as the current 65536 KiB", less]);
}

#[test]
fn a_disturbed_setting_says_so_instead_of_blaming_noise() {
    let mut sample = sample();
    for trial in sample.run.trials.iter_mut().filter(|t| t.settings.read_ahead.get() == 8192) {
        trial.status = TrialStatus::Disturbed;
    }
    let text = said(&sample.analysed());
    assert_says(&text, &["Inconclusive: every trial at 8192 KiB was disturbed.", "idle"]);
    assert!(!text.contains("vary too much"), "{text}");
}

#[test]
fn what_was_not_measured_is_named() {
    let mut sample = sample();
    let priced = |trial: &study::Trial| trial.workload == "rand-mmap";
    sample.run.trials.retain(|trial| !priced(trial) || trial.settings.read_ahead.get() == 128);
    let text = said(&sample.analysed());
    assert_says(&text, &["The effect of 8192 KiB on rand-mmap was not measured"]);
    let rising = |kib: u64| kib as f64;
    let edge = said(&self::sample().with_rates("seq-1", rising).with_rates("seq-8", rising));
    assert_says(&edge, &["65536 KiB is at the edge of the tried settings"]);
}

#[test]
fn inconclusive_says_what_to_do() {
    let mut sample = sample();
    for trial in &mut sample.run.trials {
        let wild = 1.0 + f64::from((trial.order * 7919) % 13);
        trial.figures.throughput_mib_s = wild;
    }
    let text = said(&sample.analysed());
    assert_says(&text, &["Inconclusive", "--repeats"]);
    assert!(!text.contains("foreread apply"), "{text}");
}

#[test]
fn a_virtual_disk_has_a_dilation_and_nothing_to_set() {
    let mut sample = sample();
    sample.run.plan.target = Target::parse("virtual:raid10-2008").expect("a target");
    sample.analysis.dilation = 4.0;
    let text = said(&sample);
    assert_says(&text, &["4.00 times slower than its model"]);
    assert!(!text.contains("foreread apply"), "{text}");
    sample.analysis.dilation = 0.25;
    assert_says(&said(&sample), &["4.00 times faster than its model"]);
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
    assert_says(&said(&sample), &["the same command resumes it"]);
}

#[test]
fn one_setting_alone_is_no_comparison() {
    let mut sample = sample();
    sample.run.trials.retain(|trial| trial.settings.read_ahead == Kib::new(4));
    let text = said(&sample.analysed());
    assert_says(&text, &["there is nothing to compare"]);
    assert!(!text.to_lowercase().contains("no measurable difference"), "{text}");
}
