//! Several runs on one page: one chart of all runs, and each run compared with the first.

use maud::{Markup, html};
use study::{Difference, VerdictKind};

use super::ReportInput;
use super::parts::Heading::{Figure, SortedFigures, SortsFigures, Text};
use super::parts::{about, captioned_table, section, table};
use crate::Named;
use crate::compare::{Pairing, sentences, word};
use crate::names::{brief, settings_label, tied};
use crate::number::{ABSENT, ends_text, setting, short, short_or_absent, with_spread};

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
        (section("together", "All runs in one chart", &html! {
            (about("Rings mark where returns diminish: a small one the smallest setting with 80 % \
                of the gain, a large one the smallest that is not measurably below the best; a \
                square is the knee, where the curve bends. Whiskers are 95 % confidence \
                intervals, or ranges of fewer than five repeats; ticks on the axis are vendors' \
                recommendations."))
            div data-draw="curves" data-run="all" {
                noscript { (about("Charts need JavaScript.")) }
            }
            (bends(exhibits, names))
        }))
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
    let title = "Where returns diminish";
    let headings = [
        Text("run"),
        Text("workload"),
        Figure("80 % of the gain from"),
        Figure("all of it from"),
        Figure("throughput there"),
        Figure("knee"),
        Text("verdict"),
    ];
    let rows = html! {
        @for (exhibit, name) in exhibits.iter().zip(names) {
            @for alone in &exhibit.analysis.per_workload { (bend(exhibit, name, alone)) }
        }
    };
    captioned_table(title, Some(html! { (title) }), &headings, &rows)
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
    let [first, second] = &pairing.names;
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| ABSENT.to_owned(), brief);
    let rows = html! {
        @for one in &pairing.comparison.conditions { tr {
            th scope="row" { (brief(&one.name)) }
            td class="word" { (shown(&one.first)) }
            td class="word" { (shown(&one.second)) }
        } }
    };
    let headings = [Text("what"), Text(first), Text(second)];
    let found = table(&format!("Conditions of {second}"), &headings, &rows);
    html! {
        @if !pairing.comparison.conditions.is_empty() {
            (section(&format!("conditions-{index}"), "What else differs", &found))
        }
    }
}

fn pairs(pairing: &Pairing<'_>, index: usize) -> Markup {
    let [first, second] = &pairing.names;
    let cells = &pairing.comparison.cells;
    let caption = html! {
        (pairing.units())
        "; B ÷ A with its 95 % confidence interval (a to b), or the range (a–b) of fewer than five \
         repeats. A: " (first) ". B: " (second) "."
    };
    let headings = [
        Text("workload"),
        SortedFigures("read-ahead"),
        SortsFigures("A"),
        SortsFigures("B"),
        SortsFigures("B ÷ A"),
        Figure("95 % CI or range"),
        Text("B is"),
    ];
    let rows = html! { @for cell in cells { (pair_row(cell)) } };
    let body = match cells.is_empty() {
        true => html! { p { "No setting and workload in common." } },
        false => captioned_table(&format!("Cells of {second}"), Some(caption), &headings, &rows),
    };
    section(&format!("pairs-{index}"), &format!("{second} against {first}"), &body)
}

fn pair_row(cell: &study::CellPair) -> Markup {
    let kib = cell.settings.read_ahead;
    html! {
        tr {
            th scope="row" { (brief(&cell.workload)) }
            td data-v=(kib.get()) {
                (setting(kib))
                @let others = settings_label(&cell.settings);
                @if !others.is_empty() { " " (others) }
            }
            td data-v=(cell.first_mib_s.median) { (with_spread(&cell.first_mib_s)) }
            td data-v=(cell.second_mib_s.median) { (with_spread(&cell.second_mib_s)) }
            td data-v=(cell.ratio.median) { (short_or_absent(cell.ratio.median)) }
            td { (ends_text(&cell.ratio).unwrap_or_else(|| ABSENT.to_owned())) }
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
