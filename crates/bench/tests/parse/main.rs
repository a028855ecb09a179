//! Parses the output of benchmarks into the figures that it states, and rejects garbage.
#![allow(clippy::unwrap_used)] // a test may panic

use std::path::Path;

use foreread_bench::parse::{FORMS, FigureValue, ParsedReport, detect, form};
use testkit::fuzz;

fn seed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parse/seeds").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn read(text: &str) -> Vec<ParsedReport> {
    detect(text).unwrap().read(text).unwrap()
}

fn number(report: &ParsedReport, key: &str) -> f64 {
    let figure = report.figures.iter().find(|figure| figure.key() == key);
    figure.unwrap_or_else(|| panic!("{key}: {report:?}")).as_number().unwrap()
}

#[test]
fn the_runs_of_2010_have_the_published_numbers() {
    // vfs.read_max, then output per character and per block, rewrite, both inputs, seeks.
    let published = [
        (
            include_str!("data/ufs-read-max-32.txt"),
            [830.0, 71842.0, 37219.0, 1432.0, 80352.0, 331.2],
        ),
        (
            include_str!("data/ufs-read-max-128.txt"),
            [806.0, 72148.0, 37570.0, 1410.0, 140_117.0, 327.3],
        ),
        (
            include_str!("data/ufs-read-max-256.txt"),
            [826.0, 72233.0, 37741.0, 1417.0, 141_587.0, 327.0],
        ),
    ];
    let keys = [
        "char_output_kib_s",
        "block_output_kib_s",
        "rewrite_kib_s",
        "char_input_kib_s",
        "block_input_kib_s",
        "random_seeks_per_s",
    ];
    for (text, numbers) in &published {
        let [report] = &read(text)[..] else { panic!("{text}") };
        assert_eq!(report.label, "fkit.fer.hr 8G");
        assert_eq!(report.version.as_deref(), Some("1.96"));
        for (key, expected) in keys.iter().zip(numbers) {
            assert_eq!(number(report, key), *expected, "{key}");
        }
    }
    let all: Vec<&str> = published.iter().map(|(text, _)| *text).collect();
    let page = format!("A page about it.\n\n{}\nand its comments 1 2 3\n", all.join("\n\nSo:\n"));
    let reports = read(&page);
    assert_eq!(reports.len(), 3, "pasted into a page all the same");
    let slow = &reports[0];
    assert_eq!(number(slow, "block_input_cpu_percent"), 9.0);
    assert_eq!(number(slow, "random_seeks_latency_us"), 293_000.0);
    assert_eq!(number(slow, "char_output_latency_us"), 9948.0);
}

#[test]
fn what_was_too_fast_is_no_number() {
    let [text] = &read(&seed("bonnie-2.txt"))[..] else { panic!() };
    assert_eq!(text.figure("block_input").unwrap().value, FigureValue::TooFast);
    assert_eq!(text.json()["figures"]["block_input_kib_s"], "too fast to measure");
    assert_eq!(number(text, "block_output_kib_s"), 72.5 * 1024.0);
    assert_eq!(number(text, "char_output_kib_s"), 441.0);
    assert_eq!(number(text, "seq_create_per_s"), 16384.0);
    assert_eq!(number(text, "random_delete_latency_us"), 48.0);
    let [csv] = &read(&seed("bonnie.csv"))[..] else { panic!() };
    assert_eq!(csv.figure("block_output").unwrap().value, FigureValue::TooFast);
    assert_eq!(number(csv, "block_input_kib_s"), 141_587.0);
    assert_eq!(number(csv, "random_seeks_per_s"), 327.0);
    assert_eq!(number(csv, "seq_create_per_s"), 16384.0);
    assert_eq!(number(csv, "random_delete_latency_us"), 48.0);
    // 1.97 lacks two fields.
    let older = seed("bonnie.csv")
        .replacen("1.98,2.00a,", "1.97,1.97,", 1)
        .replacen(",8192,5,", ",8192,", 1);
    let older = older.replacen("32M,,8192", "32M,", 1);
    let [older] = &read(&older)[..] else { panic!() };
    assert_eq!(number(older, "block_input_kib_s"), 141_587.0);
    assert_eq!(number(older, "random_delete_latency_us"), 48.0);
}

#[test]
fn iozone_has_a_report_for_each_size_and_record() {
    let table = read(&seed("iozone-table.txt"));
    assert_eq!(table.len(), 2);
    assert_eq!(table[0].label, "file 65536 KiB, record 64 KiB");
    assert_eq!(table[0].version.as_deref(), Some("3.489"));
    assert_eq!(number(&table[0], "read_kib_s"), 2_544_311.0);
    assert_eq!(number(&table[0], "random_read_kib_s"), 2_923_571.0);
    assert_eq!(number(&table[0], "stride_read_kib_s"), 2_728_019.0);
    assert_eq!(number(&table[1], "freread_kib_s"), 2_685_284.0);
    assert!(table[1].figure("random_read").is_none(), "0 is a test that did not run");
    let excel = read(&seed("iozone-excel.txt"));
    let labels: Vec<&str> = excel.iter().map(|report| report.label.as_str()).collect();
    assert_eq!(labels[1], "file 64 KiB, record 64 KiB");
    assert_eq!(number(&excel[1], "read_kib_s"), 2_712_001.0);
    assert_eq!(number(&excel[0], "random_read_kib_s"), 1111.0);
}

#[test]
fn the_others_have_their_units() {
    let [ioping] = &read(&seed("ioping.txt"))[..] else { panic!() };
    assert_eq!((number(ioping, "requests_count"), number(ioping, "read_mib_s")), (4250.0, 55.2));
    assert_eq!(number(ioping, "latency_max_us"), 8070.0);
    let [batch] = &read(&seed("ioping-batch.txt"))[..] else { panic!() };
    assert_eq!(number(batch, "requests_per_s"), 1225.0);
    let [sysbench] = &read(&seed("sysbench-1.txt"))[..] else { panic!() };
    assert_eq!(sysbench.label, "sequential read");
    assert_eq!(number(sysbench, "read_mib_s"), 2262.99);
    assert_eq!(number(sysbench, "latency_max_us"), 19_740.0);
    let [old] = &read(&seed("sysbench-0.txt"))[..] else { panic!() };
    assert_eq!(number(old, "transferred_mib_s"), 159.99);
    assert_eq!(number(old, "latency_p95_us"), 210.0);
    let elbencho = read(&seed("elbencho.csv"));
    assert_eq!(elbencho[1].label, "mine, READ, 1048576");
    assert_eq!(number(&elbencho[1], "throughput_mib_s"), 2940.0);
    assert!(elbencho[0].figure("throughput").is_none());
    let [fio] = &read(&seed("fio.json"))[..] else { panic!() };
    assert_eq!((fio.label.as_str(), number(fio, "read_mib_s")), ("seq-read8", 50.0));
    assert_eq!(number(fio, "read_latency_p99_us"), 4000.0);
    assert!(fio.figure("write").is_none());
}

#[test]
fn what_is_no_report_is_refused() {
    for text in ["", "hello", "1 2 3\n", "{}", "a,b\n1,2\n", "\"x\"\n"] {
        assert!(detect(text).is_none(), "{text}");
        for form in FORMS {
            let message = form.read(text).unwrap_err().to_string();
            assert!(message.contains(form.name), "{message}");
        }
    }
    assert!(form("bonnie++").is_some() && form("bonnie").is_none());
    let broken = seed("bonnie.csv").replace("72233", "fast");
    let message = detect(&broken).unwrap().read(&broken).unwrap_err().to_string();
    assert_eq!(message, "line 1 does not have the format of bonnie++: \"fast\" is not a number");
}

#[test]
fn no_report_panics() {
    let corpus = fuzz::seeds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parse/seeds"));
    assert!(corpus.len() >= 10, "{} seeds", corpus.len());
    let mut turn = 0;
    let inputs = fuzz::run(fuzz::budget(), &corpus, |input| {
        turn += 1;
        let text = String::from_utf8_lossy(input);
        for form in detect(&text).into_iter().chain([&FORMS[turn % FORMS.len()]]) {
            for report in form.read(&text).unwrap_or_default() {
                for figure in &report.figures {
                    assert!(figure.as_number().is_none_or(|n| n.is_finite() && n >= 0.0));
                }
                assert!(report.json().is_object());
            }
        }
    });
    assert!(inputs > corpus.len() as u64);
}
