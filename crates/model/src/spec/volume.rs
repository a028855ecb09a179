//! The specification of a volume behind a network.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use super::drive::size_text;
use super::error::{SpecError, check, check_size};
use super::peak::Peak;

/// A volume behind a network. Rates are in MiB/s, as providers state them; 0 means no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    #[serde(with = "size_text")]
    pub capacity: Bytes,
    /// Median time from the admission of a request until its data is ready at the server.
    pub latency_ms: f64,
    /// Median latency of a read that continues an earlier one; `None` is `latency_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_latency_ms: Option<f64>,
    /// Variation of the latency: the standard deviation of its natural logarithm.
    #[serde(default = "default::spread")]
    pub latency_spread: f64,
    /// I/Os per second; `accounting` is the size of one.
    #[serde(default)]
    pub iops: f64,
    /// Maximum number of I/Os that accumulate while the volume is idle.
    #[serde(default)]
    pub iops_burst: f64,
    #[serde(default)]
    pub throughput_mib_s: f64,
    /// Maximum amount of data that accumulates while the volume is idle.
    #[serde(default = "default::burst", with = "size_text")]
    pub throughput_burst: Bytes,
    /// The size of one I/O: longer requests count as several, and consecutive short ones together
    /// as one.
    #[serde(default = "default::accounting", with = "size_text")]
    pub accounting: Bytes,
    /// Minimum charge of a non-sequential request against the throughput limit.
    #[serde(default, with = "size_text")]
    pub random_charge: Bytes,
    /// Maximum number of requests that the volume serves concurrently.
    #[serde(default = "default::concurrency")]
    pub concurrency: usize,
    /// Rate of the network to the host, shared by all requests.
    #[serde(default)]
    pub link_mib_s: f64,
    /// Rate of a single request, if it is below the link's rate.
    #[serde(default)]
    pub stream_mib_s: f64,
}

mod default {
    use units::Bytes;

    pub(super) fn spread() -> f64 {
        0.1
    }
    pub(super) fn burst() -> Bytes {
        Bytes::from_mib(1)
    }
    pub(super) fn accounting() -> Bytes {
        Bytes::from_kib(256)
    }
    pub(super) fn concurrency() -> usize {
        64
    }
}

/// A rate that means no limit: 1 TiB/s.
const UNLIMITED_BYTES_S: f64 = 1.1e12;

impl VolumeSpec {
    /// Returns an error for a value that no volume can have.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        check_size("capacity", self.capacity, 1 << 20, 1 << 60)?;
        check("latency_ms", self.latency_ms, 0.0, 1e5)?;
        let sequential = self.sequential_latency_ms.unwrap_or(self.latency_ms);
        check("sequential_latency_ms", sequential, 0.0, 1e5)?;
        check("latency_spread", self.latency_spread, 0.0, 3.0)?;
        check("iops", self.iops, 0.0, 1e9)?;
        check("iops_burst", self.iops_burst, 0.0, 1e12)?;
        check("throughput_mib_s", self.throughput_mib_s, 0.0, 1e6)?;
        check_size("throughput_burst", self.throughput_burst, 0, 1 << 53)?;
        check_size("accounting", self.accounting, 512, 1 << 40)?;
        check_size("random_charge", self.random_charge, 0, 1 << 40)?;
        check("concurrency", self.concurrency as f64, 1.0, 65536.0)?;
        check("link_mib_s", self.link_mib_s, 0.0, 1e6)?;
        check("stream_mib_s", self.stream_mib_s, 0.0, 1e6)
    }

    pub(super) fn peak(&self) -> Peak {
        let flow = limit(self.stream_mib_s) * self.concurrency as f64;
        // A bucket that is not empty by the end of a trial allows the link's rate throughout.
        let lasting = self.throughput_burst.get() as f64 > 10.0 * limit(self.throughput_mib_s);
        let bucket = if lasting { UNLIMITED_BYTES_S } else { limit(self.throughput_mib_s) };
        let throughput = limit(self.link_mib_s).min(flow).min(bucket);
        let latency = self.sequential_latency_ms.unwrap_or(self.latency_ms).min(self.latency_ms);
        let served = self.concurrency as f64 / (latency * 1e-3).max(1e-7);
        let small = self.accounting.get() as f64 / 4096.0;
        let iops = if self.iops > 0.0 { self.iops * small.max(1.0) } else { f64::INFINITY };
        Peak::new(throughput, served.min(iops))
    }

    /// The bucket's initial content is not limited by its rate.
    pub(super) fn least_time(&self, bytes: Bytes) -> Nanos {
        let flow = limit(self.stream_mib_s) * self.concurrency as f64;
        let passed = bytes.get().saturating_sub(self.throughput_burst.get()) as f64;
        let felt = passed / limit(self.throughput_mib_s);
        Nanos::from_secs_f64(felt.max(bytes.get() as f64 / limit(self.link_mib_s).min(flow)))
    }
}

/// Converts MiB/s to bytes per second; 0 means no limit.
fn limit(mib: f64) -> f64 {
    if mib > 0.0 { mib * 1_048_576.0 } else { UNLIMITED_BYTES_S }
}
