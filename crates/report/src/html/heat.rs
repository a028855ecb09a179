//! The table of settings, coloured: one row for each combination of settings, one column for each
//! tunable and each workload.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use maud::{Markup, html};
use stats::Estimate;
use study::{Cell, CellSettings};

use super::ReportInput;
use super::parts::Heading::{Figure, SortedFigures, SortsFigures, SortsText, Text};
use super::parts::{about, captioned_table, section};
use super::sections::RunSection;
use crate::names::brief;
use crate::number::{ABSENT, short, spread_legend, spread_text};
use crate::shade::Shades;

/// Number of shades besides none.
const SHADE_COUNT: usize = 9;

pub(super) fn table(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let report = exhibit.report();
    let settings = report.all_settings();
    let tunables = tunables(&settings);
    let cells = &exhibit.analysis.cells;
    let columns: Vec<Column<'_>> = report
        .workloads()
        .iter()
        .map(|planned| Column::of(cells, &planned.workload.name))
        .collect();
    let spread = spread_legend(cells.iter().map(|cell| &cell.throughput_mib_s));
    let spread = if spread.is_empty() { spread } else { format!("{spread}; ") };
    let measured = report.workloads();
    let names = measured.iter().map(|planned| planned.workload.name.as_str());
    let caption = html! {
        (crate::unit::units(report.run, names)) "; " (spread) "×: amplification, bytes read from \
         the device ÷ bytes requested."
    };
    let tunable_names: Vec<String> = tunables.iter().map(|tunable| brief(tunable.name)).collect();
    let workload_names: Vec<String> = columns.iter().map(|column| brief(column.workload)).collect();
    let mut headings = vec![SortedFigures("read-ahead"), Figure("sectors")];
    headings.extend(tunable_names.iter().map(|name| SortsText(name)));
    headings.extend(workload_names.iter().map(|name| SortsFigures(name)));
    headings.push(Text("is"));
    let rows = html! {
        @for settings in &settings {
            @let kib = settings.read_ahead;
            tr {
                th scope="row" data-v=(kib.get()) { (kib) }
                td { (kib.to_sectors().get()) }
                @for tunable in &tunables { (tunable.cell(settings)) }
                @for column in &columns { (column.cell(settings)) }
                td class="word" {
                    @for mark in report.marks_of(settings) { span class="tag" { (mark) } }
                }
            }
        }
    };
    section(
        &place.id("heat"),
        "Every setting, every workload",
        &html! {
            (about("Stronger colours are better, within each column. Click a heading to sort."))
            (captioned_table("Settings and workloads", Some(caption), &headings, &rows))
        },
    )
}

/// A tunable other than read-ahead, or a label, with its measured levels, ascending.
struct Tunable<'a> {
    name: &'a str,
    levels: Vec<String>,
}

/// Returns all settings besides read-ahead.
fn tunables(settings: &[CellSettings]) -> Vec<Tunable<'_>> {
    let all = || settings.iter().flat_map(|settings| settings.extra.tunables.iter());
    let names: BTreeSet<&'static str> = all().map(|setting| setting.tunable.name()).collect();
    let of_name = |name: &'static str| {
        let mut levels: Vec<_> = all().filter(|setting| setting.tunable.name() == name).collect();
        levels.sort();
        levels.dedup();
        let levels = levels.iter().map(|setting| setting.tunable.show(&setting.value)).collect();
        Tunable { name, levels }
    };
    let mut labels: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (name, value) in settings.iter().flat_map(|settings| &settings.extra.labels) {
        labels.entry(name).or_default().insert(value);
    }
    let of_label = labels.into_iter().map(|(name, levels)| {
        let mut levels: Vec<String> = levels.into_iter().cloned().collect();
        // Sorts numbers by value.
        levels.sort_by_key(|level| level.parse::<i64>().ok());
        Tunable { name, levels }
    });
    names.into_iter().map(of_name).chain(of_label).collect()
}

impl Tunable<'_> {
    fn cell(&self, settings: &CellSettings) -> Markup {
        let own =
            settings.extra.tunables.iter().find(|setting| setting.tunable.name() == self.name);
        let own = own.map(|setting| setting.tunable.show(&setting.value));
        let level = own.or_else(|| settings.extra.labels.get(self.name).cloned());
        let place = level.as_ref().and_then(|level| self.levels.iter().position(|l| l == level));
        html! {
            td class="word mono" data-v=[place] {
                @match &level { Some(level) => (brief(level)), None => (ABSENT) }
            }
        }
    }
}

/// The cells of a workload, and their shades.
struct Column<'a> {
    workload: &'a str,
    cells: HashMap<&'a CellSettings, &'a Cell>,
    shades: Shades,
}

impl<'a> Column<'a> {
    fn of(cells: &'a [Cell], workload: &'a str) -> Self {
        let ours = || cells.iter().filter(|cell| cell.workload == workload);
        Self {
            workload,
            cells: ours().map(|cell| (&cell.settings, cell)).collect(),
            shades: Shades::new(ours().map(|cell| cell.throughput_mib_s.median)),
        }
    }

    fn cell(&self, settings: &CellSettings) -> Markup {
        let absent = || html! { td data-v="" { (ABSENT) } };
        let Some(cell) = self.cells.get(settings) else { return absent() };
        let throughput = &cell.throughput_mib_s;
        let Some(text) = short(throughput.median) else { return absent() };
        let amplification = cell.amplification.as_ref().and_then(|a: &Estimate| short(a.median));
        let shade = self.shades.shade(throughput.median, SHADE_COUNT);
        html! {
            td class={ "g" (shade) } data-v=(throughput.median) {
                (text)
                @if let Some(spread) = spread_text(throughput) { " " (spread) }
                @if let Some(amplification) = amplification {
                    " " span class="sub" { "×" (amplification) }
                }
            }
        }
    }
}
