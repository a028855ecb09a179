//! What one trial measured.

use serde::{Deserialize, Serialize};
use units::{Bytes, BytesPerSecond, Nanos};

use crate::{ColdProof, DeviceDelta, Disturbance, LatencyHistogram};

/// What one reader did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderSample {
    /// Requests completed.
    pub requests: u64,
    /// Data got.
    pub useful: Bytes,
    /// Wall time from the common start to the reader's last completion.
    pub elapsed: Nanos,
}

/// The requests of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSample {
    /// Data got.
    pub useful: Bytes,
    /// Latency of each request in wall time.
    pub latency: LatencyHistogram,
}

/// Processor time of all readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

/// What one trial measured. Fields are raw: wall time as the clock had it. Methods give results in
/// the storage's own time, that is with the dilation taken out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The workload's name.
    pub workload: String,
    /// The seed of its accesses.
    pub seed: u64,
    /// How many times slower than its model the storage ran; 1 for real storage.
    pub dilation: f64,
    /// Wall time from the start of the readers until the trial was over.
    pub elapsed: Nanos,
    /// Whether a reader had used up its data before the time was over.
    pub exhausted: bool,
    /// What each reader did.
    pub readers: Vec<ReaderSample>,
    /// Requests of streams.
    pub stream: ClassSample,
    /// Random requests.
    pub random: ClassSample,
    /// Processor time of all readers.
    pub cpu: CpuTime,
    /// The block layer's account; `None` where no device counts (NFS, FUSE).
    pub device: Option<DeviceDelta>,
    /// What was in the page cache at the start.
    pub cold: ColdProof,
    /// What speaks against this sample; empty for a clean one.
    pub disturbances: Vec<Disturbance>,
}

impl Sample {
    /// Requests completed by all readers.
    pub fn requests(&self) -> u64 {
        self.readers.iter().map(|reader| reader.requests).sum()
    }

    /// Data that all readers got.
    pub fn useful(&self) -> Bytes {
        self.readers.iter().map(|reader| reader.useful).sum()
    }

    /// Data got for each second of the storage's own time. Each reader counts with its own
    /// elapsed time, so that a request which ends late neither adds idle time of the others nor
    /// is lost.
    pub fn throughput(&self) -> BytesPerSecond {
        todo!()
    }

    /// Requests for each second of the storage's own time, counted like [`Sample::throughput`].
    pub fn requests_per_second(&self) -> f64 {
        todo!()
    }

    /// The latency that the share `q` of all requests stay within, in the storage's own time.
    pub fn latency_quantile(&self, _q: f64) -> Option<Nanos> {
        todo!()
    }

    /// As [`Sample::latency_quantile`], of the random requests only.
    pub fn random_latency_quantile(&self, _q: f64) -> Option<Nanos> {
        todo!()
    }

    /// As [`Sample::latency_quantile`], of the requests of streams only.
    pub fn stream_latency_quantile(&self, _q: f64) -> Option<Nanos> {
        todo!()
    }

    /// Data read from the device for each byte that the readers got; `None` where no device
    /// counts or nothing was got.
    pub fn amplification(&self) -> Option<f64> {
        todo!()
    }

    /// Processor time of the readers for each request; nothing if there were none.
    pub fn cpu_per_request(&self) -> Nanos {
        todo!()
    }

    /// Whether nothing speaks against it.
    pub fn is_clean(&self) -> bool {
        self.disturbances.is_empty()
    }
}
