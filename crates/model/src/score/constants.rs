//! The constants that a trace is asked for: what no data sheet says.

use serde::Serialize;
use units::Bytes;

use crate::drive::{DriveSpec, ReadBefore};

/// What was fitted, in the units of [`DriveSpec`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Constants {
    /// Overhead of a read that needs the mechanism.
    pub overhead_ms: f64,
    /// Overhead of a read from the cache.
    pub hit_overhead_ms: f64,
    pub write_overhead_ms: f64,
    /// What a write that goes on from the last one saves.
    pub write_streak_ms: f64,
    pub bus_mb_s: f64,
    /// Factor on the measured seek curve, which some drives' makers took with overhead.
    pub seek_scale: f64,
    /// The least time to find a track.
    pub settle_ms: f64,
    pub jitter_ms: f64,
    /// What it reads of the track before the wanted data.
    pub read_before: ReadBefore,
    /// Whether data stays in the cache when the host has had it.
    pub keep_delivered: bool,
    /// Whether it reads ahead only after a read that went on from another.
    pub read_ahead_after_run: bool,
    /// Whether reading ahead ends with the track.
    pub read_ahead_within_track: bool,
    /// Whether data goes over the bus only when all of it has been read.
    pub store_and_forward: bool,
    /// Whether writes are answered from the cache.
    pub write_back: bool,
    /// Read-ahead in KiB.
    pub read_ahead_kib: u64,
    pub segments: usize,
}

/// What a cache of these drives' years takes before it must write.
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
