//! Shows the sizes of effects: of workloads if only read-ahead was varied, otherwise of tunables,
//! and the interactions of pairs of tunables.

use maud::{Markup, html};
use study::{Difference, FactorEffect, FactorInteraction};

use super::ReportInput;
use super::parts::Heading::{Bar, Figure, Text};
use super::parts::{about, section, table};
use super::sections::RunSection;
use crate::names::brief;
use crate::number::{certainty, ratio, short, short_or_absent};

const MAX_BAR_WIDTH_PX: f64 = 260.0;
/// Maximum number of interactions, the strongest of each workload first.
const INTERACTIONS_MAX: usize = 24;

pub(super) fn effects(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    if exhibit.report().varied() { of_tunables(exhibit, place) } else { reaches(exhibit, place) }
}

/// Returns a bar whose length is the distance of a ratio from 1, on a logarithmic scale.
fn bar(ratio: f64, widest: f64) -> Markup {
    let share = if widest > 1.0 { (ratio.ln() / widest.ln()).clamp(0.0, 1.0) } else { 0.0 };
    let width = format!("{:.0}", (MAX_BAR_WIDTH_PX * share).max(1.0));
    html! {
        svg class="k0" width="264" height="14" aria-hidden="true" {
            rect class="dot" x="0" y="2" height="10" width=(width) {}
        }
    }
}

/// Returns one effect for each tunable and workload, ranked, with every level.
fn of_tunables(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let effects = &exhibit.analysis.effects;
    let widest = effects.iter().map(|effect| effect.strength).fold(1.0, f64::max);
    let headings = [
        Text("workload"),
        Text("tunable"),
        Figure("best ÷ worst"),
        Bar,
        Text("compared with"),
        Text("levels"),
    ];
    let rows = html! { @for effect in effects { (effect_row(effect, widest)) } };
    html! {
        @if !effects.is_empty() {
            (section(&place.id("effects"), "Effect of each tunable alone", &html! {
                (about("The strongest first. Bars: the best level against the worst, on a \
                    logarithmic scale; levels are compared with the one named first, with 95 % \
                    intervals."))
                (table("Effects of tunables", &headings, &rows))
            }))
        }
    }
}

fn effect_row(effect: &FactorEffect, widest: f64) -> Markup {
    html! {
        tr {
            td class="word" { (brief(&effect.workload)) }
            th scope="row" class="mono" { (brief(&effect.tunable)) }
            td { (short_or_absent(effect.strength)) "×" }
            td class="word" { (bar(effect.strength, widest)) }
            td class="word mono" { (brief(&effect.baseline)) }
            td class="wide" {
                @for (at, level) in effect.levels.iter().enumerate() {
                    @if at > 0 { br; }
                    span class="mono" { (brief(&level.level)) } ": "
                    (judged(&level.ratio, level.difference))
                }
            }
        }
    }
}

fn judged(estimate: &stats::Estimate, difference: Difference) -> Markup {
    let (class, word) = match difference {
        Difference::Faster => ("better", ""),
        Difference::Slower => ("worse", ""),
        Difference::NoMeasurableDifference => ("soft", ", no measurable difference"),
        Difference::Inconclusive => ("soft", ", inconclusive"),
    };
    html! {
        span class=(class) { (ratio(estimate.median).unwrap_or_default()) }
        " (" (certainty(estimate)) (word) ")"
    }
}

/// Returns the section on interactions.
pub(super) fn interactions(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let found = &exhibit.analysis.interactions;
    let headings = [
        Text("workload"),
        Text("tunables"),
        Figure("furthest"),
        Bar,
        Text("relative to the separate effects"),
    ];
    html! {
        @if !found.is_empty() {
            (section(&place.id("interactions"), "Interactions", &html! {
                (about("Throughput of two levels together, relative to the product of their \
                    separate effects. There is no interaction where this is 1."))
                (table("Interactions", &headings, &rows(found)))
            }))
        }
    }
}

fn rows(found: &[FactorInteraction]) -> Markup {
    let widest = found.iter().map(|one| one.strength).fold(1.0, f64::max);
    html! {
        @for one in found.iter().take(INTERACTIONS_MAX) {
            tr {
                td class="word" { (brief(&one.workload)) }
                th scope="row" class="mono" { (brief(&one.tunables.join(" and "))) }
                td { (short_or_absent(one.strength)) "×" }
                td class="word" { (bar(one.strength, widest)) }
                td class="wide" {
                    @for (at, pair) in one.pairs.iter().enumerate() {
                        @if at > 0 { br; }
                        span class="mono" { (brief(&pair.levels.join(" and "))) } ": "
                        (judged(&pair.ratio, pair.difference))
                    }
                }
            }
        }
    }
}

/// Returns the range of each workload's curve, widest first.
fn reaches(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let mut reaches: Vec<(String, f64, String)> = exhibit
        .report()
        .workloads()
        .iter()
        .filter_map(|planned| reach(exhibit, &planned.workload.name))
        .collect();
    reaches.sort_by(|a, b| b.1.total_cmp(&a.1));
    let widest = reaches.first().map_or(1.0, |(_, ratio, _)| *ratio);
    let headings = [
        Text("workload"),
        Figure("best ÷ worst"),
        Text("on a logarithmic scale"),
        Text("from … to"),
    ];
    let rows = html! {
        @for (name, ratio, ends) in &reaches { tr {
            th scope="row" { (name) }
            td { (short(*ratio).unwrap_or_default()) "×" }
            td class="word" { (bar(*ratio, widest)) }
            td class="word" { (ends) }
        } }
    };
    html! {
        @if !reaches.is_empty() {
            (section(&place.id("effects"), "How much it matters", &html! {
                (about("Throughput of the best setting against that of the worst."))
                (table("Effects", &headings, &rows))
            }))
        }
    }
}

/// Returns best against worst setting of one workload; `None` with fewer than two settings.
fn reach(exhibit: &ReportInput<'_>, workload: &str) -> Option<(String, f64, String)> {
    let cells = exhibit.analysis.cells.iter().filter(|cell| cell.workload == workload);
    let mut medians: Vec<(f64, units::Kib)> = cells
        .map(|cell| (cell.throughput_mib_s.median, cell.settings.read_ahead))
        .filter(|(median, _)| *median > 0.0 && median.is_finite())
        .collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((worst, at_worst), (best, at_best)) = (*medians.first()?, *medians.last()?);
    let unit = brief(&crate::unit::unit(exhibit.run, workload));
    (medians.len() > 1).then(|| {
        let ends = format!(
            "{} {unit} at {at_worst} to {} {unit} at {at_best}",
            short(worst).unwrap_or_default(),
            short(best).unwrap_or_default()
        );
        (brief(workload), best / worst, ends)
    })
}
