//! Directories whose files of some MiB are read one after another.

mod touches;

use sim::{SimOpenFile, SimOutcome};
use touches::touch;
use workload::AccessMethod;

const FILES: u32 = 100;
const FILE_PAGES: u64 = 512;
const ALL: u64 = FILES as u64 * FILE_PAGES;

/// Touches so many pages without and with `auto`; `place` returns the file and the page of each
/// touch.
fn without_and_with_auto(
    model: &str,
    method: AccessMethod,
    touches: u64,
    place: impl Fn(u64) -> (u32, u64),
) -> [SimOutcome; 2] {
    ["linux-6.18", "auto"].map(|policy| {
        let open = |file| SimOpenFile::new(file, method);
        touch(policy, model, &[FILE_PAGES; FILES as usize], open, (0..touches).map(&place))
    })
}

/// Returns how many times as fast the second one is.
fn gain([linux, auto]: &[SimOutcome; 2]) -> f64 {
    linux.elapsed.as_secs_f64() / auto.elapsed.as_secs_f64()
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
    let both = without_and_with_auto("hdd-2008", AccessMethod::Mmap, ALL, backward);
    let (gain, [linux, auto]) = (gain(&both), &both);
    assert!(gain > 3.0, "{gain}: {:?}", auto.policy_stats.decisions);
    assert!(auto.device.bytes <= linux.device.bytes, "{:?}", auto.device);
}

#[test]
fn files_that_are_read_forward_at_the_rate_of_a_disk_are_left_alone() {
    let both = without_and_with_auto("hdd-2008", AccessMethod::Read, ALL, forward);
    let (gain, [_, auto]) = (gain(&both), &both);
    assert!(gain > 0.98, "{gain}: {:?}", auto.policy_stats.decisions);
    let decisions = auto.policy_stats.decisions.iter();
    assert_eq!(decisions.filter(|(_, text)| text.contains("files of its directory")).count(), 0);
}

#[test]
fn files_that_are_read_forward_from_flash_come_faster() {
    let both = without_and_with_auto("ssd-sata", AccessMethod::Read, ALL, forward);
    assert!(gain(&both) > 1.1, "{}: {:?}", gain(&both), both[1].policy_stats.decisions);
}

#[test]
fn of_files_that_are_read_in_part_the_same_part_is_prefetched() {
    let heads = |number: u64| ((number / 20) as u32, number % 20);
    let both = without_and_with_auto("hdd-2008", AccessMethod::Read, 20 * u64::from(FILES), heads);
    let (gain, [linux, auto]) = (gain(&both), &both);
    assert!(gain > 0.98, "{gain}: {:?}", auto.policy_stats.decisions);
    let most = 1.2 * linux.device.bytes.get() as f64;
    assert!(most > auto.device.bytes.get() as f64, "{:?}, {:?}", linux.device, auto.device);
}
