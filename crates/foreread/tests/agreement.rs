//! One store, every format: the same numbers in the page, JSON, CSV, Markdown and the terminal.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::collections::BTreeMap;
use std::path::Path;

use program::{foreread_in, printed};
use serde_json::Value;

/// What a program prints of the runs in a state directory of its own.
struct Record(tempfile::TempDir);

impl Record {
    /// A record with a sweep of read-ahead and one of two tunables.
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

    /// The document inside the page, and the page.
    fn page(&self, run: &str) -> (Value, String) {
        let html = self.print(&["report", run, "-o", "-"]);
        let begin = "<script type=\"application/json\" id=\"data\">";
        let start = html.find(begin).unwrap() + begin.len();
        let end = start + html[start..].find("</script>").unwrap();
        let data: Value = serde_json::from_str(&html[start..end]).unwrap();
        (data["runs"][0].clone(), html)
    }
}

/// Every figure of a cell by a name: median and interval, quantiles.
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

/// The same figures as the page's script has them.
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
        // The last binary digit may be lost between text and number.
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
                let others = setting["beside"].as_str().unwrap();
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
    assert!(texts[2].contains("What they do together"));
}
