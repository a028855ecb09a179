//! Describes a comparison in sentences.

use stats::Estimate;
use study::{Difference, MeanRatio, OwnBest, RunDifference};

use super::Pairing;
use crate::number::{certainty, ratio, setting};
use crate::verdict::headline;
use units::text::counted;

/// Returns the verdict over all cells, for each workload, and at each run's own best setting; the
/// recommendation of each run; and what could not be compared. `clean` sanitises names.
pub(crate) fn sentences(pairing: &Pairing<'_>, clean: fn(&str) -> String) -> Vec<String> {
    let comparison = &pairing.comparison;
    let [first, second] = pairing.names.each_ref().map(|name| clean(name));
    let mut said = Vec::new();
    match &comparison.overall {
        None => said.push(format!(
            "{second} and {first} cannot be compared: no workload was measured at the same setting \
             in both."
        )),
        Some(overall) => said.push(over_all(overall, &first, &second)),
    }
    if comparison.per_workload.len() > 1 {
        said.extend(comparison.per_workload.iter().map(|together| {
            let name = clean(together.workload.as_deref().unwrap_or_default());
            format!(
                "{name}: {} {}.",
                result(together.difference, &together.ratio),
                over(together.cells)
            )
        }));
    }
    said.extend(comparison.own_best.iter().map(|best| own_best(best, clean)));
    for (findings, name) in [(&pairing.first, &first), (&pairing.second, &second)] {
        if !findings.analysis.cells.is_empty() {
            said.push(format!("{name}: {}", headline(findings, clean)));
        }
    }
    said.extend(differences(&comparison.conditions, &first, &second, clean));
    let missing = [(comparison.only_first, &first), (comparison.only_second, &second)];
    for (count, name) in missing.into_iter().filter(|(count, _)| *count > 0) {
        said.push(format!("Only {name} has {}: left out.", counted(count, "further cell")));
    }
    for (run, name) in [(pairing.first.run, &first), (pairing.second.run, &second)] {
        let note = run.machine.get("unit_note").and_then(|note| note.as_str());
        said.extend(note.map(|note| format!("Note: {name} was {}.", clean(note))));
    }
    said
}

/// Maximum number of other differences in a sentence; the HTML page lists all of them.
const DIFFERENCES_MAX: usize = 6;

/// Lists the other differences, so that no effect is attributed to a single cause.
fn differences(
    conditions: &[RunDifference],
    first: &str,
    second: &str,
    clean: fn(&str) -> String,
) -> Option<String> {
    let shown = |value: &Option<String>| value.as_deref().map_or("unknown".to_owned(), clean);
    let parts: Vec<String> = conditions
        .iter()
        .take(DIFFERENCES_MAX)
        .map(|one| {
            format!("{} ({} and {})", clean(&one.name), shown(&one.first), shown(&one.second))
        })
        .collect();
    let more = match conditions.len().saturating_sub(DIFFERENCES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!parts.is_empty())
        .then(|| format!("{first} and {second} also differ in {}{more}.", parts.join(", ")))
}

fn over(cells: usize) -> String {
    match cells {
        1 => "in the one cell that both have".to_owned(),
        cells => format!("over {cells} cells"),
    }
}

fn over_all(overall: &MeanRatio, first: &str, second: &str) -> String {
    let much = ratio(overall.ratio.median).unwrap_or_default();
    let sure = sure(&overall.ratio);
    let cells = over(overall.cells);
    match overall.difference {
        Difference::Faster => format!("{second} is faster than {first}: {much} {cells}{sure}."),
        Difference::Slower => format!("{second} is slower than {first}: {much} {cells}{sure}."),
        Difference::NoMeasurableDifference => {
            format!("No measurable difference between {second} and {first} {cells}{sure}.")
        }
        Difference::Inconclusive => format!(
            "Inconclusive: {second} gets {much} than {first} {cells}{sure}, which is too \
             uncertain to call one of them faster.",
        )
        .replace("times as much than", "times as much as"),
    }
}

/// Returns the result of one comparison, as text that follows a name.
fn result(difference: Difference, estimate: &Estimate) -> String {
    let much = ratio(estimate.median).unwrap_or_default();
    let sure = sure(estimate);
    match difference {
        Difference::Faster | Difference::Slower => format!("{much}{sure}"),
        Difference::NoMeasurableDifference => format!("no measurable difference{sure}"),
        Difference::Inconclusive => format!("inconclusive, {much}{sure}"),
    }
}

fn sure(estimate: &Estimate) -> String {
    format!(" ({})", certainty(estimate))
}

fn own_best(best: &OwnBest, clean: fn(&str) -> String) -> String {
    format!(
        "{} at the best setting of each, {} against {}: {}.",
        clean(&best.workload),
        setting(best.second_settings.read_ahead),
        setting(best.first_settings.read_ahead),
        result(best.difference, &best.ratio)
    )
}
