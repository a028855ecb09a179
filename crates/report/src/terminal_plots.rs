//! The plots of an HTML page for a terminal: figures over read-ahead, histograms, time series,
//! drift.

use std::collections::BTreeMap;

use study::{Cell, CellSettings};
use units::Kib;

use crate::clean;
use crate::html::ReportInput;
use crate::names::settings_label;
use crate::number::{short, time};
use crate::plot::{Point, bar, plot, plot_over};
use crate::terminal_text::{TermStyle, wrap};
use crate::trial_details::{Detail, bucket_us};
use crate::unit::{RATE, unit};

/// Maximum length of a histogram's bar, in characters.
const MAX_BAR_COLUMNS: usize = 40;

/// A figure of a cell to plot over read-ahead.
struct Metric {
    name: &'static str,
    of: fn(&Cell) -> Option<f64>,
}

const METRICS: [Metric; 5] = [
    Metric { name: "p99 latency of reads, ms", of: |c| Some(c.latency_us?.p99 / 1e3) },
    Metric {
        name: "p99 latency of random reads, ms",
        of: |c| Some(c.random_latency_us?.p99 / 1e3),
    },
    Metric {
        name: "bytes read from the device ÷ bytes requested",
        of: |c| Some(c.amplification?.median),
    },
    Metric { name: "requests to the device in a trial", of: |c| Some(c.device_requests?.median) },
    Metric { name: RATE, of: |c| Some(c.throughput_mib_s.median) },
];

/// Plots the charts of the page that the terminal's table does not show.
pub fn terminal_plots(exhibit: &ReportInput<'_>, look: TermStyle) -> String {
    let (mut text, width) = (String::new(), look.width);
    let report = exhibit.report();
    for planned in report.workloads() {
        let name = &planned.workload.name;
        if !report.varied() {
            text.push_str(&curves(exhibit, name, width));
        }
        for settings in shown(exhibit, name) {
            let details = exhibit.trial_details.map(|trial_details| &trial_details.cells);
            let detail = details.and_then(|cells| cells.get(&(settings.clone(), name.clone())));
            text.push_str(&detail.map_or_else(String::new, |d| of_cell(d, name, &settings, width)));
        }
    }
    text.push_str(&drift(exhibit));
    text
}

fn curves(exhibit: &ReportInput<'_>, workload: &str, width: usize) -> String {
    let cells: Vec<&Cell> =
        exhibit.analysis.cells.iter().filter(|cell| cell.workload == workload).collect();
    let mut text = String::new();
    // If all reads are random, both latencies are equal.
    let random = cells.iter().any(|cell| cell.random_latency_us == cell.latency_us);
    for metric in METRICS.iter().skip(usize::from(random)) {
        let point = |cell: &&Cell| {
            Some(Point { setting: cell.settings.read_ahead, value: (metric.of)(cell)? })
        };
        let points: Vec<Point> = cells.iter().filter_map(point).collect();
        if let Some(drawn) = plot(&points) {
            let name = clean::plain(workload);
            let what = match metric.name {
                RATE => clean::plain(&unit(exhibit.run, workload)),
                named => named.to_owned(),
            };
            let title = wrap(&format!("{name}: {what}"), width);
            text.push_str(&format!("\n{title}{drawn}"));
        }
    }
    text
}

/// Returns the settings whose details are shown: the current and the recommended setting, or the
/// ends of the grid.
fn shown(exhibit: &ReportInput<'_>, workload: &str) -> Vec<CellSettings> {
    let ours = || exhibit.analysis.cells.iter().filter(|cell| cell.workload == workload);
    let recommended = exhibit.analysis.recommendation.value();
    let marked: Vec<Kib> = [exhibit.run.found, recommended].into_iter().flatten().collect();
    let best = exhibit
        .analysis
        .combination
        .as_ref()
        .map(|best| vec![best.over.clone(), best.settings.clone()]);
    let mut settings: Vec<CellSettings> = best.unwrap_or_else(|| {
        let marked = ours().filter(|c| marked.contains(&c.settings.read_ahead));
        marked.map(|c| c.settings.clone()).collect()
    });
    if settings.is_empty() {
        let ends = [ours().next(), ours().next_back()];
        settings = ends.into_iter().flatten().map(|cell| cell.settings.clone()).collect();
    }
    settings.sort_unstable();
    settings.dedup();
    settings
}

fn of_cell(detail: &Detail, workload: &str, settings: &CellSettings, width: usize) -> String {
    let title = format!(
        "{} at {} {}",
        clean::plain(workload),
        settings.read_ahead,
        settings_label(settings)
    );
    let title = title.trim_end();
    let mut text = String::new();
    let (what, counts) = match detail.random.is_empty() {
        true => ("reads", &detail.stream),
        false => ("random reads", &detail.random),
    };
    // By octaves; a terminal has no space for quarter octaves.
    let mut octaves: BTreeMap<i32, u64> = BTreeMap::new();
    for (bucket, count) in counts {
        *octaves.entry(bucket.div_euclid(4)).or_default() += count;
    }
    let rows: Vec<(String, u64)> = octaves
        .iter()
        .map(|(octave, count)| (time(bucket_us(octave * 4)).unwrap_or_default(), *count))
        .collect();
    text.push_str(&histogram(&format!("{title}: {what}, by latency from …"), &rows, width));
    let rows: Vec<(String, u64)> = detail
        .sizes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(class, count)| (format!("{} KiB", 4u64 << class), *count))
        .collect();
    text.push_str(&histogram(&format!("{title}: requests to the device of up to"), &rows, width));
    let lines = detail.series.iter().map(|watched| {
        let (name, unit) = (clean::plain(&watched.name), clean::plain(&watched.unit));
        let name = format!("{name}, {unit}");
        (name, watched.means())
    });
    for (name, points) in std::iter::once(queue(detail)).chain(lines) {
        let drawn = plot_over(&points, "s");
        let heading = wrap(&format!("{title}: {name}, over a trial"), width);
        let drawn = drawn.map(|drawn| format!("\n{heading}{drawn}"));
        text.push_str(&drawn.unwrap_or_default());
    }
    text
}

/// Returns the device's queue during a trial.
fn queue(detail: &Detail) -> (String, Vec<(f64, f64)>) {
    let seen = detail.course.iter().enumerate().take_while(|(_, slot)| slot.moments > 0.0);
    let points =
        seen.map(|(at, slot)| ((at + 1) as f64 * detail.slot_seconds, slot.queue / slot.moments));
    ("requests in flight".to_owned(), points.collect())
}

fn histogram(title: &str, rows: &[(String, u64)], width: usize) -> String {
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if all == 0 {
        return String::new();
    }
    let mut text = format!("\n{}", wrap(title, width));
    for (label, count) in rows {
        let share = short(*count as f64 / all as f64 * 100.0).unwrap_or_default();
        let bar = bar(*count as f64 / most as f64, MAX_BAR_COLUMNS);
        text.push_str(&format!("  {label:>10} {bar} {share} %\n"));
    }
    text
}

/// Plots the medians of the blocks, relative to their cells.
fn drift(exhibit: &ReportInput<'_>) -> String {
    let medians = exhibit.report().drift().into_iter();
    let points: Vec<(f64, f64)> =
        medians.map(|one| (f64::from(one.block) + 1.0, one.relative)).collect();
    let drawn = plot_over(&points, "");
    drawn.map_or_else(String::new, |drawn| {
        format!("\nDrift: the median of each block relative to its cells, block by block\n{drawn}")
    })
}
