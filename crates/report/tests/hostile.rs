//! Names that want to be more than names.
#![allow(clippy::unwrap_used)] // a test may panic

mod sample;

use foreread_report::{
    Look, Named, Pairing, compare_csv, compare_markdown, compare_terminal, markdown, runs_csv,
    runs_markdown, runs_table, terminal, write_csv,
};
use sample::{sample, summary};

const HOSTILE: &str = "/srv/\u{1b}[2J\u{202e}x|y\n=1+1 <script>alert(1)</script> [a](http://b) `c`";

#[test]
fn a_hostile_target_injects_nothing() {
    let mut sample = sample();
    sample.run.summary.target = HOSTILE.to_owned();
    sample.analysis.notes = vec![HOSTILE.to_owned()];
    let findings = sample.findings();
    let text = terminal(&findings, Look { width: 100, colour: false });
    let pasted = markdown(&findings);
    let mut csv = Vec::new();
    write_csv(&findings, &mut csv).unwrap();
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
    let named = [&first, &second].map(|sample| Named { findings: sample.findings(), name: None });
    let pairings = Pairing::all(&named);
    let text = compare_terminal(&pairings, Look { width: 100, colour: false });
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
