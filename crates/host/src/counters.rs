//! Block layer counters.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, Nanos, SECTOR_BYTES};

use crate::block::block_dir;
use crate::{DevNo, HostError, Root};

/// Counters of a block device since it appeared, or the difference between two readings
/// (Documentation/block/stat.rst). The kernel counts times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStat {
    pub reads: u64,
    /// Reads that were merged into another one.
    pub read_merges: u64,
    pub read_bytes: Bytes,
    /// Total duration of the reads.
    pub read_time: Nanos,
    pub writes: u64,
    /// Writes that were merged into another one.
    pub write_merges: u64,
    pub write_bytes: Bytes,
    /// Total duration of the writes.
    pub write_time: Nanos,
    /// Requests in flight at the (later) reading. This is not a difference.
    pub in_flight: u64,
    /// Time with at least one request in flight.
    pub busy: Nanos,
    /// Requests in flight, integrated over time. Divided by the elapsed time: the mean queue depth.
    pub queue_time: Nanos,
    pub discards: u64,
    pub flushes: u64,
}

impl BlockStat {
    /// Returns the mean size of a read request, or 0 without requests.
    pub fn mean_read(&self) -> Bytes {
        Bytes::new(self.read_bytes.get().checked_div(self.reads).unwrap_or(0))
    }

    /// Returns the mean number of requests in flight over `elapsed`.
    pub fn mean_queue(&self, elapsed: Nanos) -> f64 {
        if elapsed == Nanos::ZERO {
            0.0
        } else {
            self.queue_time.as_secs_f64() / elapsed.as_secs_f64()
        }
    }
}

/// The error for a text that is not a `stat` file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not block device statistics: expected at least 11 numbers")]
pub struct ParseStatError {
    text: String,
}

/// Parses `/sys/block/<name>/stat`: 11 numbers, 15 with discards, 17 with flushes (Linux 5.5).
impl FromStr for BlockStat {
    type Err = ParseStatError;

    fn from_str(text: &str) -> Result<Self, ParseStatError> {
        let numbers: Option<Vec<u64>> =
            text.split_whitespace().map(|number| number.parse().ok()).collect();
        let numbers = numbers
            .filter(|numbers| numbers.len() >= 11)
            .ok_or_else(|| ParseStatError { text: text.to_owned() })?;
        let count = |at: usize| numbers.get(at).copied().unwrap_or(0);
        let data = |at: usize| Bytes::new(count(at).saturating_mul(SECTOR_BYTES));
        let time = |at: usize| Nanos::new(count(at).saturating_mul(1_000_000));
        Ok(Self {
            reads: count(0),
            read_merges: count(1),
            read_bytes: data(2),
            read_time: time(3),
            writes: count(4),
            write_merges: count(5),
            write_bytes: data(6),
            write_time: time(7),
            in_flight: count(8),
            busy: time(9),
            queue_time: time(10),
            discards: count(11),
            flushes: count(15),
        })
    }
}

impl BlockStat {
    /// Combines two readings field by field.
    fn zip(self, other: Self, counts: fn(u64, u64) -> u64, in_flight: fn(u64, u64) -> u64) -> Self {
        let data = |a: Bytes, b: Bytes| Bytes::new(counts(a.get(), b.get()));
        let time = |a: Nanos, b: Nanos| Nanos::new(counts(a.get(), b.get()));
        Self {
            reads: counts(self.reads, other.reads),
            read_merges: counts(self.read_merges, other.read_merges),
            read_bytes: data(self.read_bytes, other.read_bytes),
            read_time: time(self.read_time, other.read_time),
            writes: counts(self.writes, other.writes),
            write_merges: counts(self.write_merges, other.write_merges),
            write_bytes: data(self.write_bytes, other.write_bytes),
            write_time: time(self.write_time, other.write_time),
            in_flight: in_flight(self.in_flight, other.in_flight),
            busy: time(self.busy, other.busy),
            queue_time: time(self.queue_time, other.queue_time),
            discards: counts(self.discards, other.discards),
            flushes: counts(self.flushes, other.flushes),
        }
    }
}

/// The difference between two readings. If the device reappeared, its counters restarted: the
/// difference is then 0, never negative.
impl Sub for BlockStat {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub, |now, _| now)
    }
}

/// The sum of the counters of two devices.
impl Add for BlockStat {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add, u64::saturating_add)
    }
}

impl Sum for BlockStat {
    fn sum<I: Iterator<Item = Self>>(stats: I) -> Self {
        stats.fold(Self::default(), Self::add)
    }
}

/// Reads the counters of one device. A partition has its own counters.
pub fn block_stat(root: &Root, device: DevNo) -> Result<BlockStat, HostError> {
    let path = format!("/sys/dev/block/{device}/stat");
    let text = root.read(&path).map_err(|error| block_dir(root, device).err().unwrap_or(error))?;
    text.parse().map_err(|problem: ParseStatError| HostError::Malformed {
        path: root.path(&path),
        problem: problem.to_string(),
    })
}

/// Reads the counters of all block devices and partitions at once from `/proc/diskstats`, with
/// their numbers and names. Invalid lines are skipped.
///
/// # Errors
///
/// If `/proc/diskstats` cannot be read.
pub fn block_stats(root: &Root) -> Result<Vec<(DevNo, String, BlockStat)>, HostError> {
    let text = root.read("/proc/diskstats")?;
    Ok(text.lines().filter_map(disk_line).collect())
}

fn disk_line(line: &str) -> Option<(DevNo, String, BlockStat)> {
    let mut fields = line.split_whitespace();
    let mut number = || fields.next()?.parse().ok();
    let device = DevNo { major: number()?, minor: number()? };
    let name = fields.next()?;
    let stat = line.split_once(&format!(" {name} "))?.1.parse().ok()?;
    Some((device, name.to_owned(), stat))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_field_has_its_place() {
        let stat: BlockStat =
            " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17".parse().expect("a whole line");
        assert_eq!((stat.reads, stat.read_merges, stat.writes, stat.write_merges), (1, 2, 5, 6));
        assert_eq!(stat.read_bytes, Bytes::new(3 * 512));
        assert_eq!(stat.write_bytes, Bytes::new(7 * 512));
        assert_eq!(stat.read_time, Nanos::from_millis(4));
        assert_eq!(stat.write_time, Nanos::from_millis(8));
        assert_eq!((stat.in_flight, stat.discards, stat.flushes), (9, 12, 16));
        assert_eq!(stat.busy, Nanos::from_millis(10));
        assert_eq!(stat.queue_time, Nanos::from_millis(11));
    }

    #[test]
    fn a_line_of_diskstats_has_number_name_and_counters() {
        let line = " 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        let (device, name, stat) = disk_line(line).expect("a line");
        assert_eq!((device, name.as_str()), (DevNo { major: 259, minor: 0 }, "nvme0n1"));
        assert_eq!((stat.reads, stat.flushes), (1, 16));
        for line in ["", "259", "259 0", "259 0 sda", "259 x sda 1 2 3 4 5 6 7 8 9 10 11"] {
            assert!(disk_line(line).is_none(), "{line}");
        }
    }

    #[test]
    fn old_kernels_have_eleven_fields() {
        let stat: BlockStat = "1 2 3 4 5 6 7 8 9 10 11".parse().expect("a short line");
        assert_eq!((stat.discards, stat.flushes), (0, 0));
        assert!("1 2 3".parse::<BlockStat>().is_err());
        assert!("1 2 3 4 5 6 7 8 9 10 x".parse::<BlockStat>().is_err());
        assert!("1 2 3 4 5 6 7 8 9 10 -1".parse::<BlockStat>().is_err());
    }

    #[test]
    fn a_difference_is_of_counts_but_not_of_requests_under_way() {
        let early: BlockStat = "10 0 80 5 0 0 0 0 7 5 5".parse().expect("early");
        let late: BlockStat = "14 0 208 9 0 0 0 0 3 8 9".parse().expect("late");
        let delta = late - early;
        assert_eq!((delta.reads, delta.in_flight), (4, 3));
        assert_eq!(delta.mean_read(), Bytes::new(128 * 512 / 4));
        assert_eq!(delta.mean_queue(Nanos::from_millis(8)), 0.5);
        assert_eq!((early - late).reads, 0);
        assert_eq!((early + late).in_flight, 10);
        assert_eq!(BlockStat::default().mean_read(), Bytes::ZERO);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            let _ = text.parse::<BlockStat>();
        }

        #[test]
        fn any_numbers_are_read_without_panic(
            numbers in prop::collection::vec(any::<u64>(), 0..20)
        ) {
            let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let stat = words.join(" ").parse::<BlockStat>();
            prop_assert_eq!(stat.is_ok(), numbers.len() >= 11);
            if let Ok(stat) = stat {
                prop_assert_eq!((stat - stat).reads, 0);
                let _ = stat + stat;
            }
        }
    }
}
