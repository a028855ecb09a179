//! One store, every format: the same numbers in the page, JSON, CSV, Markdown and the terminal.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::collections::BTreeMap;
use std::path::Path;

use program::{foreread_in, printed};
use serde_json::Value;

/// A state directory with runs, and what the program prints about them.
struct Record(tempfile::TempDir);

impl Record {
    /// Creates a record with a sweep of read-ahead and one of two tunables.
    fn new() -> Self {
        let record = Self(tempfile::tempdir().unwrap());
        let windows = "read_ahead=4K,128K,1M,8M";
        let usual = ["sweep", "sim:hdd-2008", "--seed", "7", "--repeats", "3", "-q", "--vary"];
        record.print(&[&usual[..], &[windows]].concat());
        let both = ["scheduler=none,mq-deadline", "--vary", "nr_requests=8,128"];
        let full = ["--design", "full", "--workload", "seq-8,rand-mmap"];
        record.print(&[&usual[..], &both, &full].concat());
        record
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    #[track_caller]
    fn print(&self, words: &[&str]) -> String {
        let mut command = foreread_in(self.path());
        printed(&command.env("COLUMNS", "200").args(words).output().unwrap())
    }

    fn json(&self, run: &str) -> Value {
        serde_json::from_str(&self.print(&["runs", "show", run, "--json"])).unwrap()
    }

    fn csv(&self, run: &str) -> Vec<BTreeMap<String, String>> {
        let text = self.print(&["runs", "show", run, "--csv"]);
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heads = lines.next().unwrap();
        let row = |fields: Vec<&str>| {
            assert_eq!(fields.len(), heads.len(), "no field of this test has a comma in it");
            heads.iter().zip(fields).map(|(h, f)| ((*h).to_owned(), f.to_owned())).collect()
        };
        lines.map(row).collect()
    }

    /// Returns the document inside the page, and the page.
    fn page(&self, run: &str) -> (Value, String) {
        let html = self.print(&["report", run, "-o", "-"]);
        let begin = "<script type=\"application/json\" id=\"data\">";
        let start = html.find(begin).unwrap() + begin.len();
        let end = start + html[start..].find("</script>").unwrap();
        let data: Value = serde_json::from_str(&html[start..end]).unwrap();
        (data["runs"][0].clone(), html)
    }
}

/// Returns each figure of a cell by name: medians, intervals, quantiles.
fn figures(cell: &Value) -> BTreeMap<String, Option<f64>> {
    let mut all = BTreeMap::new();
    for name in ["throughput_mib_s", "amplification", "device_requests"] {
        for part in ["median", "low", "high"] {
            all.insert(format!("{name}_{part}"), cell[name][part].as_f64());
        }
    }
    for name in ["latency_us", "random_latency_us"] {
        for part in ["p50", "p99"] {
            all.insert(format!("{name}_{part}"), cell[name][part].as_f64());
        }
    }
    all
}

/// Returns the same figures, as the page's script stores them.
fn figures_of_page(cell: &Value) -> BTreeMap<String, Option<f64>> {
    let mut all = BTreeMap::new();
    for name in ["throughput_mib_s", "amplification", "device_requests"] {
        for (at, part) in ["median", "low", "high"].into_iter().enumerate() {
            all.insert(format!("{name}_{part}"), cell[name][at].as_f64());
        }
    }
    for name in ["latency_us", "random_latency_us"] {
        for (at, part) in ["p50", "p99"].into_iter().enumerate() {
            all.insert(format!("{name}_{part}"), cell[name][at].as_f64());
        }
    }
    all
}

#[track_caller]
fn same(of: &str, name: &str, a: Option<f64>, b: Option<f64>) {
    let close = match (a, b) {
        // Conversion between text and number may lose the last binary digit.
        (Some(a), Some(b)) => (a - b).abs() <= a.abs() * 1e-14,
        (a, b) => a.is_none() && b.is_none(),
    };
    assert!(close, "{of}: {name} is {a:?} and {b:?}");
}

#[test]
fn page_json_and_csv_hold_the_same_figures_to_the_last_digit() {
    let record = Record::new();
    for run in ["1", "2"] {
        let json = record.json(run);
        let (csv, (page, html)) = (record.csv(run), record.page(run));
        let cells = json["cells"].as_array().unwrap();
        let of_page = page["cells"].as_array().unwrap();
        assert_eq!((cells.len(), cells.len()), (csv.len(), of_page.len()));
        assert!(cells.len() >= 8, "{run}");
        for (cell, row) in cells.iter().zip(&csv) {
            let all = figures(cell);
            for (name, value) in &all {
                same("CSV", name, *value, row[name].parse().ok());
            }
            let place = |list: &str, name: &Value| {
                let list = page[list].as_array().unwrap();
                list.iter().position(|one| one["name"] == *name).unwrap() as u64
            };
            let w = place("workloads", &cell["workload"]);
            let own = of_page.iter().find(|one| {
                let setting = &page["settings"][one["s"].as_u64().unwrap() as usize];
                let others = setting["labels"].as_str().unwrap();
                let words = row["settings"].split_once(' ').map_or("", |(_, others)| others);
                one["w"] == w
                    && setting["kib"] == cell["settings"]["read_ahead_kib"]
                    && others == words
            });
            for (name, value) in &figures_of_page(own.unwrap()) {
                same("page", name, all[name], *value);
            }
            let median = &row["throughput_mib_s_median"];
            assert!(html.contains(&format!("data-v=\"{median}\"")), "{median} in the table");
        }
    }
}

#[test]
fn tables_for_people_round_those_figures_and_nothing_else() {
    let record = Record::new();
    let json = record.json("1");
    let pasted = record.print(&["runs", "show", "1", "--markdown"]);
    let shown = record.print(&["runs", "show", "1"]);
    let (_, html) = record.page("1");
    for cell in json["cells"].as_array().unwrap() {
        let kib = cell["settings"]["read_ahead_kib"].as_u64().unwrap();
        let median = cell["throughput_mib_s"]["median"].as_f64().unwrap();
        for (table, row) in [
            (&shown, format!(" {kib} KiB ")),
            (&pasted, format!("| {kib} |")),
            (&html.replace("<tr>", "\n<tr>"), format!("data-v=\"{kib}\">{kib} KiB")),
        ] {
            let lines = table.lines().filter(|line| line.contains(&row));
            let words = lines.flat_map(|line| line.split([' ', '×', '±', '<', '>']));
            let mut numbers = words.filter_map(|word| word.parse::<f64>().ok());
            let close = |shown: f64| (shown - median).abs() <= median * 0.005 + 5e-5;
            assert!(numbers.any(close), "{median} is not in the row {row} of\n{table}");
        }
    }
    let advised = json["recommendation"]["read_ahead_kib"].as_u64().expect("a recommendation");
    let advised = format!("{advised} KiB");
    for text in [&shown, &pasted, &html] {
        assert!(text.contains(&advised), "{advised:?} in\n{text}");
    }
}

#[test]
fn effects_are_the_same_in_every_format() {
    let record = Record::new();
    let json = record.json("2");
    let texts = [
        record.print(&["runs", "show", "2"]),
        record.print(&["runs", "show", "2", "--markdown"]).replace('\\', ""),
        record.page("2").1,
    ];
    let effects = json["effects"].as_array().unwrap();
    assert_eq!(effects.len(), 4, "two tunables, a goal and a price");
    for effect in effects {
        let strength = format!("{:.2}", effect["strength"].as_f64().unwrap());
        for text in &texts {
            let tunable = effect["tunable"].as_str().unwrap();
            assert!(text.contains(tunable), "{tunable} in\n{text}");
        }
        assert!(texts[0].contains(&strength) && texts[2].contains(&strength), "{strength}");
    }
    assert!(json["interactions"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(json["combination"]["ratio"]["median"].is_f64());
    assert!(texts[2].contains("Interactions"));
}

/// Generates a table to import, with rising, falling or flat figures, by a linear congruence.
fn drawn_table(seed: u64) -> String {
    let mut state = seed;
    let mut draw = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let (base, slope) = (10 + draw(90), draw(3));
    let mut rate = base as f64 * 4.0;
    let mut table = String::from("read_ahead_kib,seq-8\n");
    for kib in [4u64, 64, 128, 1024, 8192, 65536] {
        table.push_str(&format!("{kib},{rate:.3}\n"));
        let step = 1.0 + draw(60) as f64 / 100.0;
        rate = [rate, rate * step, rate / step][slope as usize];
    }
    table
}

#[test]
fn what_apply_and_persist_plan_is_what_the_run_recommends() {
    let record = Record(tempfile::tempdir().unwrap());
    let dry_run = |words: &[&str]| {
        let words = [words, &["--on", "/", "-n", "--json"]].concat();
        foreread_in(record.path()).args(words).output().unwrap()
    };
    let probe = dry_run(&["apply", "read_ahead=128K"]);
    if !probe.status.success() {
        println!(
            "SKIP what_apply_and_persist_plan_is_what_the_run_recommends: / has no read-ahead"
        );
        return;
    }
    for seed in 1..=12 {
        std::fs::write(record.path().join("table.csv"), drawn_table(seed)).unwrap();
        let table = record.path().join("table.csv");
        record.print(&["import", table.to_str().unwrap(), "--current", "128K", "--spread", "2"]);
        let run = seed.to_string();
        let advised = record.json(&run)["recommendation"]["read_ahead_kib"].as_u64();
        let applied = dry_run(&["apply", "--from", &run]);
        let Some(kib) = advised else {
            assert_eq!(applied.status.code(), Some(2), "run {run} recommends nothing");
            continue;
        };
        let plan: Value = serde_json::from_slice(&applied.stdout).unwrap();
        let written = plan["writes"].as_array().unwrap().last().unwrap();
        assert_eq!(written["after"].as_u64(), Some(kib), "run {run}: {plan}");
        // Another owner of the setting may prevent this here.
        let persisted = dry_run(&["persist", "--from", &run]);
        if persisted.status.success() {
            let files: Value = serde_json::from_slice(&persisted.stdout).unwrap();
            let kept = &files["files"][0]["settings"]["read_ahead_kib"];
            assert_eq!(kept.as_u64(), Some(kib), "run {run}: {files}");
        }
    }
}
