//! Counters of a virtual disk.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// Lateness of completions in real time (not the model's).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the requests were no later than this.
    pub p50: Nanos,
    /// All but one in a hundred were no later than this.
    pub p99: Nanos,
    pub max: Nanos,
}

/// Counters of a virtual disk since its start or their last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
// Records of earlier versions lack newer counters.
#[serde(default)]
pub struct DiskCounters {
    pub elapsed: Nanos,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    /// Bytes that the reads asked for.
    pub read_bytes: Bytes,
    /// Number of reads by size: up to 4 KiB, up to 8 KiB, and so on in powers of two; the last
    /// class has all larger ones.
    pub read_sizes: [u64; READ_SIZES],
    pub written_bytes: Bytes,
    /// Requests that the model has now.
    pub queue: u64,
    /// The maximum so far.
    pub queue_max: u64,
    /// The mean while it had any.
    pub queue_mean: f64,
    /// Real time during which it had any.
    pub busy: Nanos,
    /// Mechanical operations that started elsewhere than where the last one ended.
    pub seeks: u64,
    /// Reads that the model served from its cache.
    pub cache_hits: u64,
    /// Requests timed by the model: all except those served while timing was off.
    pub timed: u64,
    /// How late the timed ones were.
    pub lateness: Lateness,
    /// Median service time by the model, dilated.
    pub service_p50: Nanos,
    /// Total lateness of all timed requests.
    pub late_total: Nanos,
    /// Total service time of all timed requests, dilated.
    pub service_total: Nanos,
    /// Timed requests with a lateness above 4 % of their service time.
    pub spoiled: u64,
    /// Writes refused for lack of memory; if not zero, the filesystem has seen errors.
    pub refused_writes: u64,
    /// Memory used for written data.
    pub stored: Bytes,
    /// Whether the model's times are kept (not while files are created).
    pub timing: bool,
}

/// Number of size classes; the last but one reaches 32 MiB, more than FUSE sends at once.
pub(crate) const READ_SIZES: usize = 15;

/// The class of a read of this size.
pub(crate) fn size_class(length: Bytes) -> usize {
    let pages = length.get().div_ceil(4096).max(1);
    (pages.next_power_of_two().ilog2() as usize).min(READ_SIZES - 1)
}

/// Lateness above this share of the service time disturbs a measurement.
pub(crate) const LATENESS_SHARE: f64 = 0.04;

/// Lateness below this is not the server's fault: copying a megabyte takes as long.
pub(crate) const LATENESS_FLOOR: Nanos = Nanos::from_micros(60);

impl DiskCounters {
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }

    /// All bytes moved.
    pub fn bytes(&self) -> Bytes {
        self.read_bytes + self.written_bytes
    }

    /// The share of the timed requests that required a seek; above one if a request causes several
    /// disks of an array to seek.
    pub fn seek_share(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.seeks as f64 / self.timed as f64 }
    }

    /// How much longer requests took than in the model, on average. With a constant queue, this is
    /// how much longer the whole work took.
    pub fn late_share(&self) -> f64 {
        match self.service_total.get() {
            0 => 0.0,
            service => self.late_total.get() as f64 / service as f64,
        }
    }

    /// Whether the server was too late for valid measurements: by more than 4 % of the model's
    /// time, and by more than the time of a reply.
    pub fn is_spoiled(&self) -> bool {
        let mean = self.late_total.get().checked_div(self.timed).unwrap_or(0);
        self.late_share() > LATENESS_SHARE && mean > LATENESS_FLOOR.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_powers_of_two() {
        for (kib, class) in [(0, 0), (4, 0), (5, 1), (8, 1), (128, 5), (132, 6), (1 << 30, 14)] {
            assert_eq!(size_class(Bytes::from_kib(kib)), class, "{kib} KiB");
        }
    }

    #[test]
    fn counters_of_earlier_versions_are_read() {
        let first = r#"{"elapsed":5,"reads":7,"timed":7,"lateness":{"p50":1,"p99":2,"max":3}}"#;
        let counters: DiskCounters = serde_json::from_str(first).expect("what there was");
        assert_eq!((counters.reads, counters.read_sizes), (7, [0; READ_SIZES]));
    }
}
