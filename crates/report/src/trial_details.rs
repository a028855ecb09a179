//! Details behind the figures of a run: counters of each trial, latencies, request sizes and time
//! series. They are collected while the records are read, so that memory need not hold the records.

use std::collections::BTreeMap;

use study::{CellSettings, Trial, TrialRecord, TrialStatus};
use units::Bytes;

/// Number of latency buckets for each power of two.
const LATENCY_BUCKETS: f64 = 4.0;

/// Data of a run that its cells do not contain.
#[derive(Clone, Debug, Default)]
pub struct TrialDetails {
    /// Raw counters by trial number.
    pub(crate) trials: BTreeMap<u32, Raw>,
    /// The combined trials of a cell.
    pub(crate) cells: BTreeMap<(CellSettings, String), Detail>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub useful_mib: f64,
    /// Read-ahead data that was still unused at the end.
    pub ahead_mib: f64,
    pub device_mib: Option<f64>,
    /// Mean size of a device request.
    pub request_kib: Option<f64>,
    /// Mean number of requests in flight.
    pub queue: Option<f64>,
    /// Share of the time with the device busy.
    pub busy: Option<f64>,
    pub cpu_ms: f64,
}

/// The combined trials of one cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    clean: bool,
    /// Number of stream requests by latency bucket.
    pub stream: BTreeMap<i32, u64>,
    /// Number of random requests by latency bucket.
    pub random: BTreeMap<i32, u64>,
    /// Number of device requests by powers of two from 4 KiB; empty if requests were not recorded.
    pub sizes: Vec<u64>,
    /// Sums of the trials' time series, by slot.
    pub course: Vec<TimeSlot>,
    /// Length of a slot in the storage's own time.
    pub slot_seconds: f64,
    /// Other quantities over time, in the order of the record.
    pub series: Vec<Watched>,
}

/// One quantity over time, from all trials of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub name: String,
    pub unit: String,
    /// Seconds since the start of a trial, and values.
    points: Vec<(f64, f64)>,
}

impl Watched {
    /// Returns the means of equal intervals: seconds at their ends, and values.
    pub fn means(&self) -> Vec<(f64, f64)> {
        const INTERVAL_COUNT: usize = 100;
        let end = self.points.iter().map(|(at, _)| *at).fold(0.0, f64::max);
        if end <= 0.0 {
            return self.points.first().copied().into_iter().collect();
        }
        let mut sums = vec![(0.0, 0.0); INTERVAL_COUNT];
        for (at, value) in &self.points {
            // A point at the end of an interval belongs to it despite rounding.
            let place = (at / end * INTERVAL_COUNT as f64 - 1e-9).ceil() as usize;
            let (sum, count) = &mut sums[place.clamp(1, INTERVAL_COUNT) - 1];
            *sum += value;
            *count += 1.0;
        }
        let means = sums.iter().enumerate().filter(|(_, (_, count))| *count > 0.0);
        means
            .map(|(at, (sum, count))| (end * (at + 1) as f64 / INTERVAL_COUNT as f64, sum / count))
            .collect()
    }
}

/// Sums over the trials of a cell for one slot of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeSlot {
    pub trials: f64,
    pub mib: f64,
    pub requests: f64,
    pub moments: f64,
    pub device_mib: f64,
    pub device_requests: f64,
    pub queue: f64,
}

/// Returns the lower bound of a latency bucket, in µs.
pub(crate) fn bucket_us(bucket: i32) -> f64 {
    (f64::from(bucket) / LATENCY_BUCKETS).exp2() / 1e3
}

fn bucket(nanos: f64) -> i32 {
    (nanos.max(1.0).log2() * LATENCY_BUCKETS).floor() as i32
}

impl TrialDetails {
    /// Adds the record of one trial.
    pub fn add(&mut self, trial: &Trial, record: &TrialRecord) {
        self.trials.insert(trial.order, Raw::of(record));
        let clean = trial.status == TrialStatus::Clean;
        let key = (trial.settings.clone(), trial.workload.clone());
        let detail = self.cells.entry(key).or_default();
        // As in all figures, disturbed trials count only if no trial is undisturbed.
        if clean && !detail.clean {
            *detail = Detail { clean, ..Detail::default() };
        }
        if clean == detail.clean {
            detail.add(record);
        }
    }
}

impl Raw {
    fn of(record: &TrialRecord) -> Self {
        let sample = &record.sample;
        let device = sample.device.as_ref();
        let elapsed = |of: f64, time: f64| if time > 0.0 { of / time } else { 0.0 };
        Self {
            useful_mib: sample.useful().as_mib(),
            ahead_mib: sample.ahead.as_mib(),
            device_mib: device.map(|device| device.bytes.as_mib()),
            request_kib: device.map(|device| device.mean_request().get() as f64 / 1024.0),
            queue: device.map(|device| device.mean_queue()),
            busy: device.map(|d| elapsed(d.busy.as_secs_f64(), d.elapsed.as_secs_f64())),
            cpu_ms: (sample.cpu.user + sample.cpu.system).as_millis_f64(),
        }
    }
}

impl Detail {
    fn add(&mut self, record: &TrialRecord) {
        let sample = &record.sample;
        let classes = [(&mut self.stream, &sample.stream), (&mut self.random, &sample.random)];
        for (buckets, class) in classes {
            for (latency, count) in class.latency.counts() {
                let nanos = latency.get() as f64 / sample.dilation;
                *buckets.entry(bucket(nanos)).or_default() += count;
            }
        }
        let sizes = record.virtual_disk.as_ref().map(|disk| disk.read_sizes.as_slice());
        let sizes = sizes.unwrap_or(&sample.request_sizes);
        self.sizes.resize(sizes.len().max(self.sizes.len()), 0);
        for (sum, count) in self.sizes.iter_mut().zip(sizes) {
            *sum += count;
        }
        for series in &sample.series {
            let points = series.points(sample.dilation);
            match self.series.iter_mut().find(|known| known.name == series.name) {
                Some(known) => known.points.extend(points),
                None => self.series.push(Watched {
                    name: series.name.clone(),
                    unit: series.unit.clone(),
                    points: points.collect(),
                }),
            }
        }
        self.add_course(record);
    }

    fn add_course(&mut self, record: &TrialRecord) {
        let (line, dilation) = (&record.sample.timeline, record.sample.dilation);
        if line.slot.get() == 0 || dilation <= 0.0 {
            return;
        }
        self.slot_seconds = line.slot.as_secs_f64() / dilation;
        // The last entry is the final state, which may be anywhere within its slot.
        let slots = line.useful.len().saturating_sub(1);
        self.course
            .resize(slots.max(line.device.len()).max(self.course.len()), TimeSlot::default());
        let (mut useful, mut requests) = (Bytes::ZERO, 0);
        let done = line.useful.iter().zip(&line.requests).take(slots);
        for (slot, (now_useful, now_requests)) in self.course.iter_mut().zip(done) {
            slot.trials += 1.0;
            slot.mib += now_useful.saturating_sub(useful).as_mib();
            slot.requests += now_requests.saturating_sub(requests) as f64;
            (useful, requests) = (*now_useful, *now_requests);
        }
        let mut before = bench::DeviceMoment::default();
        for (slot, moment) in self.course.iter_mut().zip(&line.device) {
            let span = moment.at.saturating_sub(before.at).as_secs_f64() / dilation;
            if span > 0.0 {
                let waited = moment.queue_time.saturating_sub(before.queue_time);
                slot.moments += 1.0;
                slot.device_mib += moment.bytes.saturating_sub(before.bytes).as_mib() / span;
                slot.queue += waited.as_secs_f64() / dilation / span;
                let requests = moment.requests.saturating_sub(before.requests);
                slot.device_requests += requests as f64 / span;
            }
            before = *moment;
        }
    }
}
