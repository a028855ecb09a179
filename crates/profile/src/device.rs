//! A model of the device below a file: one that the user names, or rates that are measured.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use host::DevNo;
use model::Spec;
use rustix::fs::{Mode, OFlags, open};

use crate::error::ProfileError;
use crate::recording::IoRequest;
use crate::shape::median;

/// A device in the simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    pub spec: Spec,
    /// How many times slower than its model the device is, as a virtual disk may be.
    pub dilation: f64,
}

impl DeviceModel {
    /// As fast as its model.
    pub fn new(spec: Spec) -> Self {
        Self { spec, dilation: 1.0 }
    }
}

/// Which device model predicts gains.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelChoice {
    Named(Box<DeviceModel>),
    /// Those of these devices are known; of others, rates are measured with direct reads of the
    /// file, for half a second at most.
    Measured(BTreeMap<DevNo, DeviceModel>),
    /// No prediction.
    None,
}

impl ModelChoice {
    /// The model of this name, or in this file.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Ok(Self::Named(Box::new(DeviceModel::new(Spec::named(name)?))))
    }
}

const SMALL_READ: usize = 4096;
const LARGE_READ: usize = 1 << 20;
const MEDIUM_READ: usize = 128 << 10;
/// Time for each of the measurements.
const MEASURE_TIME: Duration = Duration::from_millis(120);
const MAX_READS: u64 = 64;
/// Readers at the same time, to see whether the device serves several.
const PARALLEL_READERS: u64 = 8;

/// Direct reads of one file.
struct DirectFile {
    file: File,
    size: u64,
}

impl DirectFile {
    fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(open(path, flags, Mode::empty()).ok()?);
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        (size >= 4 * LARGE_READ as u64).then_some(Self { file, size })
    }

    /// The mean seconds of a read of this length at places that `place` gives.
    fn seconds(&self, length: usize, place: impl Fn(u64) -> u64) -> Option<f64> {
        let mut room = vec![0_u8; length + SMALL_READ];
        let start = room.as_ptr().align_offset(SMALL_READ);
        let buffer = room.get_mut(start..start + length)?;
        let mut times = Vec::new();
        let began = Instant::now();
        for index in 0..MAX_READS {
            let room = self.size - length as u64;
            let offset = place(index) % room / SMALL_READ as u64 * SMALL_READ as u64;
            let at = Instant::now();
            self.file.read_exact_at(buffer, offset).ok()?;
            times.push(at.elapsed().as_nanos() as u64);
            if began.elapsed() > MEASURE_TIME {
                break;
            }
        }
        // The first one may seek.
        let skipped = usize::from(times.len() > 2);
        let times = &mut times[skipped..];
        times.sort_unstable();
        // The lower quartile: others use the machine, too.
        let quartile = times.get(times.len() / 4)?;
        Some(*quartile as f64 / 1e9)
    }

    /// How many reads at random a second, by so many readers.
    fn random_rate(&self, readers: u64) -> Option<f64> {
        let read = |reader: u64| {
            let count = std::cell::Cell::new(0_u64);
            let began = Instant::now();
            self.seconds(SMALL_READ, |index| {
                count.set(count.get() + 1);
                scattered(index + reader * 1000 + readers * 77)
            })?;
            Some(count.get() as f64 / began.elapsed().as_secs_f64())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..readers).map(|one| scope.spawn(move || read(one))).collect();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).sum()
        })
    }
}

/// Numbers without order, the same each time (SplitMix64).
pub(crate) fn scattered(index: u64) -> u64 {
    let mut word = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 31)
}

/// Latencies of requests that were alone in the queue, without the time for their bytes.
struct RecordedLatencies {
    random: Option<f64>,
    sequential: Option<f64>,
}

/// Requests below which recorded latencies say nothing.
const MIN_REQUESTS: usize = 8;

impl RecordedLatencies {
    fn new(requests: &[IoRequest], seconds_per_byte: f64) -> Self {
        let (mut random, mut sequential) = (Vec::new(), Vec::new());
        let mut end = None;
        for request in requests.iter().filter(|request| request.is_read) {
            let follows = end == Some(request.sector);
            end = Some(request.sector + request.length.get() / units::SECTOR_BYTES);
            if request.depth > 1 {
                continue;
            }
            let transfer = request.length.get() as f64 * seconds_per_byte;
            let latency = (request.service.as_secs_f64() - transfer).max(1e-9);
            let latencies = if follows { &mut sequential } else { &mut random };
            latencies.push((latency * 1e9) as u64);
        }
        let middle = |latencies: &mut Vec<u64>| {
            (latencies.len() >= MIN_REQUESTS).then(|| median(latencies) as f64 / 1e9)
        };
        Self { random: middle(&mut random), sequential: middle(&mut sequential) }
    }
}

/// A volume with the rates that direct reads of this file show, and with the latencies of the
/// recorded requests where there are enough of them, as they are those of the pattern; `None` if
/// the file is too small, gone, or on a file system without direct reads.
pub fn learnt_model(path: &Path, requests: &[IoRequest]) -> Option<DeviceModel> {
    let file = DirectFile::open(path)?;
    let base = scattered(7);
    let random = file.seconds(SMALL_READ, |index| scattered(index + 500))?;
    let follow =
        file.seconds(SMALL_READ, |index| base % (file.size / 2) + index * SMALL_READ as u64)?;
    let medium = file.seconds(MEDIUM_READ, |index| index * MEDIUM_READ as u64)?;
    let large = file.seconds(LARGE_READ, |index| {
        (MAX_READS * MEDIUM_READ as u64) + index * LARGE_READ as u64
    })?;
    let alone = file.random_rate(1)?;
    let together = file.random_rate(PARALLEL_READERS)?;
    let bytes = (LARGE_READ - MEDIUM_READ) as f64;
    let per_byte = ((large - medium) / bytes).max(large / LARGE_READ as f64 / 4.0);
    let small = SMALL_READ as f64 * per_byte;
    let recorded = RecordedLatencies::new(requests, per_byte);
    let latency = recorded.random.unwrap_or(random - small).max(1e-9);
    let following = recorded.sequential.unwrap_or(follow.min(random) - small).max(1e-9);
    let values = [
        ("capacity", "64TiB".to_owned()),
        ("latency_ms", format!("{:.6}", 1e3 * latency)),
        ("sequential_latency_ms", format!("{:.6}", 1e3 * following)),
        ("latency_spread", "0.0".to_owned()),
        ("iops", "0".to_owned()),
        ("throughput_mib_s", "0".to_owned()),
        ("concurrency", concurrency(together / alone).to_string()),
        ("link_mib_s", format!("{:.3}", 1.0 / per_byte / (1 << 20) as f64)),
        ("max_request", "1280KiB".to_owned()),
    ];
    // A volume without limits of its provider, but for what was measured.
    let mut spec = Spec::preset("cloud-ssd")?;
    values.iter().try_for_each(|(key, value)| spec.set(key, value)).ok()?;
    spec.name = "measured".to_owned();
    spec.validate().is_ok().then(|| DeviceModel::new(spec))
}

/// Requests that are served at once, from how much faster eight readers are than one. A device that
/// keeps eight busy may take more.
fn concurrency(ratio: f64) -> usize {
    match ratio {
        ratio if ratio >= 0.75 * PARALLEL_READERS as f64 => 32,
        ratio => (ratio.round() as usize).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_latencies_are_without_the_transfer() {
        let request = |sector: u64, micros| IoRequest {
            end: units::Nanos::ZERO,
            service: units::Nanos::from_micros(micros),
            device: host::DevNo { major: 7, minor: 1 },
            sector,
            length: units::Bytes::from_kib(4),
            depth: 1,
            is_read: true,
            queued: units::Nanos::ZERO,
            neighbour: None,
        };
        let in_order: Vec<_> = (0..20).map(|index| request(index * 8, 1000)).collect();
        let latencies = RecordedLatencies::new(&in_order, 1e-4 / 4096.0);
        assert!(latencies.random.is_none(), "one is not enough");
        assert!((latencies.sequential.unwrap() - 9e-4).abs() < 1e-6);
        let apart: Vec<_> = (0..20).map(|index| request(index * 800, 1000)).collect();
        assert!(RecordedLatencies::new(&apart, 0.0).sequential.is_none());
    }

    #[test]
    fn a_file_on_a_disk_gives_a_model_that_can_be() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("data");
        std::fs::write(&path, vec![1_u8; 16 << 20]).unwrap();
        // Not every file system has direct reads.
        if let Some(learnt) = learnt_model(&path, &[]) {
            assert!(learnt.spec.validate().is_ok());
        }
        assert!(learnt_model(dir.path(), &[]).is_none(), "a directory");
    }
}
