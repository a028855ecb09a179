//! The table of the classic posts, coloured: a row for each setting, a column for each workload.

use maud::{Markup, html};
use stats::Estimate;

use super::Exhibit;
use super::sections::Place;
use crate::names::{brief, settings_label};
use crate::number::{ABSENT, plus_minus_text, short};

/// Shades of goodness, without the first, which is none.
const SHADES: f64 = 9.0;

/// The section.
pub(super) fn table(exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    let findings = exhibit.findings();
    let settings = findings.all_settings();
    let workloads = findings.workloads();
    let several = settings.iter().any(|s| !settings_label(s).is_empty());
    let columns: Vec<Column> =
        workloads.iter().map(|planned| Column::of(exhibit, &planned.workload.name)).collect();
    html! {
        section id=(place.id("heat")) aria-labelledby=(place.id("heat-title")) {
            h2 id=(place.id("heat-title")) { "Every setting, every workload" }
            p class="soft" {
                "Darker is better, in each column for itself. Click a heading to sort."
            }
            div class="scroll" tabindex="0" role="region" aria-label="Settings and workloads" {
                table class="sortable" {
                    caption {
                        "MiB/s, ± half the 95 % interval of the median; × amplification: bytes \
                         read from the device ÷ bytes asked for."
                    }
                    thead {
                        tr {
                            th scope="col" aria-sort="ascending" {
                                button type="button" { "read-ahead" }
                            }
                            th scope="col" { "sectors" }
                            @if several { th scope="col" class="word" { "also set" } }
                            @for planned in &workloads {
                                th scope="col" {
                                    button type="button" { (brief(&planned.workload.name)) }
                                }
                            }
                            th scope="col" class="word" { "is" }
                        }
                    }
                    tbody {
                        @for settings in &settings {
                            @let kib = settings.read_ahead;
                            tr {
                                th scope="row" data-v=(kib.get()) { (kib) }
                                td { (kib.to_sectors().get()) }
                                @if several { td class="word" { (settings_label(settings)) } }
                                @for column in &columns { (column.cell(exhibit, *settings)) }
                                td class="word" {
                                    @for mark in findings.marks(kib) { span class="tag" { (mark) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A workload's throughputs, to tell good from bad.
struct Column {
    workload: String,
    least: f64,
    most: f64,
}

impl Column {
    fn of(exhibit: &Exhibit<'_>, workload: &str) -> Self {
        let cells = exhibit.analysis.cells.iter().filter(|cell| cell.workload == workload);
        let medians = cells.map(|cell| cell.throughput_mib_s.median).filter(|m| *m > 0.0);
        let (least, most) = medians.fold((f64::INFINITY, 0.0f64), |(least, most), median| {
            (least.min(median), most.max(median))
        });
        Self { workload: workload.to_owned(), least, most }
    }

    /// The shade of a throughput: by ratio, because twice as much is twice as good anywhere.
    fn shade(&self, median: f64) -> usize {
        let range = (self.most / self.least).ln();
        if !range.is_finite() || range < 0.01 || median <= 0.0 {
            return 0;
        }
        ((median / self.least).ln() / range * SHADES).round().clamp(0.0, SHADES) as usize
    }

    fn cell(&self, exhibit: &Exhibit<'_>, settings: study::Settings) -> Markup {
        let found = exhibit
            .analysis
            .cells
            .iter()
            .find(|cell| cell.settings == settings && cell.workload == self.workload);
        let Some(cell) = found else { return html! { td data-v="" { (ABSENT) } } };
        let throughput = &cell.throughput_mib_s;
        let Some(text) = short(throughput.median) else {
            return html! { td data-v="" { (ABSENT) } };
        };
        let amplification = cell.amplification.as_ref().and_then(|a: &Estimate| short(a.median));
        html! {
            td class={ "g" (self.shade(throughput.median)) } data-v=(throughput.median) {
                (text)
                @if let Some(half) = plus_minus_text(throughput) { " ±" (half) }
                @if let Some(amplification) = amplification {
                    " " span class="sub" { "×" (amplification) }
                }
            }
        }
    }
}
