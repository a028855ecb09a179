//! Calibration: probes a target, finds the model that agrees best with the probes, and checks how
//! well this model predicts the effect of read-ahead.

use bench::DirectFile;
use host::{Storage, StorageKind, device_facts};
use model::calibrate::{Measured, ModelCalibration, Probe, Timing, fit, probes, run};
use model::{HostLimits, Scheduler};
use serde::Serialize;
use sim::SimMachine;
use units::{Bytes, Kib, Nanos};
use workload::Workload;

use crate::analyse::Cell;
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::{Plan, PlannedWorkload};
use crate::progress::{Progress, ProgressEvent, StudyPhase};
use crate::storage::{DiskUse, LiveTarget, SimulatedSession};
use crate::store::Run;
use crate::target::{Target, TargetSpec};
use crate::trial::{TrialRequest, TrialRunner};

/// Minimum size of a target.
const MIN_SIZE: Bytes = Bytes::from_mib(256);
/// Number of seeds over which a prediction is averaged.
const SEED_COUNT: u64 = 3;

/// The result of calibrating a target.
#[derive(Clone, Debug)]
pub struct CalibrationResult {
    /// The model, and its agreement with the probes.
    pub calibration: ModelCalibration,
    /// Factor by which a virtual disk ran slower than its model; 1 for other targets.
    pub dilation: f64,
}

/// A point of the read-ahead curve, measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    pub workload: String,
    pub read_ahead_kib: Kib,
    pub measured_mib_s: f64,
    /// Throughput of the model in simulation.
    pub predicted_mib_s: f64,
}

/// Probes a target and finds the model that agrees best. In a directory, it probes an unnamed file
/// of `size` and writes nothing else; any other target is probed as a whole.
///
/// # Errors
///
/// If the target cannot be read past the page cache, is too small, or has only figures.
pub fn calibrate(
    target: &Target,
    name: &str,
    size: Bytes,
    seed: u64,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<CalibrationResult, StudyError> {
    let mut subject = Subject::open(target, size, environment, progress)?;
    if subject.capacity() < MIN_SIZE {
        let (has, least) = (subject.capacity().rounded(), MIN_SIZE.rounded());
        return Err(StudyError::Plan(format!("{target} has {has}: probes need {least} or more")));
    }
    progress.step(&ProgressEvent::Phase(StudyPhase::Probing));
    let probes = probes(subject.capacity(), seed);
    let mut measured = Measured::default();
    for (at, probe) in probes.iter().enumerate() {
        progress.step(&ProgressEvent::Probed { done: at, total: probes.len() });
        measured.note(probe.purpose, subject.time(probe, environment)?);
    }
    let (capacity, dilation) = (subject.capacity(), subject.dilation());
    let host = subject.host.clone();
    drop(subject);
    let calibration = fit(name, capacity, host, &measured)
        .map_err(|error| StudyError::Simulation(error.into()))?;
    Ok(CalibrationResult { calibration, dilation })
}

struct Subject {
    host: HostLimits,
    means: Means,
}

enum Means {
    /// A model, with its capacity and its clock.
    Model(Box<dyn model::Device>, Bytes, Nanos),
    /// A real device, or a virtual disk, which is removed when this is dropped.
    Direct(DirectFile, Box<LiveTarget>),
}

impl Subject {
    fn open(
        target: &Target,
        size: Bytes,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<Self, StudyError> {
        match target {
            Target::Simulation(spec) => {
                let machine = spec.get()?;
                let device = machine.model.build(machine.seed).map_err(sim::SimError::from)?;
                let capacity = machine.model.capacity();
                let means = Means::Model(device, capacity, Nanos::ZERO);
                Ok(Self { host: machine.model.host().clone(), means })
            }
            Target::Imported(title) => Err(StudyError::Plan(format!(
                "{title} has only figures: there is nothing to probe"
            ))),
            Target::Virtual(_) | Target::Path(_) => {
                let opened =
                    LiveTarget::open_for(DiskUse::WholeDevice, target, environment, progress)?;
                let storage = &opened.storage;
                let file = match storage.kind {
                    StorageKind::Directory => {
                        progress.step(&ProgressEvent::Phase(StudyPhase::LayingOut));
                        DirectFile::in_directory(&storage.path, size)?
                    }
                    StorageKind::File | StorageKind::BlockDevice => {
                        DirectFile::open(&storage.path)?
                    }
                };
                let host = match target {
                    Target::Virtual(spec) => spec.get()?.model.host().clone(),
                    _ => host_limits(storage, environment),
                };
                Ok(Self { host, means: Means::Direct(file, Box::new(opened)) })
            }
        }
    }

    fn capacity(&self) -> Bytes {
        match &self.means {
            Means::Model(_, capacity, _) => *capacity,
            Means::Direct(file, _) => file.size(),
        }
    }

    fn dilation(&self) -> f64 {
        match &self.means {
            Means::Direct(_, opened) => opened.dilation,
            Means::Model(..) => 1.0,
        }
    }

    /// Returns the times of a probe, in the device's own time.
    fn time(&mut self, probe: &Probe, environment: &Environment) -> Result<Timing, StudyError> {
        let dilation = self.dilation();
        match &mut self.means {
            Means::Model(device, _, clock) => {
                let (timing, end) = run(device.as_mut(), probe, *clock);
                *clock = end + Nanos::from_millis(50);
                Ok(timing)
            }
            Means::Direct(file, _) => {
                let Probe { offsets, length, depth, .. } = probe;
                let times = file.time(offsets, *length, *depth, &environment.cancel)?;
                let own = |time: Nanos| time.scaled(1.0 / dilation);
                Ok(Timing {
                    elapsed: own(times.elapsed),
                    latencies: times.latencies.into_iter().map(own).collect(),
                    bytes: *length * offsets.len() as u64,
                })
            }
        }
    }
}

/// Returns the block layer's limits above the storage; defaults for limits that are not reported.
fn host_limits(storage: &Storage, environment: &Environment) -> HostLimits {
    let mut host = HostLimits::default();
    let first = storage.devices.first();
    let facts = first.and_then(|device| device_facts(&environment.root, *device).ok());
    if let Some(facts) = facts {
        host.max_request = facts.max_sectors.unwrap_or(host.max_request);
        let requests = facts.nr_requests.and_then(|number| usize::try_from(number).ok());
        host.nr_requests = requests.unwrap_or(host.nr_requests);
        if facts.scheduler.as_deref() == Some(Scheduler::MqDeadline.name()) {
            host.scheduler = Scheduler::MqDeadline;
        }
    }
    host
}

/// Predicts each measured cell by simulation.
///
/// # Errors
///
/// If the simulation fails.
pub fn predict_curve(
    spec: &TargetSpec<SimMachine>,
    run: &Run,
    cells: &[Cell],
) -> Result<Vec<CurvePoint>, StudyError> {
    let capacity = spec.get()?.model.capacity();
    let mut points = Vec::new();
    for cell in cells {
        let Some(workload) = run.workloads.iter().find(|known| known.name == cell.workload) else {
            continue;
        };
        let mut workload = workload.clone();
        // Each reader reads an equal part of the device.
        let part = Bytes::new(capacity.get() / u64::from(workload.files()).max(1) / 4096 * 4096);
        workload.file_size = Some(workload.file_size.map_or(part, |size| size.min(part)));
        points.push(CurvePoint {
            workload: cell.workload.clone(),
            read_ahead_kib: cell.settings.read_ahead,
            measured_mib_s: cell.throughput_mib_s.median,
            predicted_mib_s: predicted(spec, run, cell, workload)?,
        });
    }
    Ok(points)
}

fn predicted(
    spec: &TargetSpec<SimMachine>,
    run: &Run,
    cell: &Cell,
    workload: Workload,
) -> Result<f64, StudyError> {
    let plan = Plan {
        target: Target::Simulation(spec.clone()),
        workloads: vec![PlannedWorkload::goal(workload.clone())],
        factors: Vec::new(),
        ..run.plan.clone()
    };
    let mut site = SimulatedSession::open(&plan, spec, Some(std::slice::from_ref(&workload)))?;
    let mut sum = 0.0;
    for seed in 1..=SEED_COUNT {
        let request = TrialRequest { settings: &cell.settings, workload: &workload, seed };
        sum += site.trial(&request)?.figures().throughput_mib_s;
    }
    Ok(sum / SEED_COUNT as f64)
}
