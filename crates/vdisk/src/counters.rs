//! What a virtual disk counts while it serves.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// How late completions were handed to the kernel, in real time (not the model's).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the requests were no later than this.
    pub p50: Nanos,
    /// All but one in a hundred were no later than this.
    pub p99: Nanos,
    pub max: Nanos,
}

/// What a virtual disk has done since it started or since its counters were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
// Records of earlier versions lack what is counted since.
#[serde(default)]
pub struct DiskCounters {
    pub elapsed: Nanos,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    /// Bytes that the reads asked for.
    pub read_bytes: Bytes,
    /// How many reads were of which size: up to 4 KiB, up to 8 KiB, and so on in powers of two;
    /// the last has all larger ones.
    pub read_sizes: [u64; READ_SIZES],
    pub written_bytes: Bytes,
    /// Requests that the model has now.
    pub queue: u64,
    /// The most it has had at once.
    pub queue_max: u64,
    /// The mean number it had while it had any.
    pub queue_mean: f64,
    /// Time for which it had any, real.
    pub busy: Nanos,
    /// Mechanical operations that began elsewhere than where the last one ended.
    pub seeks: u64,
    /// Reads that the model served from its cache.
    pub cache_hits: u64,
    /// Requests timed by the model: all but those served while timing was off.
    pub timed: u64,
    /// How late the timed ones were.
    pub lateness: Lateness,
    /// The median time the model took for a request, dilated.
    pub service_p50: Nanos,
    /// The lateness of all timed requests together.
    pub late_total: Nanos,
    /// The service times of all timed requests together, dilated.
    pub service_total: Nanos,
    /// Timed requests whose lateness is more than 4 % of their service time.
    pub spoiled: u64,
    /// Writes refused because memory was short; the filesystem has seen errors if not zero.
    pub refused_writes: u64,
    /// Memory that holds what was written.
    pub stored: Bytes,
    /// Whether the model's times are kept (not while files are laid out).
    pub timing: bool,
}

/// Classes of sizes that reads are counted in: the last but one is up to 32 MiB, far beyond what
/// FUSE sends at once.
pub(crate) const READ_SIZES: usize = 15;

/// The class of a read of this size.
pub(crate) fn size_class(length: Bytes) -> usize {
    let pages = length.get().div_ceil(4096).max(1);
    (pages.next_power_of_two().ilog2() as usize).min(READ_SIZES - 1)
}

/// The share of the service time that lateness may take before it spoils a measurement.
pub(crate) const LATENESS_SHARE: f64 = 0.04;

/// Lateness below this is no fault of the server's: handing over a megabyte takes as long.
pub(crate) const LATENESS_FLOOR: Nanos = Nanos::from_micros(60);

impl DiskCounters {
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }

    /// All bytes moved.
    pub fn bytes(&self) -> Bytes {
        self.read_bytes + self.written_bytes
    }

    /// The share of the timed requests that made the device position itself anew; above one where
    /// one request makes several disks of an array do so.
    pub fn seek_share(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.seeks as f64 / self.timed as f64 }
    }

    /// How much longer requests took than the model says, on average. With as many in flight all
    /// the while this is how much longer the whole work took, whether all were a little late or
    /// the machine stood still for a moment.
    pub fn late_share(&self) -> f64 {
        match self.service_total.get() {
            0 => 0.0,
            service => self.late_total.get() as f64 / service as f64,
        }
    }

    /// Whether the server was so late that measurements of this time are spoiled: by more than
    /// 4 % of the time that the model took, and by more than an answer needs on its way.
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
