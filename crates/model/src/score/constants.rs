//! The constants that are fitted to a trace, because no data sheet states them.

use serde::Serialize;
use units::Bytes;

use crate::drive::{DriveSpec, ReadBefore};

/// The fitted constants, in the units of [`DriveSpec`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Constants {
    /// Overhead of a read that uses the mechanism.
    pub overhead_ms: f64,
    /// Overhead of a cached read.
    pub hit_overhead_ms: f64,
    pub write_overhead_ms: f64,
    /// Time that a write saves if it continues the last one.
    pub write_streak_ms: f64,
    pub bus_mb_s: f64,
    /// Factor on the measured seek curve, which for some drives includes overhead.
    pub seek_scale: f64,
    /// Minimum time to settle on a track.
    pub settle_ms: f64,
    pub jitter_ms: f64,
    /// The part of the track before the wanted data that the drive reads.
    pub read_before: ReadBefore,
    /// True if data stays in the cache after delivery to the host.
    pub keep_delivered: bool,
    /// True if the drive reads ahead only after a read that continued another.
    pub read_ahead_after_run: bool,
    /// True if read-ahead stops at the end of the track.
    pub read_ahead_within_track: bool,
    /// True if the transfer to the host starts only when all data has been read.
    pub store_and_forward: bool,
    /// True if writes complete when they are in the cache.
    pub write_back: bool,
    /// Amount of read-ahead in KiB.
    pub read_ahead_kib: u64,
    pub segments: usize,
}

/// Size of the write cache of drives of this period.
const WRITE_CACHE: Bytes = Bytes::from_kib(256);

impl Constants {
    pub fn apply(&self, drive: &DriveSpec) -> DriveSpec {
        let mut spec = drive.clone();
        spec.overhead_ms = self.overhead_ms;
        spec.hit_overhead_ms = Some(self.hit_overhead_ms);
        spec.write_overhead_ms = Some(self.write_overhead_ms);
        spec.write_streak_ms = self.write_streak_ms;
        spec.bus_mb_s = self.bus_mb_s;
        for [_, time] in &mut spec.seek_curve {
            *time *= self.seek_scale;
        }
        spec.settle_ms = self.settle_ms;
        spec.jitter_ms = self.jitter_ms;
        spec.read_before = self.read_before;
        spec.keep_delivered = self.keep_delivered;
        spec.read_ahead_after_run = self.read_ahead_after_run;
        spec.read_ahead_within_track = self.read_ahead_within_track;
        spec.store_and_forward = self.store_and_forward;
        spec.write_cache = if self.write_back { WRITE_CACHE } else { Bytes::ZERO };
        spec.read_ahead = Bytes::from_kib(self.read_ahead_kib);
        spec.segments = self.segments;
        spec
    }
}
