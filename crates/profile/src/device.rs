//! The model of the device below a file: named by the user, or measured.

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

/// A device model for the simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    pub spec: Spec,
    /// Factor by which the device is slower than its model, as a virtual disk may be.
    pub dilation: f64,
}

impl DeviceModel {
    /// Creates a model with a dilation of 1.
    pub fn new(spec: Spec) -> Self {
        Self { spec, dilation: 1.0 }
    }
}

/// The device model that predicts gains.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelChoice {
    Named(Box<DeviceModel>),
    /// Known models of some devices. Other devices are measured with direct reads of the file, in
    /// six measurements of at most 120 ms each.
    Measured(BTreeMap<DevNo, DeviceModel>),
    /// Gains are not predicted.
    None,
}

impl ModelChoice {
    /// Selects the model with this name, or the model in this file.
    ///
    /// # Errors
    ///
    /// If there is no such model.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Ok(Self::Named(Box::new(DeviceModel::new(Spec::named(name)?))))
    }
}

const SMALL_READ: usize = 4096;
const LARGE_READ: usize = 1 << 20;
const MEDIUM_READ: usize = 128 << 10;
/// Maximum duration of each measurement.
const MEASURE_TIME: Duration = Duration::from_millis(120);
const MAX_READS: u64 = 64;
/// Number of concurrent readers in the test for parallel service.
const PARALLEL_READERS: u64 = 8;

/// A file opened with `O_DIRECT`.
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

    /// Returns the lower quartile of the read times in seconds; `place` gives each read's offset.
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
        // The first read may include a seek.
        let skipped = usize::from(times.len() > 2);
        let times = &mut times[skipped..];
        times.sort_unstable();
        // The lower quartile, because other processes use the machine too.
        let quartile = times.get(times.len() / 4)?;
        Some(*quartile as f64 / 1e9)
    }

    /// Returns the number of random reads per second with this many concurrent readers.
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

/// Returns a pseudo-random number that is the same in each run (SplitMix64).
pub(crate) fn scattered(index: u64) -> u64 {
    let mut word = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 31)
}

/// Latencies in seconds of recorded requests alone in the queue, without the transfer time.
struct RecordedLatencies {
    random: Option<f64>,
    sequential: Option<f64>,
}

/// Minimum number of requests for a recorded latency.
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

/// Returns a volume with the rates that direct reads of this file achieve. Latencies come from the
/// recorded requests if there are enough, because these have the program's pattern. Returns `None`
/// if the file is missing, smaller than 4 MiB or on a file system without direct reads.
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
    // The values replace the provider's limits of the preset.
    let mut spec = Spec::preset("cloud-ssd")?;
    values.iter().try_for_each(|(key, value)| spec.set(key, value)).ok()?;
    spec.name = "measured".to_owned();
    spec.validate().is_ok().then(|| DeviceModel::new(spec))
}

/// Returns the number of requests served in parallel, given the speed-up of eight readers over one.
/// A device that keeps eight readers busy may serve more: 32 is assumed.
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
        // Not every file system supports direct reads.
        if let Some(learnt) = learnt_model(&path, &[]) {
            assert!(learnt.spec.validate().is_ok());
        }
        assert!(learnt_model(dir.path(), &[]).is_none(), "a directory");
    }
}
