//! Every format has the same numbers, and no number that was not measured.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{
    ReportInput, RunReport, TermStyle, TrialDetails, html, json, markdown, terminal,
    terminal_plots, write_csv,
};
use sample::{SETTINGS, sample, trial_of};
use serde_json::Value;
use study::{Estimate, TrialRecord};
use units::Nanos;

const LOOK: TermStyle = TermStyle { width: 100, colour: false };

fn csv_of(report: &RunReport<'_>) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut text = Vec::new();
    write_csv(report, &mut text).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_slice());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn json_of(report: &RunReport<'_>) -> Value {
    serde_json::from_str(&serde_json::to_string(&json(report)).unwrap()).unwrap()
}

#[test]
fn json_and_csv_hold_the_same_cells() {
    let sample = sample();
    let document = json_of(&sample.report());
    let rows = csv_of(&sample.report());
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), rows.len());
    for (cell, row) in cells.iter().zip(&rows) {
        assert_eq!(cell["workload"], row["workload"]);
        assert_eq!(cell["settings"]["read_ahead_kib"].to_string(), row["read_ahead_kib"]);
        for (field, part) in [
            ("throughput_mib_s", "median"),
            ("throughput_mib_s", "low"),
            ("throughput_mib_s", "high"),
            ("amplification", "median"),
            ("device_requests", "median"),
            ("latency_us", "p50"),
            ("latency_us", "p99"),
        ] {
            let in_row: f64 = row[&format!("{field}_{part}")].parse().unwrap();
            let in_cell = cell[field][part].as_f64().unwrap();
            // The last binary digit may be lost between text and number.
            assert!(
                (in_cell - in_row).abs() <= in_row * 1e-15,
                "{field} {part}: {in_cell} {in_row}"
            );
        }
    }
}

#[test]
fn tables_show_the_medians_that_json_holds() {
    let sample = sample();
    let document = json_of(&sample.report());
    let text = terminal(&sample.report(), LOOK);
    let pasted = markdown(&sample.report());
    for cell in document["cells"].as_array().unwrap() {
        let kib = cell["settings"]["read_ahead_kib"].as_u64().unwrap();
        let median = cell["throughput_mib_s"]["median"].as_f64().unwrap();
        for (table, row) in [(&text, format!(" {kib} KiB")), (&pasted, format!("| {kib} |"))] {
            let lines = table.lines().filter(|line| line.contains(&row));
            let words = lines.flat_map(|line| line.split([' ', '×', '±']));
            let mut shown = words.filter_map(|word| word.parse::<f64>().ok());
            let close = |shown: f64| (shown - median).abs() <= median * 0.005 + 5e-5;
            assert!(shown.any(close), "{median} is not in the row {row} of\n{table}");
        }
    }
}

#[test]
fn table_has_both_units_and_marks_the_settings_that_matter() {
    let text = terminal(&sample().report(), LOOK);
    let line = |kib: u64| {
        text.lines().find(|line| line.contains(&format!(" {kib} KiB"))).unwrap().to_owned()
    };
    for kib in SETTINGS {
        assert!(line(kib).contains(&format!(" {} ", kib * 2)), "sectors in {}", line(kib));
    }
    assert!(line(128).contains("◀ now"));
    assert!(line(8192).contains("◀ recommended, best"));
    assert!(!line(4).contains('◀'));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_colour_stays_out_of_pipes() {
    let sample = sample();
    for width in [80, 100, 200] {
        let text = terminal(&sample.report(), TermStyle { width, colour: false });
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} columns of {width}:\n{text}");
        assert!(!text.contains('\u{1b}'));
    }
    assert!(terminal(&sample.report(), TermStyle { width: 80, colour: true }).contains('\u{1b}'));
}

#[test]
fn what_was_not_measured_is_not_printed() {
    let mut sample = sample();
    for cell in &mut sample.analysis.cells {
        cell.throughput_mib_s = Estimate::unbounded(cell.throughput_mib_s.median);
        cell.amplification = None;
        cell.device_requests = Some(Estimate::unbounded(f64::NAN));
        cell.latency_us = None;
    }
    sample.analysis.cells.pop();
    let gain = sample.analysis.recommendation.gain.as_mut().unwrap();
    gain.ratio = Estimate::unbounded(f64::INFINITY);
    let report = sample.report();
    let mut csv = Vec::new();
    write_csv(&report, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let json = serde_json::to_string(&json(&report)).unwrap();
    let (terminal, markdown) = (terminal(&report, LOOK), markdown(&report));
    for text in [&csv, &json, &terminal, &markdown] {
        for word in ["NaN", "nan", "inf", "Inf", "None"] {
            let words = text.split(|c: char| !c.is_alphanumeric());
            assert!(!words.clone().any(|found| found == word), "{word} in\n{text}");
        }
    }
    assert!(terminal.contains('–') && markdown.contains("| – |"), "the gap is shown as one");
    assert!(!terminal.contains("30.1 ±"), "one repeat has no interval");
}

#[test]
fn nothing_measured_yet_is_said_plainly() {
    let mut sample = sample();
    sample.analysis.cells.clear();
    assert!(terminal(&sample.report(), LOOK).contains("No trials yet"));
    assert!(csv_of(&sample.report()).is_empty());
    assert!(!markdown(&sample.report()).contains("|---"));
}

/// Timelines in the page and in the terminal's plots equal those of the record, in the storage's
/// own time.
#[test]
fn time_lines_are_those_of_the_record() {
    const DILATION: f64 = 4.0;
    let sample = sample();
    let cell = &sample.analysis.cells[1];
    let mut measured = bench::Sample::failed(&cell.workload, 1, DILATION, String::new());
    let mut queries = bench::Series::rate("queries", "queries/s");
    let mut cached = bench::Series::level("cached", "%");
    for second in 1..=100u64 {
        queries.push(Nanos::from_secs(second), second as f64);
        cached.push(Nanos::from_secs(second), second as f64);
    }
    measured.series = vec![queries, cached];
    let mut trial_details = TrialDetails::default();
    let record = TrialRecord { sample: measured, virtual_disk: None, spoiled: Vec::new() };
    trial_details.add(&trial_of(cell, 0), &record);
    let (run, analysis) = (&sample.run, &sample.analysis);
    let exhibit = ReportInput { run, analysis, trial_details: Some(&trial_details), name: None };
    let page = html(&[exhibit]);
    let begin = "<script type=\"application/json\" id=\"data\">";
    let start = page.find(begin).unwrap() + begin.len();
    let end = start + page[start..].find("</script>").unwrap();
    let data: Value = serde_json::from_str(&page[start..end]).unwrap();
    let details = data["runs"][0]["details"].as_array().unwrap();
    assert_eq!(details.len(), 1);
    for (at, name, scale) in [(0, "queries", DILATION), (1, "cached", 1.0)] {
        let series = &details[0]["series"][at];
        assert_eq!(series["name"], name, "in the order of the record");
        let points: Vec<(f64, f64)> = serde_json::from_value(series["points"].clone()).unwrap();
        assert_eq!(points.len(), 100);
        for (second, (x, y)) in (1..).zip(points) {
            let second = f64::from(second);
            assert!((x - second / DILATION).abs() < 1e-4, "{name}: {x}");
            assert!((y - second * scale).abs() < 1e-3, "{name}: {y}");
        }
    }
    let plots = terminal_plots(&exhibit, LOOK);
    let plot = &plots[plots.find("queries, queries/s").unwrap()..];
    assert!(plot.contains("25.0 s"), "the last second, undilated: {plot}");
}
