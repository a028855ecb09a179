//! What a device can reach at best.

use units::BytesPerSecond;

use crate::drive::DriveSpec;

/// What a device can reach at best, to choose a time dilation by: an upper bound, no promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    pub throughput: BytesPerSecond,
    pub requests: f64,
}

/// What stands for no end: no computer moves as many bytes, or requests, in a second.
const NO_END: f64 = 1e15;

impl Peak {
    /// Bytes and requests in a second; no more requests than pages of 4 KiB in those bytes.
    pub(crate) fn new(bytes: f64, requests: f64) -> Self {
        let bytes = if bytes.is_nan() { NO_END } else { bytes.clamp(0.0, NO_END) };
        let requests = if requests.is_nan() { NO_END } else { requests.clamp(0.0, bytes / 4096.0) };
        Self { throughput: BytesPerSecond::new(bytes).unwrap_or_default(), requests }
    }

    /// A drive at best streams; small requests come from its cache.
    pub(crate) fn of_drive(spec: &DriveSpec) -> Self {
        let overhead = spec.hit_overhead_ms.unwrap_or(spec.overhead_ms).max(1e-4);
        Self::new(spec.streaming_rate(), spec.queue_depth as f64 * 1e3 / overhead)
    }
}
