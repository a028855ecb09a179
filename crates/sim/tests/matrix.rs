//! A few cells of the matrix: the controller must not get worse. Time is simulated, so that what
//! is demanded here holds on any machine.

#[path = "../examples/matrix/scenes.rs"]
mod scenes;
#[path = "../examples/matrix/works.rs"]
mod works;

use foreread_sim::{Machine, Outcome};
use model::Spec;
use units::{Bytes, Kib, Nanos};

fn cell(device: &str, work: &str, policy: &str, window: u64) -> (f64, Outcome) {
    let works = works::works();
    let work = works.iter().find(|one| one.name == work).expect("a workload of the matrix");
    let machine = Machine {
        policy: policy.to_owned(),
        read_ahead: Kib::new(window),
        cache: Bytes::from_gib(1),
        seed: 1,
        ..Machine::new(Spec::parse(device).expect("a model"))
    };
    let outcome = work.run(&machine, Bytes::from_gib(4), Nanos::from_secs(5));
    let rate = |bytes: Bytes| bytes.as_mib() / outcome.elapsed.as_secs_f64();
    let classes = (rate(outcome.stream.useful), rate(outcome.random.useful));
    let rate = if work.apart { (classes.0 * classes.1).sqrt() } else { rate(outcome.useful()) };
    (rate, outcome)
}

/// How many times what a static window gives `auto` gives, which starts at 128 KiB, and the bytes
/// that it has read for each that was wanted. What they had not come to at the end does not count.
fn gain(device: &str, work: &str, window: u64) -> (f64, f64) {
    let fixed = cell(device, work, "linux-6.18", window).0;
    let (rate, outcome) = cell(device, work, "auto", 128);
    (rate / fixed, outcome.amplification_unprimed().expect("something was read"))
}

fn at_least(least: f64, most_read: f64, device: &str, work: &str, window: u64) {
    let (gain, read) = gain(device, work, window);
    assert!(gain >= least, "{work} on {device}: {gain:.2} times as fast as with {window} KiB");
    assert!(read <= most_read, "{work} on {device}: read {read:.2} times what was wanted");
}

#[test]
fn streams_that_compete_are_helped() {
    at_least(2.5, 1.3, "raid10-2008", "w6 8 streams", 128);
    at_least(2.0, 1.4, "hdd-2008", "w6 8 streams, one fd", 128);
}

#[test]
fn files_that_are_opened_later_are_helped() {
    at_least(1.5, 1.1, "raid10-2008", "w1 files of 4M", 128);
}

#[test]
fn the_next_of_many_small_files_are_read_before_they_are_opened() {
    at_least(3.0, 1.1, "raid10-2008", "w11 files of 4K", 128);
    at_least(3.0, 1.1, "cloud-hdd", "w11 files of 64K by 4K", 128);
    at_least(0.95, 1.1, "hdd-2008", "w11 files of 256K by 128K", 128);
}

#[test]
fn what_the_kernel_does_not_foresee_is_read_ahead() {
    at_least(4.0, 1.1, "hdd-2008", "w5 backward 64K", 128);
    at_least(1.5, 1.1, "raid10-2008", "w4 64K of each 256K", 128);
    at_least(1.5, 1.1, "raid10-2008", "w4 4K of each 8K", 128);
    at_least(5.0, 2.4, "cloud-hdd", "w4 4K of each 8K", 128);
}

#[test]
fn short_runs_are_read_whole_and_no_more() {
    at_least(1.3, 1.2, "ssd-sata", "w10 seek and read 64K", 128);
    // The first runs, by which their length is learnt, are read as before.
    at_least(1.0, 1.4, "hdd-2008", "w10 seek and read 16K", 128);
}

#[test]
fn a_database_is_cached_sooner() {
    at_least(4.0, 1.1, "hdd-2008", "pg selects from cold", 128);
}

#[test]
fn mappings_that_are_read_at_random_get_small_windows() {
    at_least(5.0, 1.3, "ssd-sata", "w3 random mmap", 128);
}

#[test]
fn sixty_four_streams_in_little_memory_fare_as_with_the_best_window() {
    at_least(0.93, 1.2, "hdd-2008", "w8 64 streams in 64M", 512);
}

#[test]
fn nobody_is_harmed() {
    at_least(0.95, 1.1, "hdd-2008", "w3 random pread", 128);
    at_least(0.95, 1.1, "hdd-2008", "mix streams and mmap", 128);
    at_least(0.95, 1.25, "raid10-2008", "w7 50 % random, one fd", 128);
}
