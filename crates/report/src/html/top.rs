//! The verdict: recommendation, figures, costs, commands.

use maud::{Markup, html};
use study::{Gain, RunStatus};

use super::ReportInput;
use super::parts::command;
use super::sections::RunSection;
use crate::names::{brief, tied};
use crate::number::{factor_certainty, setting, short, time, times};
use crate::verdict_parts::VerdictLine;

pub(super) fn verdict(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let report = exhibit.report();
    let lines = match report.varied() {
        true => crate::factors::headlines(&report, brief),
        false => crate::verdict::verdict(&report, brief),
    };
    let finished = exhibit.run.summary.status == RunStatus::Complete;
    let (notes, mut said): (Vec<&VerdictLine>, Vec<&VerdictLine>) =
        lines.iter().partition(|line| is_note(line));
    let banner = (!finished && !said.is_empty()).then(|| said.remove(0));
    let headline = (!said.is_empty()).then(|| said.remove(0));
    let doubtful = exhibit.analysis.recommendation.is_inconclusive();
    html! {
        section class={ "verdict" @if doubtful { " doubtful" } } id=(place.id("verdict"))
            aria-labelledby=(place.id("headline")) {
            @if let Some(VerdictLine::Sentence(text)) = banner { p class="banner" { (tied(text)) } }
            @match headline {
                Some(VerdictLine::Sentence(text)) => {
                    h2 class="headline" id=(place.id("headline")) { (tied(text)) }
                }
                _ => h2 class="headline" id=(place.id("headline")) {
                    "No trials yet."
                }
            }
            (cards(exhibit))
            @if !said.is_empty() { (sentences(&said)) }
            @if !notes.is_empty() {
                ul class="said note" {
                    @for line in &notes {
                        @if let VerdictLine::Sentence(text) = line { li { (tied(text)) } }
                    }
                }
            }
        }
    }
}

fn is_note(line: &VerdictLine) -> bool {
    matches!(line, VerdictLine::Sentence(text) if text.starts_with("Note: "))
}

/// Returns sentences as paragraphs, and commands with a button to copy them.
fn sentences(lines: &[&VerdictLine]) -> Markup {
    html! {
        @for line in lines {
            @match line {
                VerdictLine::Sentence(text) => p { (tied(text)) },
                VerdictLine::Command(text) => (command(text)),
            }
        }
    }
}

/// Returns the figures behind the verdict.
fn cards(exhibit: &ReportInput<'_>) -> Markup {
    let advice = &exhibit.analysis.recommendation;
    let mut cards = Vec::new();
    let mut card = |name: &str, value: String, below: String| {
        cards.push(html! { div { dt { (name) } dd { (value) small { (below) } } } });
    };
    if let Some(found) = exhibit.run.found {
        card("Read-ahead now", found.to_string(), found.to_sectors().to_string());
    }
    if let Some(kib) = advice.value() {
        card("Recommended", kib.to_string(), kib.to_sectors().to_string());
    }
    if let Some((value, below)) = advice.gain.as_ref().and_then(gain) {
        card("Gain", value, below);
    }
    for condition in &advice.conditions {
        if let Some(ratio) = times(condition.throughput_ratio.median) {
            card(&brief(&condition.workload), ratio, "compared with now".to_owned());
        }
    }
    if let Some(other) = &advice.without_conditions {
        let below = gain(&other.gain).map_or_else(String::new, |(value, _)| value);
        card("Without that cost", other.read_ahead_kib.to_string(), below);
    }
    if let Some((cost, kib)) = advice.cost.as_ref().zip(advice.value()) {
        if let Some(memory) = short(cost.memory_mib) {
            let below = format!("2 × {} × {}", setting(kib), cost.streams);
            card("Memory for windows", format!("{memory} MiB"), below);
        }
        for change in &cost.changes {
            let Some(latency) = change.latency else { continue };
            let (before, after) = (time(latency.before_us.p99), time(latency.after_us.p99));
            if let (Some(before), Some(after)) = (before, after) {
                let name = format!("{}: p99", brief(&change.workload));
                card(&name, after, format!("before: {before}"));
            }
        }
    }
    let trials = exhibit.run.trials.len();
    if trials > 0 && exhibit.analysis.measured_seconds > 0.0 {
        card("Trials", trials.to_string(), exhibit.report().measuring_time());
    }
    html! { dl class="cards" { @for card in &cards { (card) } } }
}

/// Returns a gain as a figure, and its baseline with the uncertainty.
fn gain(gain: &Gain) -> Option<(String, String)> {
    let figure = times(gain.ratio.median)?;
    Some((figure, format!("over {}; {}", gain.baseline_kib, factor_certainty(&gain.ratio))))
}
