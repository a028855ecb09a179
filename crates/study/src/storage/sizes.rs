//! Chooses the sizes of the files that workloads read.
//!
//! A trial ends when a reader has read all its data. So the files should hold the data that the
//! fastest setting reads in a trial, and several windows of the largest setting; otherwise the last
//! window would dominate the result. Limits are the time to write the files, the space on the disk
//! and, for a virtual disk with its content in memory, the memory.
//!
//! Each random read of a mapped file brings a whole window into the cache, so a few hundred may
//! cache the file. Further reads are then hits, and the cost of a large window looks like a gain.
//! [`bounded`] ends such a trial earlier, for files of any size.

use std::borrow::Cow;

use units::{Bytes, BytesPerSecond, Nanos};
use workload::{AccessMethod, Pattern, Workload};

use crate::plan::Plan;

/// Total size of a workload's files if the throughput of the storage is unknown.
const DEFAULT_TOTAL_SIZE: Bytes = Bytes::from_gib(2);
/// Maximum total size of a workload's files, so that writing takes no longer than measuring.
const MAX_TOTAL_SIZE: Bytes = Bytes::from_gib(4);
/// Minimum file size; a smaller file is read before the window has grown.
const MIN_FILE_SIZE: Bytes = Bytes::from_mib(16);
/// Minimum number of the largest windows per file.
const MIN_WINDOWS_PER_FILE: u64 = 4;
/// Number of windows per file for random reads, if files need not be written.
const RANDOM_WINDOWS_PER_FILE: u64 = 32;
/// Random reads may cache at most 1/8 of their file. On average half of that is cached when a read
/// occurs, so hits distort the throughput by at most 1/16.
const MAX_CACHED_PART: u64 = 8;
/// Minimum random reads of each reader.
const MIN_REQUESTS: u64 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Maximum total size of all files; `None` for existing data.
    pub(super) most: Option<Bytes>,
    /// The maximum throughput of the storage; `None` if no model states it.
    pub(super) peak: Option<BytesPerSecond>,
    pub(super) trial: Nanos,
    pub(super) window: Bytes,
    /// True if the files need not be written, as in a simulation.
    pub(super) unwritten: bool,
}

/// Returns the plan's workloads, each with the size of its files.
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

/// Returns the maximum size for a workload that states its own: as stated if real storage has the
/// space, but limited by memory on a virtual disk.
fn most_of(workload: &Workload, workloads: u64, room: &Room) -> Bytes {
    match (room.peak, room.most) {
        (None, Some(most)) => {
            let files = u64::from(workload.files()).max(1);
            Bytes::new(most.get() / workloads.max(1) / files)
        }
        _ => size(workload, workloads, room),
    }
}

/// Returns notes on files that are smaller than stated.
pub(super) fn shrunk(plan: &Plan, sized: &[Workload]) -> Vec<String> {
    let shrinkable = plan.workloads.iter().zip(sized).filter(|(planned, _)| planned.shrinks);
    let notes = shrinkable.filter_map(|(planned, sized)| {
        let largest = |workload: &Workload| {
            workload.data_files(Bytes::ZERO.max(workload.block)).into_iter().max()
        };
        // Without a limit, the files have their stated size.
        let free = Workload { file_size: None, ..planned.workload.clone() };
        let said = match planned.workload.outside {
            Some(_) => largest(&Workload { file_size: Some(Bytes::new(u64::MAX)), ..free })?,
            None => planned.workload.file_size?,
        };
        let now = largest(sized)?;
        let name = &sized.name;
        (said > now && said.get() < u64::MAX).then(|| {
            format!(
                "{name}: its files are {now} here instead of {said}: --size sets a size up to the \
                 free space"
            )
        })
    });
    notes.collect()
}

fn size(workload: &Workload, workloads: u64, room: &Room) -> Bytes {
    let files = u64::from(workload.files()).max(1);
    // 25 % more than the peak can read: no setting or zone is faster.
    let wanted = match room.peak {
        Some(peak) => Bytes::new((peak.get() * room.trial.as_secs_f64() * 1.25) as u64),
        None => DEFAULT_TOTAL_SIZE,
    };
    let share = Bytes::new(room.most.unwrap_or(MAX_TOTAL_SIZE).get() / workloads.max(1));
    let windows = room.window * files;
    let total = if room.unwritten && workload.pattern == Pattern::Uniform {
        // [`bounded`] prevents random reads from using up the files, on storage of any speed.
        windows * RANDOM_WINDOWS_PER_FILE
    } else {
        wanted.max(windows * MIN_WINDOWS_PER_FILE).min(MAX_TOTAL_SIZE)
    };
    let total = total.min(share);
    let mib = Bytes::from_mib(1).get();
    Bytes::new(total.get() / files / mib * mib).max(MIN_FILE_SIZE).max(workload.block)
}

/// Limits the workload to as many random reads as do not cache its `data` under this window, unless
/// the workload states its own number.
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
