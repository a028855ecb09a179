//! Predicts the data that a study would write and the time that it would take.

use std::time::Duration;

use bench::Dataset;
use host::{Dirs, Machine, Root, Storage, StorageKind, page_size, resolve};
use units::{Bytes, BytesPerSecond};
use vdisk::{DiskConfig, Filesystem, VirtualDisk};
use workload::Workload;

use super::live_session::live_room;
use super::simulated::SimulatedSession;
use super::sizes::with_file_sizes;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::target::{Target, TargetSpec};

/// The forecast for a study.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The workloads with the sizes of their files.
    pub workloads: Vec<Workload>,
    /// Bytes to write, over all files; `None` if the study reads existing data.
    pub laid_out: Option<Bytes>,
    /// Factor by which a virtual disk runs slower than its model; 1 for other targets.
    pub dilation: f64,
    /// The name of an existing virtual disk below the target; `None` for other targets.
    pub known_disk: Option<String>,
    /// The predicted computing time of a simulated trial; `None` for other targets.
    pub simulated_trial: Option<Duration>,
}

impl Forecast {
    /// Predicts the course of a plan. For a simulation, it simulates parts of some trials.
    ///
    /// # Errors
    ///
    /// If the target does not exist, or the plan does not fit on it.
    pub fn new(plan: &Plan, dirs: &Dirs, root: &Root) -> Result<Self, StudyError> {
        match &plan.target {
            Target::Simulation(spec) => Self::of_simulation(plan, spec),
            Target::Virtual(spec) => Self::of_virtual(plan, spec.get()?, root),
            Target::Path(path) => Self::of_storage(plan, &resolve(root, path)?, dirs, root),
            Target::Imported(title) => Err(StudyError::Plan(format!(
                "{title} has only figures: there is nothing to measure"
            ))),
        }
    }

    fn of_simulation(plan: &Plan, spec: &TargetSpec<sim::SimMachine>) -> Result<Self, StudyError> {
        let mut site = SimulatedSession::open(plan, spec, None)?;
        let simulated_trial = Some(site.processor_time_of_a_trial()?);
        let workloads = site.facts.workloads;
        // The files of a simulation take no space.
        let laid_out = Some(Bytes::ZERO);
        Ok(Self { workloads, laid_out, dilation: 1.0, known_disk: None, simulated_trial })
    }

    fn of_virtual(plan: &Plan, config: &DiskConfig, root: &Root) -> Result<Self, StudyError> {
        let space = (config.filesystem != Filesystem::Raw).then_some(config.size);
        let peak = Some(config.model.peak().throughput);
        Self::live(plan, space, peak, root)
            .map(|forecast| Self { dilation: config.dilation_factor(), ..forecast })
    }

    fn of_storage(
        plan: &Plan,
        storage: &Storage,
        dirs: &Dirs,
        root: &Root,
    ) -> Result<Self, StudyError> {
        let disk = VirtualDisk::find_below(dirs, storage);
        let model =
            disk.as_ref().and_then(|disk| model::Spec::from_toml(&disk.record().model).ok());
        let space = match storage.kind {
            StorageKind::Directory => Some(storage.space()?.available),
            StorageKind::File | StorageKind::BlockDevice => None,
        };
        let forecast = Self::live(plan, space, model.map(|model| model.peak().throughput), root)?;
        Ok(Self {
            dilation: disk.as_ref().map_or(1.0, VirtualDisk::dilation),
            known_disk: disk.map(|disk| disk.name().to_owned()),
            ..forecast
        })
    }

    /// Predicts a study under the real kernel. `peak` is known only for a virtual disk.
    fn live(
        plan: &Plan,
        space: Option<Bytes>,
        peak: Option<BytesPerSecond>,
        root: &Root,
    ) -> Result<Self, StudyError> {
        let window = plan.read_ahead.values(page_size(), None).last().copied().unwrap_or_default();
        let room = live_room(plan, space, peak, Machine::read(root)?.memory_available, window);
        let workloads = with_file_sizes(plan, &room);
        let laid_out = space.map(|_| Dataset::room_needed(&workloads, Bytes::from_gib(1)));
        Ok(Self { workloads, laid_out, dilation: 1.0, known_disk: None, simulated_trial: None })
    }

    /// Returns the number of files that a workload reads, the size of the largest, and the total.
    pub fn files_of(workload: &Workload) -> (usize, Bytes, Bytes) {
        let sizes = workload.data_files(Bytes::ZERO);
        let largest = sizes.iter().copied().max().unwrap_or_default();
        (sizes.len(), largest, sizes.into_iter().sum())
    }
}
