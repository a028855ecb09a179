//! Several runs on one page: one chart of all runs, and each run compared with the first.

use maud::{Markup, html};
use study::{Difference, VerdictKind};

use super::ReportInput;
use crate::Named;
use crate::compare::{Pairing, sentences, word};
use crate::names::{brief, settings_label, tied};
use crate::number::{ABSENT, ends_text, setting, short, spread_text};

/// Returns the sections that show the runs together.
pub(super) fn sections(exhibits: &[ReportInput<'_>], names: &[String]) -> Markup {
    let named: Vec<Named<'_>> = exhibits.iter().map(ReportInput::named).collect();
    let pairings = Pairing::all(&named);
    html! {
        section class="verdict" id="compare" aria-labelledby="compare-title" {
            h2 class="headline" id="compare-title" { (tied(&headline(&pairings))) }
            @for pairing in &pairings {
                ul class="said" {
                    @for sentence in sentences(pairing, brief).iter().skip(skipped(&pairings)) {
                        li { (tied(sentence)) }
                    }
                }
            }
        }
        section id="together" aria-labelledby="together-title" {
            h2 id="together-title" { "All runs in one chart" }
            p class="soft" {
                "Rings mark where returns diminish: a small one the smallest setting with 80 % of \
                 the gain, a large one the smallest that is not measurably below the best; a \
                 square is the knee, where the curve bends. Whiskers are 95 % confidence \
                 intervals, or ranges of fewer than five repeats; ticks on the axis are vendors' \
                 recommendations."
            }
            div data-draw="curves" data-run="all" {
                noscript { p class="soft" { "Charts need JavaScript." } }
            }
            (bends(exhibits, names))
        }
        @for (index, pairing) in pairings.iter().enumerate() {
            (pairs(pairing, index))
            (conditions(pairing, index))
        }
    }
}

/// Returns the number of sentences to skip: with two runs, the headline already has the verdict.
fn skipped(pairings: &[Pairing<'_>]) -> usize {
    usize::from(pairings.len() == 1)
}

fn headline(pairings: &[Pairing<'_>]) -> String {
    match pairings {
        [only] => sentences(only, brief).into_iter().next().unwrap_or_default(),
        several => format!("{} runs compared", several.len() + 1),
    }
}

/// Returns where returns diminish, for each run and workload.
fn bends(exhibits: &[ReportInput<'_>], names: &[String]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Where returns diminish" {
            table {
                caption { "Where returns diminish" }
                thead { tr {
                    th scope="col" class="word" { "run" }
                    th scope="col" class="word" { "workload" }
                    th scope="col" { "80 % of the gain from" }
                    th scope="col" { "all of it from" }
                    th scope="col" { "throughput there" }
                    th scope="col" { "knee" }
                    th scope="col" class="word" { "verdict" }
                } }
                tbody {
                    @for (exhibit, name) in exhibits.iter().zip(names) {
                        @for alone in &exhibit.analysis.per_workload {
                            (bend(exhibit, name, alone))
                        }
                    }
                }
            }
        }
    }
}

fn bend(exhibit: &ReportInput<'_>, name: &str, alone: &study::WorkloadVerdict) -> Markup {
    let at = alone.best_kib.unwrap_or(alone.fastest_kib);
    let cell = exhibit.report().cell(at, &alone.workload);
    let unit = crate::unit::unit(exhibit.run, &alone.workload);
    let rate = cell.and_then(|cell| short(cell.throughput_mib_s.median));
    let rate = rate.map(|rate| format!("{rate} {unit}"));
    let kib = |kib: Option<units::Kib>| kib.map_or_else(|| ABSENT.to_owned(), setting);
    let said = match alone.kind {
        VerdictKind::Better => "settings differ",
        VerdictKind::NoMeasurableDifference => "no measurable difference",
        VerdictKind::Inconclusive => "inconclusive",
    };
    html! {
        tr {
            th scope="row" { (name) }
            td class="word" { (brief(&alone.workload)) }
            td { (kib(alone.economical_kib)) }
            td { (kib(alone.best_kib)) }
            td { (rate.unwrap_or_else(|| ABSENT.to_owned())) }
            td { (kib(alone.knee_kib)) }
            td class="word" { (said) }
        }
    }
}

/// Returns the other differences between the two runs.
fn conditions(pairing: &Pairing<'_>, index: usize) -> Markup {
    let heading = format!("conditions-title-{index}");
    let [first, second] = &pairing.names;
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| ABSENT.to_owned(), brief);
    html! {
        @if !pairing.comparison.conditions.is_empty() {
            section id={ "conditions-" (index) } aria-labelledby=(heading) {
                h2 id=(heading) { "What else differs" }
                div class="scroll" tabindex="0" role="region"
                    aria-label={ "Conditions of " (second) } {
                    table {
                        thead { tr {
                            th scope="col" class="word" { "what" }
                            th scope="col" class="word" { (first) }
                            th scope="col" class="word" { (second) }
                        } }
                        tbody {
                            @for one in &pairing.comparison.conditions { tr {
                                th scope="row" { (brief(&one.name)) }
                                td class="word" { (shown(&one.first)) }
                                td class="word" { (shown(&one.second)) }
                            } }
                        }
                    }
                }
            }
        }
    }
}

fn pairs(pairing: &Pairing<'_>, index: usize) -> Markup {
    let heading = format!("pairs-title-{index}");
    let [first, second] = &pairing.names;
    html! {
        section id={ "pairs-" (index) } aria-labelledby=(heading) {
            h2 id=(heading) { (second) " against " (first) }
            @if pairing.comparison.cells.is_empty() {
                p { "No setting and workload in common." }
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label={ "Cells of " (second) } {
                    table class="sortable" {
                        caption {
                            (pairing.units())
                            "; B ÷ A with its 95 % confidence interval (a to b), or the range \
                             (a–b) of fewer than five repeats. A: " (first) ". B: " (second) "."
                        }
                        (pair_heads())
                        tbody { @for cell in &pairing.comparison.cells { (pair_row(cell)) } }
                    }
                }
            }
        }
    }
}

fn pair_heads() -> Markup {
    html! {
        thead { tr {
            th scope="col" class="word" { "workload" }
            th scope="col" aria-sort="ascending" { button type="button" { "read-ahead" } }
            th scope="col" { button type="button" { "A" } }
            th scope="col" { button type="button" { "B" } }
            th scope="col" { button type="button" { "B ÷ A" } }
            th scope="col" { "95 % CI or range" }
            th scope="col" class="word" { "B is" }
        } }
    }
}

fn pair_row(cell: &study::CellPair) -> Markup {
    let kib = cell.settings.read_ahead;
    let absent = || ABSENT.to_owned();
    let figure = |estimate: &stats::Estimate| {
        let text = short(estimate.median).unwrap_or_else(absent);
        spread_text(estimate).map_or(text.clone(), |spread| format!("{text} {spread}"))
    };
    html! {
        tr {
            th scope="row" { (brief(&cell.workload)) }
            td data-v=(kib.get()) {
                (setting(kib))
                @let others = settings_label(&cell.settings);
                @if !others.is_empty() { " " (others) }
            }
            td data-v=(cell.first_mib_s.median) { (figure(&cell.first_mib_s)) }
            td data-v=(cell.second_mib_s.median) { (figure(&cell.second_mib_s)) }
            td data-v=(cell.ratio.median) { (short(cell.ratio.median).unwrap_or_else(absent)) }
            td { (ends_text(&cell.ratio).unwrap_or_else(absent)) }
            td class={ "word " (class(cell.difference)) } { (word(cell.difference)) }
        }
    }
}

fn class(difference: Difference) -> &'static str {
    match difference {
        Difference::Faster => "better",
        Difference::Slower => "worse",
        Difference::NoMeasurableDifference | Difference::Inconclusive => "soft",
    }
}
