//! Checks the published tables with one seed each; FOREREAD_REPRODUCE=all includes the long ones.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use foreread_reproduce::{EXPERIMENTS, Effort, Reproduction, Streams, named};
use model::Spec;
use sim::{Costs, FileSystem};
use units::{Bytes, Kib, Nanos};

fn reproduction(name: &str) -> Reproduction {
    named(name).unwrap().run(Effort { seeds: 1 }).unwrap()
}

fn assert_holds(name: &str) {
    let table = reproduction(name);
    let broken: Vec<_> = table.lines.iter().filter(|line| line.required && !line.holds).collect();
    assert!(broken.is_empty(), "{name}: {broken:?}");
}

#[test]
fn the_quick_tables_hold() {
    let quick = ["blocks-1-2002", "blocks-4-2002", "mirror-2010", "md-2012", "ext3-front-2008"];
    quick.into_iter().for_each(assert_holds);
}

#[test]
fn every_table_holds() {
    if std::env::var("FOREREAD_REPRODUCE").as_deref() != Ok("all") {
        return println!("SKIP every_table_holds: FOREREAD_REPRODUCE is not `all`");
    }
    EXPERIMENTS.iter().for_each(|experiment| assert_holds(experiment.name));
}

#[test]
fn what_is_far_off_is_marked() {
    let table = reproduction("sas-2008");
    for cell in &table.columns[0].cells {
        assert_eq!(cell.unexplained.is_some(), cell.error_percent.abs() > 20.0, "{cell:?}");
    }
}

#[test]
fn the_same_seeds_give_the_same_figures() {
    let figures = || serde_json::to_string(&reproduction("md-2012")).unwrap();
    assert_eq!(figures(), figures());
}

/// Returns the throughput of readers of a device, such as the array of 2008, in MB/s.
fn mb_s(words: &str, readers: u32, kib: u64) -> f64 {
    let streams = Streams {
        model: Spec::parse(words).unwrap(),
        policy: "linux-on-demand,since=2.6.23".to_owned(),
        read_ahead: Kib::new(kib),
        readers,
        block: Bytes::from_kib(8),
        file_size: Bytes::from_gib(8),
        first: Bytes::from_kib(32),
        filesystem: FileSystem::PLAIN,
        costs: Costs { call_ns: 0.0, copy_ns: 1.37, submit_ns: 0.26, fault_ns: 0.0 },
        warm_up: Nanos::from_millis(500),
        span: Nanos::from_secs(1),
    };
    streams.mb_s(1).unwrap()
}

#[test]
fn other_ways_to_read_a_mirror_do_not_fit_the_array_of_2008() {
    let primary = "raid10-2008,read_policy=primary";
    assert!(mb_s(primary, 8, 1024) < 0.85 * mb_s("raid10-2008", 8, 1024));
    let (primary, fitted) = (mb_s(primary, 1, 768), mb_s("raid10-2008", 1, 768));
    assert!(primary < 0.6 * fitted, "{primary} of {fitted}");
}

#[test]
fn one_disk_of_2008_hardly_cares() {
    let rates: Vec<f64> = (5..15).map(|power| mb_s("hdd-2008", 1, 1 << power)).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    assert!(most < 2.0 * least, "{rates:?}");
    assert!((100.0..108.0).contains(&most), "{rates:?}");
}
