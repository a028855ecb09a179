//! Presets against published measurements.
//!
//! The tables are those of 2002, 2008 and 2010 that the presets are named after, in decimal
//! megabytes a second (fio of 2008 printed these as MiB). Tolerances say what the models reach,
//! not what one would like; the published figures repeat within about 2 %.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod closed_loop;

use closed_loop::{Job, Window, mean, random_reads};
use foreread_model::Spec;
use foreread_model::layout::FileLayout;
use units::Nanos;

/// PERC 6, RAID 10 of twelve disks, XFS on the first tenth (S. Carey, 2008): read-ahead in
/// sectors, eight readers, one reader.
const XFS_2008: [(u64, f64, f64); 21] = [
    (8, 36.0, 55.0),
    (64, 60.0, 171.0),
    (256, 88.0, 303.0),
    (512, 119.0, 354.0),
    (768, 148.0, 456.0),
    (896, 167.0, 523.0),
    (1024, 182.0, 605.0),
    (1280, 207.0, 542.0),
    (1536, 230.0, 445.0),
    (2048, 259.0, 383.0),
    (3072, 329.0, 338.0),
    (4096, 357.0, 281.0),
    (6144, 412.0, 415.0),
    (8192, 437.0, 394.0),
    (12288, 505.0, 480.0),
    (16384, 560.0, 518.0),
    (24576, 595.0, 548.0),
    (32768, 602.0, 565.0),
    (49152, 621.0, 595.0),
    (65536, 636.0, 609.0),
    (98304, 651.0, 640.0),
];

const SEEDS: u64 = 3;

/// The host of 2008: 1.37 ns to copy a byte and 0.26 ns to ask for it.
fn host_2008(readers: usize, sectors: u64) -> Job {
    // Large windows take turns of many megabytes: a short span would see half a turn.
    let large = sectors >= if readers > 1 { 12288 } else { 49152 };
    Job {
        readers,
        window: Window::Pairs(sectors * 512),
        layout: FileLayout::Contiguous,
        first_byte: 0,
        file_size: if readers == 1 { 64 << 30 } else { 8 << 30 },
        copy_ns: 1.37,
        submit_ns: 0.26,
        warm_up: Nanos::from_millis(if large { 2500 } else { 700 }),
        span: Nanos::from_secs(if large { 6 } else { 2 }),
    }
}

fn curve(spec: &Spec, readers: usize) -> Vec<f64> {
    XFS_2008.iter().map(|row| mean(spec, &host_2008(readers, row.0), SEEDS)).collect()
}

fn at(spec: &Spec, readers: usize, kib: u64) -> f64 {
    mean(spec, &host_2008(readers, 2 * kib), SEEDS)
}

/// The mean of |ln(model / published)|; prints the table on the way.
fn error(model: &[f64], published: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    for ((row, model), published) in XFS_2008.iter().zip(model).zip(published) {
        let part = (model / published).ln();
        println!("{:6} {published:5} {model:6.0} {:+4.0} %", row.0, 100.0 * part.exp_m1());
        sum += part.abs();
    }
    let mean = sum / model.len() as f64;
    println!("mean error {:.1} %", 100.0 * mean);
    mean
}

#[test]
fn eight_readers_on_the_array_of_2008() {
    let spec = Spec::preset("raid10-2008").unwrap();
    let model = curve(&spec, 8);
    let error = error(&model, XFS_2008.iter().map(|row| row.1));
    assert!(error < 0.12, "{error}");
    let (first, mib8, mib32) = (model[0], model[15], model[19]);
    assert!(mib8 > 10.0 * first, "4 KiB: {first}, 8 MiB: {mib8}");
    assert!(mib32 > 1.1 * mib8, "8 MiB: {mib8}, 32 MiB: {mib32}");
}

#[test]
fn one_reader_on_the_array_of_2008() {
    let spec = Spec::preset("raid10-2008").unwrap();
    let model = curve(&spec, 1);
    let error = error(&model, XFS_2008.iter().map(|row| row.2));
    assert!(error < 0.18, "{error}");
    // The published curve has a peak at 512 KiB and its minimum at 2 MiB, then climbs back.
    let dip = model[7..15].iter().copied().fold(f64::MAX, f64::min);
    assert!(dip < 0.6 * model[6], "no dip: {dip} after {}", model[6]);
    assert!(model[20] > 1.5 * dip, "no way out of the dip");
}

#[test]
fn the_dip_needs_drives_that_stop_reading_ahead() {
    let always = Spec::parse("raid10-2008,read_ahead_when_queued=true").unwrap();
    let spec = Spec::preset("raid10-2008").unwrap();
    let (with, without) = (at(&spec, 1, 1536), at(&always, 1, 1536));
    assert!(without > 1.4 * with, "{with} {without}");
    assert!(without > 0.85 * at(&always, 1, 512), "a dip all the same: {without}");
}

#[test]
fn other_ways_to_read_a_mirror_do_not_fit_the_array_of_2008() {
    let fitted = Spec::preset("raid10-2008").unwrap();
    let primary = Spec::parse("raid10-2008,read_policy=primary").unwrap();
    // Half the arms: eight readers lose, and one reader's dip is much too deep.
    assert!(at(&primary, 8, 1024) < 0.85 * at(&fitted, 8, 1024));
    assert!(at(&primary, 1, 768) < 0.5 * at(&fitted, 1, 768));
}

#[test]
fn indirect_blocks_cost_ext3_its_share() {
    let spec = Spec::preset("raid10-2008").unwrap();
    let extents = host_2008(8, 49152);
    let ext3 = Job { layout: FileLayout::Ext3, ..extents.clone() };
    let (xfs, ext3) = (mean(&spec, &extents, SEEDS), mean(&spec, &ext3, SEEDS));
    // Published: 363 of 621 MB/s.
    println!("xfs {xfs:.0} ext3 {ext3:.0}");
    assert!((0.45..0.8).contains(&(ext3 / xfs)), "{ext3} of {xfs}");
}

#[test]
fn one_disk_of_2008_hardly_cares() {
    let spec = Spec::preset("hdd-2008").unwrap();
    let rates: Vec<f64> = (5..16).map(|power| at(&spec, 1, 1 << power)).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    assert!(most < 2.0 * least, "{rates:?}");
    assert!((100.0..108.0).contains(&most), "{rates:?}");
}

fn mirror(words: &str) -> [f64; 3] {
    let spec = Spec::parse(words).unwrap();
    [512, 2048, 4096].map(|kib| {
        let window = Window::Sliding(kib << 10);
        let (copy_ns, submit_ns) = (1.1, 0.1);
        let span = Nanos::from_secs(4);
        mean(&spec, &Job { window, copy_ns, submit_ns, span, ..host_2008(1, 8) }, SEEDS)
    })
}

#[test]
fn the_mirror_of_2010() {
    let model = mirror("mirror-2010");
    println!("{model:.1?}");
    for (model, published) in model.iter().zip([82.3, 143.5, 145.0]) {
        assert!((model / published - 1.0).abs() < 0.10, "{model} for {published}");
    }
}

#[test]
fn only_the_load_rule_gives_the_mirror_its_gain() {
    for policy in ["shortest-queue", "round-robin", "md"] {
        let model = mirror(&format!("mirror-2010,read_policy={policy}"));
        println!("{policy} {model:.1?}");
        assert!(model[1] < 100.0, "{policy}: {model:?}");
    }
}

#[test]
fn random_reads_of_2002() {
    let spec = Spec::preset("hdd-15k-2000").unwrap();
    let published =
        [(1, [310.4, 261.6, 199.0, 132.3, 66.04]), (4, [440.0, 400.8, 346.1, 259.5, 112.8])];
    for (processes, published) in published {
        let model = [1, 2, 4, 8, 16]
            .map(|blocks| random_reads(&spec, processes, blocks * 8192, 2_000_000_000, 1));
        println!("{processes}: {model:.1?}");
        for (model, published) in model.iter().zip(published) {
            assert!((model / published - 1.0).abs() < 0.15, "{model} for {published}");
        }
        let [one, two, .., sixteen] = model;
        assert!(one / two < 1.35 && one / sixteen < 5.0, "{model:?}");
    }
}
