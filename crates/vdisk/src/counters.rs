//! Counters of a virtual disk.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// Lateness of completions in real time (not in model time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    pub max: Nanos,
}

/// Counters of a virtual disk since it started or since their last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
// Records of earlier versions lack newer counters.
#[serde(default)]
pub struct DiskCounters {
    pub elapsed: Nanos,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    /// Bytes that reads requested.
    pub read_bytes: Bytes,
    /// Number of reads by size class: up to 4 KiB, up to 8 KiB, and so on in powers of two. The
    /// last class contains all larger reads.
    pub read_sizes: [u64; READ_SIZES],
    pub written_bytes: Bytes,
    /// Number of requests in the model now.
    pub queue: u64,
    /// Maximum number of requests in the model.
    pub queue_max: u64,
    /// Mean number of requests in the model while there were any.
    pub queue_mean: f64,
    /// Real time during which there were requests in the model.
    pub busy: Nanos,
    /// Mechanical operations that did not start where the previous one ended.
    pub seeks: u64,
    /// Reads that the model served from its cache.
    pub cache_hits: u64,
    /// Requests timed by the model: all except those served while timing was off.
    pub timed: u64,
    /// Lateness of the timed requests.
    pub lateness: Lateness,
    /// Median service time by the model, dilated.
    pub service_p50: Nanos,
    /// Total lateness of all timed requests.
    pub late_total: Nanos,
    /// Total service time of all timed requests, dilated.
    pub service_total: Nanos,
    /// Timed requests whose lateness exceeded both 4 % of their service time and 60 µs.
    pub spoiled: u64,
    /// Writes rejected for lack of memory. If not 0, the file system has seen errors.
    pub refused_writes: u64,
    /// Memory that holds written data.
    pub stored: Bytes,
    /// Whether the model's times apply; false while files are created.
    pub timing: bool,
}

/// Number of size classes. The last but one ends at 32 MiB, more than FUSE sends at once.
pub(crate) const READ_SIZES: usize = 15;

/// Returns the class of a read of this size.
pub(crate) fn size_class(length: Bytes) -> usize {
    let pages = length.get().div_ceil(4096).max(1);
    (pages.next_power_of_two().ilog2() as usize).min(READ_SIZES - 1)
}

/// Lateness above this fraction of the service time disturbs a measurement.
pub(crate) const LATENESS_SHARE: f64 = 0.04;

/// Lateness up to this is not the server's fault: copying 1 MB takes as long.
pub(crate) const LATENESS_FLOOR: Nanos = Nanos::from_micros(60);

impl DiskCounters {
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }

    /// Returns the number of transferred bytes.
    pub fn bytes(&self) -> Bytes {
        self.read_bytes + self.written_bytes
    }

    /// Returns the number of seeks per timed request. Exceeds 1 if a request causes several disks
    /// of an array to seek.
    pub fn seek_share(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.seeks as f64 / self.timed as f64 }
    }

    /// Returns the mean lateness as a fraction of the service time. If the queue length is
    /// constant, the whole work took longer by this fraction.
    pub fn late_share(&self) -> f64 {
        match self.service_total.get() {
            0 => 0.0,
            service => self.late_total.get() as f64 / service as f64,
        }
    }

    /// Returns whether the server was too late for valid measurements: by more than 4 % of the
    /// service time, and by more than the time of a reply.
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
