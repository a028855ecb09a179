//! The measurements of one trial.

use serde::{Deserialize, Serialize};
use units::{Bytes, BytesPerSecond, Nanos};

use crate::{
    ColdProof, DeviceDelta, Disturbance, LatencyHistogram, MemoryAccount, ResidencyMethod, Series,
    Timeline, ToolReport,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderSample {
    pub requests: u64,
    pub useful: Bytes,
    /// Wall time from the common start to the reader's last completion.
    pub elapsed: Nanos,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSample {
    pub useful: Bytes,
    /// Latency of each request in wall time.
    pub latency: LatencyHistogram,
}

impl ClassSample {
    pub(crate) fn add(&mut self, other: &Self) {
        self.useful += other.useful;
        self.latency.merge(&other.latency);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    pub user: Nanos,
    pub system: Nanos,
}

/// The measurements of one trial. Fields are raw values in wall time. Methods return results in the
/// storage's own time: wall time divided by the dilation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub workload: String,
    pub seed: u64,
    /// Factor by which the storage was slower than its model; 1 for real storage.
    pub dilation: f64,
    /// Wall time from the start of the readers until the trial was over.
    pub elapsed: Nanos,
    /// True if a reader exhausted its data before the time limit.
    pub exhausted: bool,
    pub readers: Vec<ReaderSample>,
    pub stream: ClassSample,
    pub random: ClassSample,
    pub cpu: CpuTime,
    /// Block-layer counters; `None` without a block device (NFS, FUSE).
    pub device: Option<DeviceDelta>,
    /// Data that was read ahead of streams but still unused at the end; 0 if unknown.
    #[serde(default)]
    pub ahead: Bytes,
    /// For writers, the requested data in both directions: data written, and data read to modify
    /// it. 0 for workloads that only read.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub moved: Bytes,
    /// Wall time from the start of the readers until no request was in flight.
    #[serde(default)]
    pub settled: Nanos,
    /// Content of the page cache at the start.
    pub cold: ColdProof,
    #[serde(default, skip_serializing_if = "Timeline::is_empty")]
    pub timeline: Timeline,
    /// Other quantities over time: queries, windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Number of device requests by size: up to 4 KiB in the first bucket, up to twice as much in
    /// each following one. Empty if requests were not observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_sizes: Vec<u64>,
    /// Report of the external program that ran the workload; `None` for foreread's own engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolReport>,
    /// The control group's counters; `None` if memory was not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryAccount>,
    /// Disturbances of the trial; empty if it was undisturbed.
    pub disturbances: Vec<Disturbance>,
}

fn is_nothing(data: &Bytes) -> bool {
    data.is_zero()
}

impl Sample {
    /// Creates an empty sample.
    pub fn new(workload: &str, seed: u64, dilation: f64, cold: ColdProof) -> Self {
        Self {
            workload: workload.to_owned(),
            seed,
            dilation,
            elapsed: Nanos::ZERO,
            exhausted: false,
            readers: Vec::new(),
            stream: ClassSample::default(),
            random: ClassSample::default(),
            cpu: CpuTime::default(),
            device: None,
            ahead: Bytes::ZERO,
            moved: Bytes::ZERO,
            settled: Nanos::ZERO,
            cold,
            timeline: Timeline::default(),
            series: Vec::new(),
            request_sizes: Vec::new(),
            tool: None,
            memory: None,
            disturbances: Vec::new(),
        }
    }

    /// Creates the sample of a failed program.
    pub fn failed(workload: &str, seed: u64, dilation: f64, problem: String) -> Self {
        let cold = ColdProof::new(ResidencyMethod::Denied);
        let disturbances = vec![Disturbance::ToolFailed { problem }];
        Self { disturbances, ..Self::new(workload, seed, dilation, cold) }
    }

    pub fn requests(&self) -> u64 {
        self.readers.iter().map(|reader| reader.requests).sum()
    }

    pub fn useful(&self) -> Bytes {
        self.readers.iter().map(|reader| reader.useful).sum()
    }

    /// Returns the throughput in the storage's own time.
    ///
    /// For streams, the data read ahead counts, together with the time that reading it took,
    /// because the streams would have received it next. A trial contains only a few of the largest
    /// windows; without the last of them they would look slow. Otherwise each reader counts with
    /// its own elapsed time, so that a late request is counted but adds no idle time to other
    /// readers.
    pub fn throughput(&self) -> BytesPerSecond {
        let useful = self.useful().get() as f64;
        let rate = if self.ahead.is_zero() || useful == 0.0 {
            self.rate(|reader| reader.useful.get())
        } else {
            let ahead = self.ahead.get() as f64;
            let cpu = (self.cpu.user + self.cpu.system).as_secs_f64();
            // The readers would need at least the time to copy it from the cache.
            let copying = cpu * ahead / useful / self.readers.len() as f64;
            self.dilation * (useful + ahead) / (self.settled.as_secs_f64() + copying)
        };
        BytesPerSecond::new(rate).unwrap_or_default()
    }

    /// Returns requests/s in the storage's own time; each reader counts with its own elapsed time.
    pub fn requests_per_second(&self) -> f64 {
        self.rate(|reader| reader.requests)
    }

    fn rate(&self, amount: impl Fn(&ReaderSample) -> u64) -> f64 {
        let active = self.readers.iter().filter(|reader| reader.elapsed > Nanos::ZERO);
        let rate: f64 =
            active.map(|reader| amount(reader) as f64 / reader.elapsed.as_secs_f64()).sum();
        rate * self.dilation
    }

    /// Returns the latency quantile `q` of all requests, in the storage's own time.
    pub fn latency_quantile(&self, q: f64) -> Option<Nanos> {
        let (stream, random) = (&self.stream.latency, &self.random.latency);
        // Avoids a clone: a histogram takes hundreds of KiB, and most trials have one class.
        if random.count() == 0 || stream.count() == 0 {
            return self.undilated(stream.quantile(q).or_else(|| random.quantile(q)));
        }
        let mut all = stream.clone();
        all.merge(random);
        self.undilated(all.quantile(q))
    }

    /// Like [`Sample::latency_quantile`], for random requests only.
    pub fn random_latency_quantile(&self, q: f64) -> Option<Nanos> {
        self.undilated(self.random.latency.quantile(q))
    }

    fn undilated(&self, wall: Option<Nanos>) -> Option<Nanos> {
        wall.map(|wall| wall.scaled(1.0 / self.dilation))
    }

    /// Returns the data read from the device per byte that the readers received or that was read
    /// ahead for their streams. For writers, the data read and written per requested byte. `None`
    /// without a device or data.
    pub fn amplification(&self) -> Option<f64> {
        let useful = self.useful() + self.ahead;
        let device = self.device?;
        if !self.moved.is_zero() {
            let both = device.bytes + device.write_bytes;
            return Some(both.get() as f64 / self.moved.get() as f64);
        }
        (!useful.is_zero()).then(|| device.bytes.get() as f64 / useful.get() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(dilation: f64) -> Sample {
        let reader = |mib, seconds| ReaderSample {
            requests: mib * 16,
            useful: Bytes::from_mib(mib),
            elapsed: Nanos::from_secs(seconds),
        };
        let mut stream = ClassSample::default();
        stream.latency.record(Nanos::from_millis(8));
        let mut random = ClassSample::default();
        random.latency.record(Nanos::from_millis(80));
        let cold = ColdProof { evictions: 1, ..ColdProof::new(ResidencyMethod::Cachestat) };
        Sample {
            elapsed: Nanos::from_secs(10),
            readers: vec![reader(100, 10), reader(40, 20)],
            stream,
            random,
            cpu: CpuTime { user: Nanos::from_millis(100), system: Nanos::from_millis(348) },
            device: Some(DeviceDelta { bytes: Bytes::from_mib(280), ..DeviceDelta::default() }),
            settled: Nanos::from_secs(20),
            disturbances: vec![Disturbance::CacheDropped { times: 2 }],
            ..Sample::new("seq-2", 1, dilation, cold)
        }
    }

    #[test]
    fn each_reader_counts_with_its_own_time() {
        assert!((sample(1.0).throughput().as_mib() - 12.0).abs() < 1e-9);
        assert!((sample(1.0).requests_per_second() - 192.0).abs() < 1e-9);
        assert_eq!(sample(1.0).amplification(), Some(2.0));
    }

    #[test]
    fn what_streams_would_get_next_counts_with_the_time_it_took() {
        let ahead = Sample { ahead: Bytes::from_mib(140), ..sample(2.0) };
        // 140 MiB received and 140 MiB read ahead in 20 s, and 448 ms of copying by two readers.
        let expected = 2.0 * 280.0 / (20.0 + 0.224);
        assert!((ahead.throughput().as_mib() - expected).abs() < 1e-9);
        assert_eq!(ahead.amplification(), Some(1.0));
    }

    #[test]
    fn dilation_is_taken_out_of_time_and_only_of_time() {
        let slow = sample(8.0);
        assert!((slow.throughput().as_mib() - 96.0).abs() < 1e-9);
        assert_eq!(slow.amplification(), Some(2.0));
        let near = |found: Option<Nanos>, millis: f64| {
            let found = found.unwrap().as_millis_f64();
            assert!((found - millis).abs() < millis / 500.0, "{found}");
        };
        near(slow.latency_quantile(0.5), 1.0);
        near(slow.latency_quantile(1.0), 10.0);
        near(slow.undilated(slow.stream.latency.quantile(1.0)), 1.0);
        near(slow.random_latency_quantile(0.5), 10.0);
    }

    #[test]
    fn it_is_stored_and_read_back() {
        let text = serde_json::to_string(&sample(1.0)).unwrap();
        let again: Sample = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        assert_eq!(again.disturbances, sample(1.0).disturbances);
        assert!(text.contains("\"kind\":\"cache_dropped\""), "{text}");
    }

    #[test]
    fn a_trial_without_requests_has_no_rates() {
        let empty = Sample { readers: vec![ReaderSample::default()], ..sample(1.0) };
        assert!(empty.throughput().get() == 0.0);
        assert_eq!(empty.amplification(), None);
    }
}
