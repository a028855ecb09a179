//! The specification of a drive, in the terms of data sheets.

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::error::{SpecError, check, check_size};

/// The order in which a drive serves queued commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueOrder {
    Fifo,
    /// The command whose data passes under the head first (SATF, as in native command queueing);
    /// [`DriveSpec::ageing`] favours older commands.
    #[default]
    Nearest,
}

/// What a drive reads of the track before the wanted data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadBefore {
    /// Nothing: the drive waits for the data.
    #[default]
    Nothing,
    /// The sectors that pass when the head is on the track.
    Passing,
    /// In addition, the rest of the track on the next revolution, if no command waits.
    Track,
}

/// A mechanical drive. Times are in milliseconds, rates in decimal MB/s, as in data sheets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// The usable size; in TOML with a unit: `"931GiB"`, `"1953525168s"`.
    #[serde(with = "size_text")]
    pub capacity: Bytes,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Time of a seek to the next track.
    pub seek_track_ms: f64,
    /// Mean time of a seek over random pairs of places.
    pub seek_average_ms: f64,
    /// Time of a seek from edge to edge; `None` is 1.9 times the average (measured on real drives:
    /// 1.7 to 2.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_full_ms: Option<f64>,
    /// A measured seek curve as pairs of distance in cylinders and milliseconds. If it is not
    /// empty, it replaces the three times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seek_curve: Vec<[f64; 2]>,
    /// Number of cylinders; `None` is the number of tracks divided by `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinders: Option<f64>,
    /// Tracks per cylinder; used if `cylinders` is `None`.
    #[serde(default = "default::heads")]
    pub heads: f64,
    /// Minimum time to settle on the track for an operation that does not continue the last one,
    /// even if the arm does not move.
    #[serde(default)]
    pub settle_ms: f64,
    /// Time added to the seek before a write, which needs a steadier head.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Sustained media rate at the outer edge, track skew included.
    pub outer_mb_s: f64,
    /// Sustained media rate at the inner edge, track skew included.
    pub inner_mb_s: f64,
    /// Time from the arrival of a read command until the mechanism can start; overlaps with the
    /// operation in progress.
    #[serde(default = "default::overhead")]
    pub overhead_ms: f64,
    /// Time from the arrival of a cached read until its transfer; `None` is `overhead_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_overhead_ms: Option<f64>,
    /// Time from the arrival of a write until its transfer; `None` is `overhead_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_overhead_ms: Option<f64>,
    /// Time deducted from `write_overhead_ms` if the write continues the last command and that was
    /// a write.
    #[serde(default)]
    pub write_streak_ms: f64,
    /// Maximum random addition to a command's overhead, uniform from zero. Without it, closed loops
    /// synchronise with the rotation.
    #[serde(default = "default::jitter")]
    pub jitter_ms: f64,
    /// Rate of the bus to the host.
    #[serde(default = "default::bus")]
    pub bus_mb_s: f64,
    /// True if the transfer to the host starts only when all data has been read.
    #[serde(default)]
    pub store_and_forward: bool,
    /// Number of segments of the cache, each for one run of data.
    #[serde(default = "default::segments")]
    pub segments: usize,
    /// Size of one segment; `None` is twice the read-ahead, at least 256 KiB.
    #[serde(default, with = "optional_size_text", skip_serializing_if = "Option::is_none")]
    pub segment_size: Option<Bytes>,
    /// Amount that the drive reads ahead after a read.
    #[serde(default = "default::read_ahead", with = "size_text")]
    pub read_ahead: Bytes,
    /// True if the drive reads ahead even if the last command had to wait or others are waiting.
    /// Most firmware does not, so deep queues can be slower than shallow ones.
    #[serde(default)]
    pub read_ahead_when_queued: bool,
    /// With `read_ahead_when_queued`: the minimum read-ahead before the next command starts.
    #[serde(default, with = "size_text")]
    pub read_ahead_at_least: Bytes,
    /// True if the drive reads ahead only after a read that continues an earlier one.
    #[serde(default)]
    pub read_ahead_after_run: bool,
    /// True if read-ahead stops at the end of the track.
    #[serde(default)]
    pub read_ahead_within_track: bool,
    /// The part of the track before the wanted data that the drive caches.
    #[serde(default)]
    pub read_before: ReadBefore,
    /// True if data stays in the cache after delivery to the host.
    #[serde(default = "default::yes")]
    pub keep_delivered: bool,
    /// Size of the write cache; 0 means write-through.
    #[serde(default, with = "size_text")]
    pub write_cache: Bytes,
    /// Idle time before the drive starts to write cached data to the platter.
    #[serde(default = "default::destage_delay")]
    pub destage_delay_ms: f64,
    /// Maximum number of commands in the drive. Other commands wait outside, and their overhead
    /// starts when they are admitted.
    #[serde(default = "default::queue_depth")]
    pub queue_depth: usize,
    #[serde(default)]
    pub queue_order: QueueOrder,
    /// Milliseconds of positioning that a millisecond of waiting outweighs in the choice of the
    /// nearest command; 0 allows starvation.
    #[serde(default = "default::ageing")]
    pub ageing: f64,
}

mod default {
    use units::Bytes;

    pub(super) fn heads() -> f64 {
        4.0
    }
    pub(super) fn overhead() -> f64 {
        0.2
    }
    pub(super) fn jitter() -> f64 {
        0.02
    }
    pub(super) fn bus() -> f64 {
        300.0
    }
    pub(super) fn segments() -> usize {
        16
    }
    pub(super) fn read_ahead() -> Bytes {
        Bytes::from_mib(1)
    }
    pub(super) fn yes() -> bool {
        true
    }
    pub(super) fn destage_delay() -> f64 {
        5.0
    }
    pub(super) fn queue_depth() -> usize {
        32
    }
    pub(super) fn ageing() -> f64 {
        0.02
    }
}

impl DriveSpec {
    /// Creates a drive with the main figures of a data sheet and usual values for the others.
    pub fn new(capacity: Bytes, rpm: f64, seek_ms: [f64; 2], edge_mb_s: [f64; 2]) -> Self {
        Self {
            capacity,
            rpm,
            seek_track_ms: seek_ms[0],
            seek_average_ms: seek_ms[1],
            seek_full_ms: None,
            seek_curve: Vec::new(),
            cylinders: None,
            heads: default::heads(),
            settle_ms: 0.0,
            write_settle_ms: 0.0,
            outer_mb_s: edge_mb_s[0],
            inner_mb_s: edge_mb_s[1],
            overhead_ms: default::overhead(),
            hit_overhead_ms: None,
            write_overhead_ms: None,
            write_streak_ms: 0.0,
            jitter_ms: default::jitter(),
            bus_mb_s: default::bus(),
            store_and_forward: false,
            segments: default::segments(),
            segment_size: None,
            read_ahead: default::read_ahead(),
            read_ahead_when_queued: false,
            read_ahead_at_least: Bytes::ZERO,
            read_ahead_after_run: false,
            read_ahead_within_track: false,
            read_before: ReadBefore::default(),
            keep_delivered: true,
            write_cache: Bytes::ZERO,
            destage_delay_ms: default::destage_delay(),
            queue_depth: default::queue_depth(),
            queue_order: QueueOrder::default(),
            ageing: default::ageing(),
        }
    }

    /// Returns an error for a value that no drive can have. A valid specification always builds.
    pub fn validate(&self) -> Result<(), SpecError> {
        check_size("capacity", self.capacity, 1 << 20, 1 << 60)?;
        check("rpm", self.rpm, 60.0, 1e6)?;
        check("seek_track_ms", self.seek_track_ms, 0.0, 1e4)?;
        check("seek_average_ms", self.seek_average_ms, 0.0, 1e4)?;
        check("seek_full_ms", self.seek_full(), 0.0, 1e5)?;
        check("cylinders", self.cylinders.unwrap_or(1.0), 1.0, 1e9)?;
        check("heads", self.heads, 1.0, 1e4)?;
        check("settle_ms", self.settle_ms, 0.0, 1e4)?;
        check("write_settle_ms", self.write_settle_ms, 0.0, 1e4)?;
        check("outer_mb_s", self.outer_mb_s, 1e-3, 1e6)?;
        check("inner_mb_s", self.inner_mb_s, 1e-3, self.outer_mb_s)?;
        check("overhead_ms", self.overhead_ms, 0.0, 1e4)?;
        check("hit_overhead_ms", self.hit_overhead_ms.unwrap_or(0.0), 0.0, 1e4)?;
        check("write_overhead_ms", self.write_overhead_ms.unwrap_or(0.0), 0.0, 1e4)?;
        check("write_streak_ms", self.write_streak_ms, 0.0, 1e4)?;
        check("jitter_ms", self.jitter_ms, 0.0, 1e4)?;
        check("bus_mb_s", self.bus_mb_s, 1e-3, 1e9)?;
        check("segments", self.segments as f64, 1.0, 4096.0)?;
        check("segment_size", self.segment().get() as f64, 0.0, 1e15)?;
        check("read_ahead", self.read_ahead.get() as f64, 0.0, 1e15)?;
        check("write_cache", self.write_cache.get() as f64, 0.0, 1e15)?;
        check("destage_delay_ms", self.destage_delay_ms, 0.0, 1e6)?;
        check("queue_depth", self.queue_depth as f64, 1.0, 65536.0)?;
        check("ageing", self.ageing, 0.0, 1e6)?;
        for value in self.seek_curve.iter().flatten() {
            check("seek_curve", *value, 0.0, 1e9)?;
        }
        self.validate_seeks()
    }

    /// Returns an error if the track, average and full-stroke times decrease. A measured curve
    /// replaces them, so they are not checked then.
    fn validate_seeks(&self) -> Result<(), SpecError> {
        let track = ("seek_track_ms", self.seek_track_ms);
        let average = ("seek_average_ms", self.seek_average_ms);
        let full = ("seek_full_ms", self.seek_full());
        for ((shorter, least), (key, value)) in [(track, average), (average, full)] {
            if self.seek_curve.is_empty() && value < least {
                let allowed = format!("{least} or more, which {shorter} takes");
                return Err(SpecError::impossible(key, value.to_string(), allowed));
            }
        }
        Ok(())
    }

    /// Returns the maximum rate of a stream in bytes per second (outer edge or bus).
    pub fn streaming_rate(&self) -> f64 {
        self.outer_mb_s.min(self.bus_mb_s) * 1e6
    }

    pub(crate) fn seek_full(&self) -> f64 {
        self.seek_full_ms.unwrap_or(1.9 * self.seek_average_ms)
    }

    pub(crate) fn segment(&self) -> Bytes {
        let twice = Bytes::new(self.read_ahead.get().saturating_mul(2).max(256 << 10));
        self.segment_size.unwrap_or(twice)
    }
}

/// Serializes sizes as text with a unit, as in all input.
pub(crate) mod size_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use units::Bytes;

    pub(crate) fn serialize<S: Serializer>(size: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&size.to_string().replace(' ', ""))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Serializes an optional size as text with a unit.
pub(crate) mod optional_size_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use units::Bytes;

    pub(crate) fn serialize<S: Serializer>(size: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        match size {
            Some(size) => super::size_text::serialize(size, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}
