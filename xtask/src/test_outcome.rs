//! The results of tests.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;

/// A step that leaves less free space than this has probably run out of it: programs remove files
/// that they could not write completely.
const SCARCE_ROOM_MIB: u64 = 2048;

/// The results of one or several steps.
#[derive(Debug, Default)]
pub struct TestOutcome {
    pub passed: usize,
    /// Names of the failed tests, with the reason.
    pub failed: Vec<String>,
    /// Tests that could not run here, with the reason.
    pub skipped: Vec<String>,
    pub times: Vec<(String, Duration)>,
    pub scarce: Vec<String>,
}

impl TestOutcome {
    pub fn add(&mut self, other: TestOutcome) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
        self.times.extend(other.times);
        self.scarce.extend(other.scarce);
    }

    /// Records the end of a step. Failures due to a full disk rarely say so.
    pub fn took(&mut self, what: &str, started: Instant) {
        self.times.push((what.to_owned(), started.elapsed()));
        let places = [Path::new(".").to_owned(), std::env::temp_dir()];
        let mut rooms: Vec<_> =
            places.iter().filter_map(|at| Some((at, statvfs(at).ok()?))).collect();
        rooms.dedup_by_key(|(_, room)| room.f_fsid);
        for (place, room) in rooms {
            let free_mib = (room.f_bavail * room.f_frsize) >> 20;
            if free_mib < SCARCE_ROOM_MIB {
                self.scarce.push(format!("{free_mib} MiB in {} after {what}", place.display()));
            }
        }
    }

    /// Prints a summary; returns whether nothing failed.
    pub fn report(&self) -> bool {
        println!("\ntimes:");
        for (what, time) in &self.times {
            println!("  {:>5.0} s  {what}", time.as_secs_f64());
        }
        let scarce = ("little free space, which can fail tests", &self.scarce);
        for (title, lines) in [scarce, ("skipped", &self.skipped), ("failed", &self.failed)] {
            if !lines.is_empty() {
                println!("{title}:");
                lines.iter().for_each(|line| println!("  {line}"));
            }
        }
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        println!("{} passed, {failed} failed, {skipped} skipped", self.passed);
        self.failed.is_empty()
    }
}
