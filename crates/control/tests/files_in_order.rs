//! Directories whose files of some MiB are read one after another.

use foreread_control::POLICIES;
use model::Spec;
use sim::{
    Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Layout};

const FILES: u32 = 100;
const FILE_PAGES: u64 = 512;
const ALL: u64 = FILES as u64 * FILE_PAGES;

/// One reader touches so many pages, one after another; `place` returns the file and the page of
/// each touch.
fn read(
    policy: &str,
    method: AccessMethod,
    touches: u64,
    place: impl Fn(u64) -> (u32, u64),
) -> SimOutcome {
    let touch = |number: u64| {
        let (open, page) = place(number);
        ReadStep {
            open,
            offset: Bytes::new(page * 4096),
            length: Bytes::new(4096),
            class: AccessClass::Stream,
            start: Start::After(Nanos::ZERO),
            advice: None,
        }
    };
    let policy = POLICIES.parse(policy).expect("a policy");
    let model = Spec::parse("hdd-2008").expect("a model");
    let machine = SimMachine { policy, seed: 3, ..SimMachine::new(model) };
    let sizes = [Bytes::new(FILE_PAGES * 4096); FILES as usize];
    let steps: Vec<ReadStep> = (0..touches).map(touch).collect();
    let scenario = Scenario {
        files: lay_out(&sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO),
        opens: (0..FILES).map(|file| SimOpenFile::new(file, method)).collect(),
        readers: vec![Reader { steps: steps.into_iter() }],
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
}

fn forward(number: u64) -> (u32, u64) {
    ((number / FILE_PAGES) as u32, number % FILE_PAGES)
}

/// From the end of the last file to the start of the first.
fn backward(number: u64) -> (u32, u64) {
    let (file, page) = forward(number);
    (FILES - 1 - file, FILE_PAGES - 1 - page)
}

#[test]
fn the_next_files_are_prefetched_where_files_are_mapped_and_read_backward() {
    let [linux, auto] =
        ["linux-6.18", "auto"].map(|policy| read(policy, AccessMethod::Mmap, ALL, backward));
    let gain = linux.elapsed.as_secs_f64() / auto.elapsed.as_secs_f64();
    assert!(gain > 3.0, "{gain}: {:?}", auto.policy_stats.decisions);
    assert!(auto.device.bytes <= linux.device.bytes, "{:?}", auto.device);
}

#[test]
fn nothing_is_lost_where_files_are_read_forward() {
    let [linux, auto] =
        ["linux-6.18", "auto"].map(|policy| read(policy, AccessMethod::Read, ALL, forward));
    let gain = linux.elapsed.as_secs_f64() / auto.elapsed.as_secs_f64();
    assert!(gain > 0.98, "{gain}: {:?}", auto.policy_stats.decisions);
    let decisions = auto.policy_stats.decisions.iter();
    assert!(decisions.filter(|(_, text)| text.contains("files of its directory")).count() > 0);
}

#[test]
fn of_files_that_are_read_in_part_the_same_part_is_prefetched() {
    let heads = |number: u64| ((number / 20) as u32, number % 20);
    let touches = 20 * u64::from(FILES);
    let [linux, auto] =
        ["linux-6.18", "auto"].map(|policy| read(policy, AccessMethod::Read, touches, heads));
    let gain = linux.elapsed.as_secs_f64() / auto.elapsed.as_secs_f64();
    assert!(gain > 0.98, "{gain}: {:?}", auto.policy_stats.decisions);
    let most = 1.2 * linux.device.bytes.get() as f64;
    assert!(most > auto.device.bytes.get() as f64, "{:?}, {:?}", linux.device, auto.device);
}
