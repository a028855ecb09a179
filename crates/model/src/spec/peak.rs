//! The peak performance of a device.

use units::BytesPerSecond;

use super::drive::DriveSpec;

/// Upper bounds of a device's performance; they determine the dilation of a virtual disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    pub throughput: BytesPerSecond,
    pub requests: f64,
}

/// A number that means no limit: more bytes or requests per second than any computer handles.
const NO_END: f64 = 1e15;

impl Peak {
    /// Creates a peak from bytes and requests per second; limits it to one request per 4 KiB.
    pub(crate) fn new(bytes: f64, requests: f64) -> Self {
        let bytes = if bytes.is_nan() { NO_END } else { bytes.clamp(0.0, NO_END) };
        let requests = if requests.is_nan() { NO_END } else { requests.clamp(0.0, bytes / 4096.0) };
        Self { throughput: BytesPerSecond::new(bytes).unwrap_or_default(), requests }
    }

    /// Returns the peak of a drive: its streaming rate, and small requests from its cache.
    pub(crate) fn from_drive(spec: &DriveSpec) -> Self {
        let overhead = spec.hit_overhead_ms.unwrap_or(spec.overhead_ms).max(1e-4);
        Self::new(spec.streaming_rate(), spec.queue_depth as f64 * 1e3 / overhead)
    }
}
