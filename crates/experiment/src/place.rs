//! Where an experiment takes place: real storage, or a virtual disk that lives as long as it.

use host::{Storage, resolve};
use study::{Environment, Phase, Progress, Step, Target};
use tunables::{Tenure, Value};
use units::{Bytes, Kib};
use vdisk::{Config, Lifetime, VirtualDisk};

use crate::ExperimentError;

/// What an experiment wants of its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Of a virtual disk the bare device, unless the words name a filesystem.
    pub raw: bool,
}

/// Where an experiment takes place. Settings are put back, and a virtual disk goes, when it is
/// closed or dropped.
#[derive(Debug)]
pub struct Place {
    tenure: Option<Tenure>,
    /// The virtual disk, if it is one, made for this experiment or by another process.
    pub disk: Option<VirtualDisk>,
    /// The storage.
    pub storage: Storage,
    /// How many times slower than its model it runs; 1 for real storage.
    pub dilation: f64,
    environment: Environment,
}

impl Place {
    /// Opens the target, making the disk if it is a virtual one.
    pub fn open(
        target: &Target,
        wants: Wants,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<Self, ExperimentError> {
        progress.step(&Step::Phase(Phase::Preparing));
        let disk = match target {
            Target::Virtual(words) => {
                progress.step(&Step::Phase(Phase::CreatingDisk));
                let bare = wants.raw && !words.split(',').any(|word| word.starts_with("fs="));
                let words = if bare { format!("{words},fs=raw") } else { words.clone() };
                let config = Config::parse(&words)?;
                let (dirs, server) = (&environment.dirs, &environment.server);
                Some(VirtualDisk::create(dirs, config, server, Lifetime::DiesWithMe)?)
            }
            Target::Path(_) => None,
            Target::Simulation(_) | Target::Imported(_) => {
                return Err(ExperimentError::Simulated { target: target.to_string() });
            }
        };
        let storage = match (&disk, target) {
            (Some(disk), _) => resolve(&environment.root, disk.target())?,
            (None, Target::Path(path)) => resolve(&environment.root, path)?,
            (None, other) => return Err(ExperimentError::Simulated { target: other.to_string() }),
        };
        let disk = disk.or_else(|| VirtualDisk::under(&environment.dirs, &storage));
        let dilation = disk.as_ref().map_or(1.0, VirtualDisk::dilation);
        Ok(Self { tenure: None, disk, storage, dilation, environment: environment.clone() })
    }

    /// Sets read-ahead of the storage; what it was comes back when the place is closed.
    pub fn set_read_ahead(&mut self, window: Kib) -> Result<(), ExperimentError> {
        let tunable = tunables::find("read_ahead")?;
        self.set(tunable, &Value::from(window.to_bytes()))
    }

    /// Sets any tunable; what it was comes back when the place is closed.
    pub fn set(
        &mut self,
        tunable: &'static dyn tunables::Tunable,
        value: &Value,
    ) -> Result<(), ExperimentError> {
        if self.tenure.is_none() {
            let Environment { dirs, root, guard, .. } = &self.environment;
            self.tenure = Some(Tenure::begin(dirs, root, &self.storage, guard)?);
        }
        if let Some(tenure) = &mut self.tenure {
            tenure.set(tunable, value)?;
        }
        Ok(())
    }

    /// Read-ahead as it is.
    pub fn read_ahead(&self) -> Result<Kib, ExperimentError> {
        let tunable = tunables::find("read_ahead")?;
        let site = tunables::Site::from(&self.storage);
        let value = tunables::read(&self.environment.root, tunable, &site)?;
        Ok(value.bytes().map(Bytes::to_kib_floor).unwrap_or_default())
    }

    /// Serves a virtual disk at once, or at the pace of its model. One that another process made
    /// keeps its pace: others may be measuring on it.
    pub fn set_timing(&self, on: bool) -> Result<(), ExperimentError> {
        let ours = self.disk.as_ref().filter(|disk| disk.is_ours());
        Ok(ours.map_or(Ok(()), |disk| disk.set_timing(on))?)
    }

    /// Puts everything back.
    pub fn close(self, progress: &mut dyn Progress) -> Result<(), ExperimentError> {
        progress.step(&Step::Phase(Phase::Restoring));
        let restored = self.tenure.map(Tenure::restore).transpose();
        let removed = self.disk.map_or(Ok(()), VirtualDisk::release);
        restored?;
        Ok(removed?)
    }
}
