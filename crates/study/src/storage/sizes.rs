//! How large the files are that workloads read.
//!
//! A trial ends when a reader has used up its data, so the files should hold what the fastest
//! setting reads in a trial; and several windows of the largest setting, or the last window is
//! most of what is measured. Against that stand the time to write them, the room on the disk and,
//! for a virtual disk, whose content is in memory, the memory.
//!
//! Random reads of a mapped file bring a whole window into the cache each, so a few hundred of them
//! may cache the file: from then on they are hits, and the cost of a large window looks like a
//! gain. [`bounded`] ends such a trial before that, whatever the size of the file.

use std::borrow::Cow;

use units::{Bytes, BytesPerSecond, Nanos};
use workload::{AccessMethod, Pattern, Workload};

use crate::plan::Plan;

/// All files of a workload together, where nothing is known of the storage's speed.
const DEFAULT_TOTAL_SIZE: Bytes = Bytes::from_gib(2);
/// All files of a workload together, at most: writing them should not take longer than measuring.
const MAX_TOTAL_SIZE: Bytes = Bytes::from_gib(4);
/// The smallest file: less is gone before the window has grown.
const MIN_FILE_SIZE: Bytes = Bytes::from_mib(16);
/// Files hold this many of the largest windows.
const MIN_WINDOWS_PER_FILE: u64 = 4;
/// The same of files that are read at random, where nothing is written to lay them out.
const RANDOM_WINDOWS_PER_FILE: u64 = 32;
/// Random reads bring at most one part in so many of their file into the cache: on average half of
/// that is cached when one is made, so hits distort the throughput by one in sixteen at most.
const MAX_CACHED_PART: u64 = 8;
/// Each reader makes this many random reads at least, or there is nothing to measure.
const MIN_REQUESTS: u64 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The most that all files together may take; none for what is there already.
    pub(super) most: Option<Bytes>,
    /// The fastest that the storage can be, where a model says so.
    pub(super) peak: Option<BytesPerSecond>,
    pub(super) trial: Nanos,
    pub(super) window: Bytes,
    /// Whether nothing is written to lay them out, as in a simulation.
    pub(super) unwritten: bool,
}

/// The plan's workloads, each with the size of its files.
pub(super) fn with_file_sizes(plan: &Plan, room: &Room) -> Vec<Workload> {
    let count = plan.workloads.len() as u64;
    let sized = plan.workloads.iter().map(|planned| {
        let mut workload = planned.workload.clone();
        if planned.shrinks && room.most.is_some() {
            let most = plan.file_size.unwrap_or_else(|| most_of(&workload, count, room));
            let said = workload.file_size.filter(|said| *said < most);
            workload.file_size = Some(said.unwrap_or(most).max(workload.block));
            return workload;
        }
        let open = workload.file_size.is_none() && workload.replay.is_none();
        if room.most.is_some() && open {
            workload.file_size =
                Some(plan.file_size.unwrap_or_else(|| size(&workload, count, room)));
        }
        workload
    });
    sized.collect()
}

/// The largest files of a workload that says itself how large they are: as it says where there is
/// room on real storage, but what is written to a virtual disk is kept in memory.
fn most_of(workload: &Workload, workloads: u64, room: &Room) -> Bytes {
    match (room.peak, room.most) {
        (None, Some(most)) => {
            let files = u64::from(workload.files()).max(1);
            Bytes::new(most.get() / workloads.max(1) / files)
        }
        _ => size(workload, workloads, room),
    }
}

/// What is to be said of files that are smaller than their workloads say.
pub(super) fn shrunk(plan: &Plan, sized: &[Workload]) -> Vec<String> {
    let told = plan.workloads.iter().zip(sized).filter(|(planned, _)| planned.shrinks);
    let told = told.filter_map(|(planned, sized)| {
        let largest = |workload: &Workload| {
            workload.data_files(Bytes::ZERO.max(workload.block)).into_iter().max()
        };
        // Without a bound the files are as large as they are said to be.
        let free = Workload { file_size: None, ..planned.workload.clone() };
        let said = match planned.workload.outside {
            Some(_) => largest(&Workload { file_size: Some(Bytes::new(u64::MAX)), ..free })?,
            None => planned.workload.file_size?,
        };
        let now = largest(sized)?;
        let name = &sized.name;
        (said > now && said.get() < u64::MAX).then(|| {
            format!(
                "{name}: its files are {now} here, not {said}: --size has them as large as there \
                 is room for"
            )
        })
    });
    told.collect()
}

fn size(workload: &Workload, workloads: u64, room: &Room) -> Bytes {
    let files = u64::from(workload.files()).max(1);
    // A quarter more than the peak would read: no setting is faster, and zones are not either.
    let wanted = match room.peak {
        Some(peak) => Bytes::new((peak.get() * room.trial.as_secs_f64() * 1.25) as u64),
        None => DEFAULT_TOTAL_SIZE,
    };
    let share = Bytes::new(room.most.unwrap_or(MAX_TOTAL_SIZE).get() / workloads.max(1));
    let windows = room.window * files;
    let total = if room.unwritten && workload.pattern == Pattern::Uniform {
        // [`bounded`] sees to it that they are not used up, however fast the storage is.
        windows * RANDOM_WINDOWS_PER_FILE
    } else {
        wanted.max(windows * MIN_WINDOWS_PER_FILE).min(MAX_TOTAL_SIZE)
    };
    let total = total.min(share);
    let mib = Bytes::from_mib(1).get();
    Bytes::new(total.get() / files / mib * mib).max(MIN_FILE_SIZE).max(workload.block)
}

/// The workload with as many random reads as cannot cache its data, `data` in all its files, under
/// this window; unless it says itself how many it makes.
pub(super) fn bounded(workload: &Workload, window: Bytes, data: Bytes) -> Cow<'_, Workload> {
    if workload.pattern != Pattern::Uniform || workload.requests.is_some() {
        return Cow::Borrowed(workload);
    }
    let reach = match workload.access {
        AccessMethod::Read => workload.block,
        AccessMethod::Mmap => workload.block.max(window),
    };
    let each =
        data.get() / MAX_CACHED_PART / reach.get().max(1) / u64::from(workload.readers).max(1);
    let requests = Some(each.max(MIN_REQUESTS));
    Cow::Owned(Workload { requests, ..workload.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlannedWorkload;
    use crate::target::Target;

    fn plan(file_size: Option<Bytes>) -> Plan {
        let workloads = ["seq-1", "seq-8"].map(|name| Workload::named(name).unwrap());
        Plan {
            workloads: workloads.into_iter().map(PlannedWorkload::goal).collect(),
            file_size,
            ..Plan::new(Target::Path("/data".into()))
        }
    }

    fn room() -> Room {
        Room {
            most: Some(Bytes::from_gib(100)),
            peak: None,
            trial: Nanos::from_secs(2),
            window: Bytes::from_mib(64),
            unwritten: false,
        }
    }

    fn mib(plan: &Plan, room: &Room) -> Vec<u64> {
        let sized = with_file_sizes(plan, room);
        sized.iter().map(|w| w.file_size.unwrap().get() >> 20).collect()
    }

    #[test]
    fn files_of_unknown_storage_hold_2_gib() {
        assert_eq!(mib(&plan(None), &room()), [2048, 256]);
    }

    #[test]
    fn files_of_a_model_hold_what_it_can_read() {
        let room = Room { peak: BytesPerSecond::new(800e6), ..room() };
        // 800 MB/s × 2 s × 1.25 = 1907 MiB; eight files need four windows each.
        assert_eq!(mib(&plan(None), &room), [1907, 256]);
    }

    #[test]
    fn room_bounds_all_of_them_together() {
        let room = Room { most: Some(Bytes::from_gib(1)), ..room() };
        assert_eq!(mib(&plan(None), &room), [512, 64]);
        let room = Room { most: Some(Bytes::from_mib(8)), ..room };
        assert_eq!(mib(&plan(None), &room), [16, 16], "never too small to measure");
    }

    #[test]
    fn what_was_asked_for_is_taken() {
        assert_eq!(mib(&plan(Some(Bytes::from_mib(100))), &room()), [100, 100]);
        let there = Room { most: None, ..room() };
        assert!(with_file_sizes(&plan(None), &there).iter().all(|w| w.file_size.is_none()));
    }
}
