//! Fits a specification to the timings of probes.

use serde::Serialize;
use units::Bytes;

use super::plan::{CHUNKS_KIB, PLACES};
use super::{Measured, Purpose, Timing, probes, run};
use crate::array::{ArraySpec, Level, ReadPolicy};
use crate::drive::{DriveSpec, QueueOrder};
use crate::flash::FlashSpec;
use crate::volume::VolumeSpec;
use crate::{DeviceSpec, HostLimits, Spec, SpecError};
use units::Nanos;

/// A fitted model, and how it agrees with the measurements.
#[derive(Clone, Debug)]
pub struct ModelCalibration {
    pub spec: Spec,
    pub findings: Vec<String>,
    /// The result of each probe on the device and on the model.
    pub agreement: Vec<ProbeAgreement>,
}

/// The result of a probe on the device and on the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeAgreement {
    pub purpose: Purpose,
    /// The unit of `measured` and `model`.
    pub unit: &'static str,
    pub measured: f64,
    pub model: f64,
}

/// Common rotational speeds in revolutions per minute.
const RPM: [f64; 5] = [4200.0, 5400.0, 7200.0, 10_000.0, 15_000.0];
const MEMBERS: [usize; 10] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24];
/// A disk's stream rate at the start of the device is at least this many times the rate at the end.
const MIN_ZONE_RATIO: f64 = 1.12;
/// The shortest rotation time of a disk, in milliseconds, as estimated from near random reads.
const MIN_ROTATION_MS: f64 = 3.0;
/// The maximum number of requests per second of a volume with a limit, at depth 32.
const VOLUME_IOPS_MOST: f64 = 25_000.0;
/// The maximum latency of a local drive's random read, in milliseconds.
const LOCAL_MS: f64 = 0.25;
/// The assumed rate of the bus to the host in MB/s: faster than any disk.
const BUS_MB_S: f64 = 600.0;
/// The assumed variation of a command's overhead in milliseconds; the probes do not show it.
const JITTER_MS: f64 = 0.05;
/// The mean of √x, if x is the distance of two places within a thousandth of the device.
const NEAR_ROOT: f64 = 0.016_87;
/// The random seed of candidate models.
const MODEL_SEED: u64 = 1;

/// Returns the model that agrees best with the probes of a device of `capacity` behind `host`.
///
/// # Errors
///
/// If a probe is missing, or no model fits the timings.
pub fn fit(
    name: &str,
    capacity: Bytes,
    host: HostLimits,
    measured: &Measured,
) -> Result<ModelCalibration, SpecError> {
    let view = View::new(capacity, host, measured)?;
    let (device, findings) = if view.is_mechanical() {
        mechanical(&view)?
    } else if view.is_volume() {
        volume(&view)
    } else {
        flash(&view)
    };
    let spec = Spec {
        name: name.to_owned(),
        summary: "calibrated from probes".to_owned(),
        sources: vec!["measured by foreread calibrate".to_owned()],
        host: view.host.clone(),
        device,
    };
    let agreement = agreement(&spec, &view)?;
    Ok(ModelCalibration { spec, findings, agreement })
}

struct View<'a> {
    capacity: Bytes,
    host: HostLimits,
    measured: &'a Measured,
    /// Rates in MB/s at start, middle and end, without the first seek.
    rates: [f64; 3],
    near_ms: f64,
    /// Time of a rotation, estimated from the variance of reads near one place.
    turn_ms: f64,
    random_ms: f64,
}

impl<'a> View<'a> {
    fn new(capacity: Bytes, host: HostLimits, measured: &'a Measured) -> Result<Self, SpecError> {
        let missing = |purpose: Purpose| SpecError::NoFit {
            problem: format!("nothing was measured for {purpose:?}"),
        };
        let mut rates = [0.0; 3];
        for (rate, place) in rates.iter_mut().zip(PLACES) {
            let purpose = Purpose::Stream(place);
            *rate = measured.of(purpose).ok_or_else(|| missing(purpose))?.steady_mb_s();
        }
        let near = measured.of(Purpose::Near).ok_or_else(|| missing(Purpose::Near))?.settled();
        let random = Purpose::Queue(1);
        let random_ms = measured.mean_ms(random).ok_or_else(|| missing(random))?;
        // Each read near one place waits for a uniformly distributed part of a rotation.
        let beside = CHUNKS_KIB.iter().filter_map(|&kib| measured.of(Purpose::WithinChunk(kib)));
        let timings = beside.map(Timing::settled).chain([near.clone()]);
        let variances: Vec<f64> = timings.map(|timing| timing.deviation_ms().powi(2)).collect();
        let variance = variances.iter().sum::<f64>() / variances.len() as f64;
        let turn_ms = (12.0 * variance).sqrt();
        Ok(Self { capacity, host, measured, rates, near_ms: near.mean_ms(), turn_ms, random_ms })
    }

    fn is_mechanical(&self) -> bool {
        let zones = self.rates[0] > MIN_ZONE_RATIO * self.rates[2];
        let moves = self.random_ms > 1.1 * self.near_ms;
        self.turn_ms > MIN_ROTATION_MS && (zones || moves)
    }

    fn is_volume(&self) -> bool {
        let busy = self.measured.requests_s(Purpose::Queue(32)).unwrap_or(f64::MAX);
        self.random_ms > LOCAL_MS && busy < VOLUME_IOPS_MOST
    }

    /// Returns the cost of crossing a multiple of each chunk size, and its error, in milliseconds.
    fn crossings(&self) -> Vec<(f64, f64)> {
        let cost = |kib: u32| {
            let across = self.measured.of(Purpose::Across(kib))?.settled();
            let beside = self.measured.of(Purpose::WithinChunk(kib))?.settled();
            let error = across.error_ms().hypot(beside.error_ms());
            Some((across.mean_ms() - beside.mean_ms(), error))
        };
        CHUNKS_KIB.iter().map(|&kib| cost(kib).unwrap_or((0.0, 1.0))).collect()
    }

    /// Returns the most likely chunk size: crossings of smaller multiples are free, and a crossing
    /// of larger ones costs as much as two drives take longer than one. If one drive is the part d
    /// of a rotation behind the other, that is d (1 - d) rotations: a sixth on average for unknown
    /// d, between zero and a quarter. `None` if no crossing has a cost.
    fn chunk(&self) -> Option<Bytes> {
        let costs = self.crossings();
        let full = self.turn_ms / 6.0;
        let misfit = |at: &usize| -> f64 {
            let one = |(place, &(cost, error)): (usize, &(f64, f64))| {
                let error = error.max(1e-3);
                let (expected, spread) =
                    if place < *at { (0.0, error) } else { (full, error.hypot(full / 2.0)) };
                ((cost - expected) / spread).powi(2) + 2.0 * spread.ln()
            };
            costs.iter().enumerate().map(one).sum()
        };
        let at = (0..=costs.len()).min_by(|a, b| misfit(a).total_cmp(&misfit(b)))?;
        CHUNKS_KIB.get(at).map(|&kib| Bytes::from_kib(u64::from(kib)))
    }
}

/// Fits one drive or an array of drives.
fn mechanical(view: &View<'_>) -> Result<(DeviceSpec, Vec<String>), SpecError> {
    let off = |rpm: &f64| (60_000.0 / rpm / view.turn_ms).ln().abs();
    let rpm = RPM.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(7200.0);
    let chunk = view.chunk();
    let mut best: Option<(f64, DeviceSpec, String)> = None;
    for structure in structures(chunk) {
        for (queue_order, ageing) in
            [(QueueOrder::Nearest, 0.02), (QueueOrder::Nearest, 0.3), (QueueOrder::Fifo, 0.0)]
        {
            for read_ahead_when_queued in [true, false] {
                let member = DriveSpec {
                    queue_order,
                    ageing,
                    read_ahead_when_queued,
                    ..drive(view, rpm, structure)
                };
                let device = structure.of(member, chunk);
                // RAID 1 is accepted only with a better fit than one drive.
                let score = score(&device, view)? * structure.score_factor();
                if best.as_ref().is_none_or(|best| score < best.0) {
                    best = Some((score, device, structure.to_string()));
                }
            }
        }
    }
    let (_, device, words) =
        best.ok_or_else(|| SpecError::NoFit { problem: "no array fits these times".to_owned() })?;
    let chunk = chunk.map_or("no chunk boundary".to_owned(), |chunk| format!("chunks of {chunk}"));
    let [start, _, end] = view.rates;
    let findings = vec![
        format!("turns at {rpm} rpm: reads near one place differ by {:.1} ms", view.turn_ms),
        format!("{start:.0} MB/s at the start, {end:.0} MB/s at the end"),
        format!("{words}, {chunk}"),
    ];
    Ok((device, findings))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Structure {
    level: Option<Level>,
    members: usize,
}

impl std::fmt::Display for Structure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.level {
            None => f.write_str("one drive"),
            Some(level) => write!(f, "like {} drives in {level:?}", self.members),
        }
    }
}

/// Returns the possible structures of a device with or without chunks, simplest first.
fn structures(chunk: Option<Bytes>) -> Vec<Structure> {
    let some = |level, members| Structure { level: Some(level), members };
    if chunk.is_none() {
        return vec![Structure { level: None, members: 1 }, some(Level::Raid1, 2)];
    }
    let stripes = MEMBERS.iter().map(|&members| some(Level::Raid0, members));
    let mirrors = MEMBERS.iter().filter(|&&members| members >= 4 && members % 2 == 0);
    stripes.chain(mirrors.map(|&members| some(Level::Raid10, members))).collect()
}

impl Structure {
    /// Returns the factor on the score, by which RAID 1 must fit better than one drive.
    fn score_factor(self) -> f64 {
        if self.level == Some(Level::Raid1) { 1.2 } else { 1.0 }
    }

    /// Returns the number of drives that serve a stream concurrently.
    fn columns(self) -> usize {
        match self.level {
            Some(Level::Raid10) => self.members / 2,
            Some(Level::Raid1) | None => 1,
            Some(_) => self.members,
        }
    }

    fn of(self, member: DriveSpec, chunk: Option<Bytes>) -> DeviceSpec {
        let Some(level) = self.level else { return DeviceSpec::Hdd(member) };
        let mut array = ArraySpec::new(level, self.members, chunk.unwrap_or(Bytes::from_kib(64)));
        array.read_policy = ReadPolicy::ShortestQueue;
        array.member = Box::new(DeviceSpec::Hdd(member));
        DeviceSpec::Array(array)
    }
}

/// Derives the specification of one drive of the structure.
fn drive(view: &View<'_>, rpm: f64, structure: Structure) -> DriveSpec {
    let columns = structure.columns() as f64;
    let transfer = 4096.0 / (view.rates[0] / columns).max(0.1) / 1e3;
    let fixed = 30_000.0 / rpm + transfer + JITTER_MS / 2.0;
    let floor = (view.near_ms - fixed).max(0.1);
    let small = view.measured.of(Purpose::SmallStream).map_or(0.2, Timing::median_ms);
    let hit = (small - 4096.0 / BUS_MB_S / 1e3 - JITTER_MS / 2.0).clamp(0.001, 2.0);
    // The time of a cached command. Other commands take hardly less, and the probes cannot
    // distinguish additional time from the shortest seek.
    let overhead = hit.min(floor / 2.0);
    let seek = |ms: f64| (ms - fixed - overhead).max(0.05);
    let average = seek(view.random_ms);
    // In an array, the distance of two offsets does not determine a seek.
    let alone = structure.level.is_none();
    let full = view.measured.mean_ms(Purpose::Distance(1000)).filter(|_| alone).map(seek);
    let full = full.filter(|full| *full > average).unwrap_or(1.9 * average);
    // Near one place the arm moves a little, too. For the seek curve a + b √x + c x with this mean
    // and this full stroke, b is 5 (average - full / 3 - 2 a / 3). Within a thousandth of the
    // device, √x is NEAR_ROOT on average, and c x is negligible.
    let far = 5.0 * NEAR_ROOT * (average - full / 3.0);
    let track = ((floor - overhead - far) / (1.0 - 5.0 * NEAR_ROOT * 2.0 / 3.0)).max(0.05);
    let average = average.max(track);
    let full = full.max(average);
    let [outer, _, inner] = view.rates.map(|rate| (rate / columns).max(0.1));
    let capacity = (view.capacity.get() as f64 / columns) as u64 / 4096 * 4096;
    DriveSpec {
        seek_full_ms: Some(full),
        overhead_ms: overhead,
        hit_overhead_ms: Some(hit),
        bus_mb_s: BUS_MB_S,
        queue_depth: 32,
        jitter_ms: JITTER_MS,
        ..DriveSpec::new(
            Bytes::new(capacity),
            rpm,
            [track, average],
            [outer.max(inner), inner.min(outer)],
        )
    }
}

/// Returns the misfit of a candidate: the mean squared logarithm of the ratios to the measurements.
fn score(device: &DeviceSpec, view: &View<'_>) -> Result<f64, SpecError> {
    let wanted = |purpose: &Purpose| {
        let far = Purpose::Distance(1000);
        matches!(
            purpose,
            Purpose::Queue(_) | Purpose::SmallStream | Purpose::Interleaved(_) | Purpose::Stream(0)
        ) || *purpose == far
    };
    let mut model = device.build(MODEL_SEED)?;
    let (mut now, mut sum, mut count) = (Nanos::ZERO, 0.0, 0.0);
    for probe in
        probes(view.capacity, MODEL_SEED).into_iter().filter(|probe| wanted(&probe.purpose))
    {
        let Some(measured) = view.measured.of(probe.purpose) else { continue };
        let (timing, end) = run(model.as_mut(), &probe, now);
        now = end + Nanos::from_millis(100);
        // At each chunk of an array, a stream of single pages may wait for part of a rotation: a
        // random time, as long as hundreds of cached pages. So use the median.
        let ratio = match probe.purpose {
            Purpose::SmallStream => measured.median_ms() / timing.median_ms().max(1e-9),
            _ => timing.steady_mb_s() / measured.steady_mb_s().max(1e-9),
        };
        sum += ratio.max(1e-9).ln().powi(2);
        count += 1.0;
    }
    Ok(sum / f64::max(count, 1.0))
}

fn flash(view: &View<'_>) -> (DeviceSpec, Vec<String>) {
    let alone_us = view.random_ms * 1e3;
    let busy = view.measured.requests_s(Purpose::Queue(32)).unwrap_or(1e6 / alone_us);
    let link = view.rates.iter().copied().fold(1.0, f64::max);
    let transfer_us = 4096.0 / link;
    let read_us = (0.8 * (alone_us - transfer_us)).max(1.0);
    let firmware_us = (alone_us - transfer_us - read_us).max(0.1);
    // The throughput at depth 32 is a lower bound: the device may have more dies.
    let scaling = busy * alone_us / 1e6;
    let dies = if scaling > 16.0 { 64 } else { (scaling * 0.9).round().max(1.0) as usize };
    // Reads of this page size on all dies must be able to saturate the link.
    let page = (link * read_us / dies as f64).clamp(4096.0, 65_536.0) as u64;
    let page = Bytes::new(page.next_power_of_two());
    let device = FlashSpec {
        capacity: view.capacity,
        dies,
        page,
        read_us,
        read_spread: 0.1,
        program_us: 10.0 * read_us,
        firmware_us,
        command_us: 0.5,
        link_mb_s: link,
        write_buffer: Bytes::from_mib(64),
        queue_depth: 1024,
    };
    let findings = vec![
        format!("no moving parts: {alone_us:.0} µs for a random read alone"),
        format!("{busy:.0} random reads a second with 32 at a time, {link:.0} MB/s"),
    ];
    (DeviceSpec::Flash(device), findings)
}

/// Fits a volume behind a network, with its limits.
fn volume(view: &View<'_>) -> (DeviceSpec, Vec<String>) {
    // From many requests, because the first few pass before a limit takes effect.
    let most = view.measured.requests_s(Purpose::Queue(32)).unwrap_or(0.0);
    let alone = 1e3 / view.random_ms;
    // Without a limit, the rate at depth 32 would be about 32 times that at depth 1.
    let iops = if most < 24.0 * alone { most } else { 0.0 };
    let mib_s = view.rates.iter().copied().fold(f64::MAX, f64::min) * 1e6 / f64::from(1 << 20);
    let small = view.measured.mean_ms(Purpose::SmallStream);
    let device = VolumeSpec {
        capacity: view.capacity,
        latency_ms: view.random_ms,
        sequential_latency_ms: small.map(|small| small.min(view.random_ms)),
        latency_spread: 0.1,
        iops,
        iops_burst: 8.0,
        throughput_mib_s: mib_s,
        throughput_burst: Bytes::from_mib(1),
        accounting: Bytes::from_kib(256),
        random_charge: Bytes::ZERO,
        concurrency: 64,
        link_mib_s: 0.0,
        stream_mib_s: 0.0,
    };
    let findings = vec![
        format!("a volume behind a network: {:.2} ms for a random read alone", view.random_ms),
        format!("at most {most:.0} random reads a second and {mib_s:.0} MiB/s"),
    ];
    (DeviceSpec::Volume(device), findings)
}

fn agreement(spec: &Spec, view: &View<'_>) -> Result<Vec<ProbeAgreement>, SpecError> {
    let mut model = spec.build(MODEL_SEED)?;
    let mut now = Nanos::ZERO;
    let mut agreement = Vec::new();
    for probe in probes(view.capacity, MODEL_SEED) {
        let Some(measured) = view.measured.of(probe.purpose) else { continue };
        let (timing, end) = run(model.as_mut(), &probe, now);
        now = end + Nanos::from_millis(100);
        type Figure = fn(&Timing) -> f64;
        let (unit, figure): (_, Figure) = match probe.purpose {
            Purpose::Stream(_) | Purpose::SmallStream | Purpose::Interleaved(_) => {
                ("MB/s", Timing::steady_mb_s)
            }
            Purpose::Queue(_) => ("requests/s", Timing::requests_s),
            _ => ("ms", Timing::mean_ms),
        };
        let (purpose, measured, model) = (probe.purpose, figure(measured), figure(&timing));
        agreement.push(ProbeAgreement { purpose, unit, measured, model });
    }
    Ok(agreement)
}
