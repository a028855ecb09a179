//! Names that contain markup, escape sequences or formulas.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{
    Named, Pairing, ReportInput, TermStyle, TrialDetails, compare_csv, compare_markdown,
    compare_terminal, html, index_html, markdown, runs_csv, runs_markdown, runs_table, terminal,
    terminal_plots, write_csv,
};
use sample::{Sample, sample, summary, trial_of};
use study::{CellSettings, Combination, Difference, Factor, Labels, RunCommand, TrialRecord};
use units::Nanos;

const HOSTILE: &str = "/srv/\u{1b}[2J\u{202e}x|y\n=1+1 <script>alert(1)</script> [a](http://b) `c`";

#[test]
fn a_hostile_target_injects_nothing() {
    let mut sample = sample();
    sample.run.summary.target = HOSTILE.to_owned();
    sample.analysis.notes = vec![HOSTILE.to_owned()];
    let report = sample.report();
    let text = terminal(&report, TermStyle { width: 100, colour: false });
    let pasted = markdown(&report);
    let mut csv = Vec::new();
    write_csv(&report, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    for text in [&text, &pasted, &csv] {
        let controls = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(controls), "{text:?}");
    }
    assert!(
        !pasted.contains("<script>") && !pasted.contains("[a](") && !pasted.contains("http://")
    );
    assert_eq!(csv.lines().count(), 1 + sample.analysis.cells.len(), "no line more");
    assert!(!text.contains("y\n=1"), "the line break is shown, not obeyed");
}

#[test]
fn a_hostile_target_stays_in_its_column_of_the_list() {
    let runs = [summary(HOSTILE), summary("=cmd()")];
    assert_eq!(runs_table(&runs).lines().count(), 3);
    let pasted = runs_markdown(&runs);
    for line in pasted.lines() {
        let columns = line.replace("\\|", "").matches('|').count();
        assert_eq!(columns, 7, "{line}");
    }
    let mut csv = Vec::new();
    runs_csv(&runs, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.contains(",'=cmd()") && csv.lines().count() == 3, "{csv}");
}

#[test]
fn comparisons_inject_nothing_either() {
    let (mut first, mut second) = (sample(), sample());
    first.run.summary.target = HOSTILE.to_owned();
    second.run.summary.target = format!("=1+1|{HOSTILE}");
    first.analysis.cells[0].workload = HOSTILE.to_owned();
    second.analysis.cells[0].workload = HOSTILE.to_owned();
    let named = [&first, &second].map(|sample| Named { report: sample.report(), name: None });
    let pairings = Pairing::all(&named);
    let text = compare_terminal(&pairings, TermStyle { width: 100, colour: false });
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    let pasted = compare_markdown(&pairings);
    assert!(!pasted.contains("<script") && !pasted.contains("[a](http"), "{pasted}");
    let mut csv = Vec::new();
    compare_csv(&pairings, &mut csv).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    for record in reader.records() {
        for field in &record.unwrap() {
            assert!(!field.starts_with('='), "{field}");
            assert!(!field.contains('\u{1b}'), "{field:?}");
        }
    }
}

/// The worst names of each kind, and all of them in a name of 4 KiB.
fn worst_names() -> Vec<String> {
    let mut names: Vec<String> = [
        HOSTILE,
        "</script><script>alert(1)</script>",
        "</title><img src=x onerror=alert(1)>",
        "\" onmouseover=\"alert(1)",
        "\u{1b}]0;title\u{7}\u{9b}31m\r\n\u{0}",
        "|a|b|\n\n# heading\n```sh\nrm\n```",
        "=cmd|' /C calc'!A0,\"x\"\n+1",
        "javascript:alert(1)//[x](javascript:alert(1))",
        "\u{202e}gpj.exe\u{2028}\u{feff}",
    ]
    .map(str::to_owned)
    .to_vec();
    let all = names.concat();
    names.push(all.repeat(4096 / all.len() + 1));
    names
}

/// Returns a run in which all text from outside is this name.
fn named(name: &str) -> Sample {
    let mut sample = sample();
    sample.run.summary.target = name.to_owned();
    sample.run.summary.error = Some(name.to_owned());
    sample.run.summary.version = name.to_owned();
    sample.analysis.notes = vec![name.to_owned()];
    let described = serde_json::json!({ name: name, "kernel": name, "unit_note": name,
        "storage": { "bdi": name, "mount": { "fstype": name } }, "tunables": { name: name } });
    sample.run.machine = described.clone();
    sample.run.device_before = described.clone();
    sample.run.device_after = described;
    let other = sample.run.plan.workloads[0].workload.name.clone();
    sample.run.plan.workloads[0].workload.name = name.to_owned();
    for cell in sample.analysis.cells.iter_mut().filter(|cell| cell.workload == other) {
        cell.workload = name.to_owned();
    }
    sample.analysis.per_workload[0].workload = name.to_owned();
    let advice = &mut sample.analysis.recommendation;
    advice.conditions[0].workload = name.to_owned();
    advice.cost.as_mut().unwrap().changes[0].workload = name.to_owned();
    sample
}

/// Checks that a visible text has no control or direction characters.
#[track_caller]
fn is_tame(what: &str, text: &str) {
    let wild = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2028}\u{feff}".contains(c);
    if let Some(found) = text.find(wild) {
        let around: String = text[found..].chars().take(40).collect();
        panic!("{what}: {around:?}");
    }
}

#[test]
fn no_name_injects_anything_into_any_format() {
    for name in worst_names() {
        let (one, two) = (named(&name), named(&format!("{name}2")));
        let look = TermStyle { width: 100, colour: false };
        is_tame("terminal", &terminal(&one.report(), look));
        let pasted = markdown(&one.report());
        is_tame("Markdown", &pasted);
        tame_markdown(&pasted);
        tame_csv(|out| write_csv(&one.report(), out), one.analysis.cells.len());
        let both = [&one, &two].map(|run| Named { report: run.report(), name: Some(&name) });
        let pairings = Pairing::all(&both);
        is_tame("comparison", &compare_terminal(&pairings, look));
        let pasted = compare_markdown(&pairings);
        is_tame("comparison in Markdown", &pasted);
        tame_markdown(&pasted);
        tame_csv(|out| compare_csv(&pairings, out), pairings[0].comparison.cells.len());
        let exhibit = |run: &'static Sample| ReportInput {
            run: &run.run,
            analysis: &run.analysis,
            trial_details: None,
            name: None,
        };
        let runs: [&'static Sample; 2] = [Box::leak(Box::new(one)), Box::leak(Box::new(two))];
        tame_page(&html(&[exhibit(runs[0])]));
        tame_page(&html(&runs.map(exhibit)));
        tame_page(&index_html(&[runs[0].run.summary.clone()]));
    }
}

/// Like `named`, for a study of labels, whose names and levels may be any text, with time series of
/// its trials.
fn labelled(name: &str) -> (Sample, TrialDetails) {
    let mut sample = sample::sample();
    sample.run.summary.command = RunCommand::Pg;
    let again = serde_json::json!({ "again": ["pg", name, "--vary", name] });
    sample.run.machine = serde_json::json!({ "postgres": again, "version": name });
    let levels = [name.to_owned(), format!("{name}2")];
    sample.run.plan.factors =
        vec![Factor { tunable: name.to_owned(), levels: levels.clone().into() }];
    let with = |settings: &CellSettings, level: &str| {
        let labels = Labels::from([(name.to_owned(), level.to_owned())]);
        CellSettings::from_tunables(&settings.tunables(), labels).unwrap()
    };
    for cell in &mut sample.analysis.cells {
        cell.settings = with(&cell.settings, &levels[cell.workload.len() % 2]);
    }
    let (first, last) = (&sample.analysis.cells[0].settings, &sample.analysis.cells[8].settings);
    let ratio = sample.analysis.cells[0].throughput_mib_s;
    let difference = Difference::Faster;
    sample.analysis.combination =
        Some(Combination { settings: last.clone(), over: first.clone(), ratio, difference });
    let mut trial_details = TrialDetails::default();
    for (order, cell) in (0..).zip(&sample.analysis.cells) {
        let mut trial = trial_of(cell, order);
        trial.disturbances = vec![name.to_owned()];
        let mut sample = bench::Sample::failed(&cell.workload, 1, 1.0, name.to_owned());
        let mut series = bench::Series::level(name, name);
        (1..9).for_each(|n| series.push(Nanos::from_secs(n), n as f64));
        sample.series = vec![series];
        trial_details.add(&trial, &TrialRecord { sample, virtual_disk: None, spoiled: Vec::new() });
    }
    (sample, trial_details)
}

#[test]
fn neither_what_is_no_tunable_nor_a_time_line_injects_anything() {
    for name in worst_names() {
        let (sample, trial_details) = labelled(&name);
        let look = TermStyle { width: 100, colour: false };
        is_tame("terminal", &terminal(&sample.report(), look));
        let pasted = markdown(&sample.report());
        is_tame("Markdown", &pasted);
        tame_markdown(&pasted);
        tame_csv(|out| write_csv(&sample.report(), out), sample.analysis.cells.len());
        let (run, analysis) = (&sample.run, &sample.analysis);
        let exhibit =
            ReportInput { run, analysis, trial_details: Some(&trial_details), name: None };
        is_tame("plots", &terminal_plots(&exhibit, look));
        tame_page(&html(&[exhibit]));
    }
}

fn tame_markdown(text: &str) {
    assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
    let unescaped = text.replace("\\]", "");
    assert!(!unescaped.contains("](") && !text.contains("://"), "a link in {text}");
    // The only headings and code blocks are the report's own.
    let lines = || text.lines().map(str::trim_start);
    let headings = lines().filter(|line| line.starts_with('#') && !line.starts_with("### "));
    assert_eq!(headings.count(), 0, "{text}");
    assert!(lines().filter(|line| line.starts_with("```")).all(|l| l == "```sh" || l == "```"));
    assert!(!text.contains("```sh\nrm"), "{text}");
}

#[track_caller]
fn tame_csv(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>, rows: usize) {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    is_tame("CSV", std::str::from_utf8(&bytes).unwrap());
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let columns = reader.headers().unwrap().len();
    let records: Vec<_> = reader.records().map(|record| record.unwrap()).collect();
    assert_eq!(records.len(), rows);
    for field in records.iter().flatten() {
        assert!(!field.starts_with(['=', '+', '@']), "{field:?} is a formula");
        assert!(!field.starts_with('-') || field.parse::<f64>().is_ok(), "{field:?}");
    }
    assert!(records.iter().all(|record| record.len() == columns));
}

/// Checks that a page has only its own elements: two scripts, and no attribute that runs a script.
fn tame_page(page: &str) {
    is_tame("page", page);
    assert_eq!(page.matches("<script").count(), 2, "the data and our own");
    assert_eq!(page.matches("</script").count(), 2);
    for wild in ["<img", "<iframe", "<b ", " onmouseover=\"", " onerror=\"", "href=\"javascript"] {
        assert!(!page.contains(wild), "{wild}");
    }
    assert!(!page.contains("<h1>heading") && page.matches("<title>").count() == 1);
    assert!(page.len() < 400_000, "a long name is cut: {} bytes", page.len());
}
