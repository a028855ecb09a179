//! Properties of a device, learned from its completed reads.

use crate::tuning::Tuning;
use policy::DeviceCompletions;
use units::{Bytes, Nanos};

/// The learned properties of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LearnedDevice {
    before: Option<DeviceCompletions>,
    /// The highest rate so far, in bytes per second. It decays, as a device may become slower.
    rate: f64,
    /// The most bytes per second of service time so far. It decays likewise.
    service_rate: f64,
    /// The shortest mean time of a read, in seconds, and the mean size of those reads, in bytes.
    latency: f64,
    latency_bytes: f64,
    /// The highest mean number of reads in flight.
    parallel: f64,
    /// The bytes that were read over the last interval.
    now: Bytes,
}

impl LearnedDevice {
    /// Updates the properties from the cumulative completions after an interval.
    pub fn learn(&mut self, after: DeviceCompletions, elapsed: Nanos, tuning: &Tuning) {
        let Some(before) = self.before.replace(after) else { return };
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let kept = 0.5_f64.powf(seconds / tuning.best_half_life().as_secs_f64());
        self.now = after.bytes.saturating_sub(before.bytes);
        let reads = after.reads.saturating_sub(before.reads) as f64;
        let time = after.time.saturating_sub(before.time).as_secs_f64();
        self.rate = (self.rate * kept).max(self.now.get() as f64 / seconds);
        self.parallel = (self.parallel * kept).max(time / seconds);
        self.service_rate *= kept;
        if reads > 0.0 && time > 0.0 {
            if reads >= tuning.min_samples as f64 {
                self.service_rate = self.service_rate.max(self.now.get() as f64 / time);
            }
            let latency = time / reads;
            if self.latency == 0.0 || latency <= self.latency / kept {
                (self.latency, self.latency_bytes) = (latency, self.now.get() as f64 / reads);
            } else {
                self.latency /= kept;
            }
        }
    }

    /// Returns the highest rate so far, in bytes per second.
    pub fn rate(&self) -> Bytes {
        Bytes::new(self.rate as u64)
    }

    /// Returns the estimated rate of sequential reads, in bytes per second.
    ///
    /// A single reader leaves a device idle between its reads, so a flash device is faster than any
    /// rate so far: at least as fast as the service times of its reads. Those of a rotating disk
    /// may be of reads from its own cache.
    pub fn sequential_rate(&self, rotates: bool) -> Bytes {
        let rate = if rotates { self.rate } else { self.rate.max(self.service_rate) };
        Bytes::new(rate as u64)
    }

    /// Returns the bytes that were read over the last interval.
    pub(super) fn now(&self) -> Bytes {
        self.now
    }

    /// Returns the shortest mean time of a read.
    pub fn latency(&self) -> Nanos {
        Nanos::from_secs_f64(self.latency)
    }

    /// Returns the part of a read's time that does not depend on its size, and the time to transfer
    /// `bytes`, at `rate_factor` times the highest rate so far.
    pub(super) fn times(&self, bytes: Bytes, rate_factor: f64, tuning: &Tuning) -> (Nanos, Nanos) {
        // Small reads of a single reader do not show the rate of a device.
        let rate = (self.rate * rate_factor).max(tuning.min_stream_rate.get());
        let fixed = (self.latency - self.latency_bytes / rate).max(tuning.min_share * self.latency);
        (Nanos::from_secs_f64(fixed), Nanos::from_secs_f64(bytes.get() as f64 / rate))
    }

    /// Returns the highest mean number of reads in flight.
    pub fn parallelism(&self) -> f64 {
        self.parallel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_latency_are_the_best_that_was_seen() {
        let mut device = LearnedDevice::default();
        let mut done = DeviceCompletions::default();
        for (reads, kib, ms) in [(0, 0, 0), (100, 12_800, 1000), (100, 102_400, 9000), (0, 0, 0)] {
            done.reads += reads;
            done.bytes += Bytes::from_kib(kib);
            done.time += Nanos::from_millis(ms);
            device.learn(done, Nanos::from_secs(1), &Tuning::DEFAULT);
        }
        assert!((99.0..=100.0).contains(&device.rate().as_mib()), "{device:?}");
        assert!((10.0..11.0).contains(&device.latency().as_millis_f64()), "{device:?}");
        assert!(device.parallelism() > 8.9);
        assert_eq!(device.sequential_rate(true), device.rate());
        assert_eq!(device.sequential_rate(false), device.rate());
        // A read of 128 KiB takes 10 ms, of which the transfer takes 1.25 ms.
        let read = |kib| {
            let (fixed, transfer) = device.times(Bytes::from_kib(kib), 1.0, &Tuning::DEFAULT);
            (fixed + transfer).as_millis_f64()
        };
        assert!((8.7..8.85).contains(&read(4)), "{}", read(4));
        assert!((18.6..18.9).contains(&read(1024)), "{}", read(1024));
    }

    #[test]
    fn a_flash_device_that_idles_between_reads_is_faster_than_its_reader() {
        let mut device = LearnedDevice::default();
        device.learn(DeviceCompletions::default(), Nanos::from_secs(1), &Tuning::DEFAULT);
        // In one second, 400 reads of 128 KiB take 0.5 ms each.
        let time = Nanos::from_millis(200);
        let done = DeviceCompletions { reads: 400, bytes: Bytes::from_mib(50), time };
        device.learn(done, Nanos::from_secs(1), &Tuning::DEFAULT);
        assert!((49.0..=50.0).contains(&device.sequential_rate(true).as_mib()), "{device:?}");
        assert!((249.0..=250.0).contains(&device.sequential_rate(false).as_mib()), "{device:?}");
    }
}
