//! Opens storage under the real kernel, for studies, experiments and calibration.

use host::{Storage, device_facts, resolve};
use serde_json::{Value as Json, json};
use tunables::{BdiLease, Tunable, Value};
use units::{Bytes, BytesPerSecond, Kib};
use vdisk::{Filesystem, Lifetime, VirtualDisk};

use crate::environment::Environment;
use crate::error::StudyError;
use crate::progress::{Progress, ProgressEvent, StudyPhase};
use crate::target::Target;

/// The use of a virtual disk; other storage is opened in the same way for all uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskUse {
    Files,
    /// The block device, unless the target names a filesystem.
    Device,
    /// The block device in the size of its model, unless the target states a size.
    WholeDevice,
}

/// Real storage, or a virtual disk that exists until this value is closed or dropped. Settings are
/// restored before the disk is removed.
#[derive(Debug)]
pub struct LiveTarget {
    lease: Option<BdiLease>,
    /// The virtual disk below the storage, created by this process or another one.
    pub disk: Option<VirtualDisk>,
    pub storage: Storage,
    /// Factor by which a virtual disk runs slower than its model; 1 for real storage.
    pub dilation: f64,
    environment: Environment,
}

impl LiveTarget {
    /// Opens the target; a virtual disk is created with a filesystem.
    ///
    /// # Errors
    ///
    /// If the storage does not exist, the disk cannot be created, or the target is not storage.
    pub fn open(
        target: &Target,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<Self, StudyError> {
        progress.step(&ProgressEvent::Phase(StudyPhase::Preparing));
        Self::open_for(DiskUse::Files, target, environment, progress)
    }

    /// Opens the target; a virtual disk is created without a filesystem unless the target names
    /// one.
    ///
    /// # Errors
    ///
    /// See [`LiveTarget::open`].
    pub fn open_raw(
        target: &Target,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<Self, StudyError> {
        progress.step(&ProgressEvent::Phase(StudyPhase::Preparing));
        Self::open_for(DiskUse::Device, target, environment, progress)
    }

    pub(crate) fn open_for(
        disk_use: DiskUse,
        target: &Target,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<Self, StudyError> {
        let (root, dirs) = (&environment.root, &environment.dirs);
        let (disk, storage) = match target {
            Target::Path(path) => {
                let storage = resolve(root, path)?;
                (VirtualDisk::find_below(dirs, &storage), storage)
            }
            Target::Virtual(spec) => {
                let mut config = spec.get()?.clone();
                match disk_use {
                    DiskUse::Device if spec.value_of("fs").is_none() => {
                        config.filesystem = Filesystem::Raw;
                    }
                    DiskUse::Files | DiskUse::Device => {}
                    DiskUse::WholeDevice => {
                        config.filesystem = Filesystem::Raw;
                        // Unwritten parts take no memory.
                        if spec.value_of("size").is_none() {
                            let whole = config.model.capacity().get();
                            config.size = Bytes::new(whole - whole % 4096);
                        }
                    }
                }
                progress.step(&ProgressEvent::Phase(StudyPhase::CreatingDisk));
                let server = &environment.server;
                let disk = VirtualDisk::create(dirs, config, server, Lifetime::DiesWithMe)?;
                let storage = resolve(root, disk.target())?;
                (Some(disk), storage)
            }
            Target::Simulation(_) | Target::Imported(_) => {
                return Err(StudyError::NeedsKernel { target: target.to_string() });
            }
        };
        let dilation = disk.as_ref().map_or(1.0, VirtualDisk::dilation);
        Ok(Self { lease: None, disk, storage, dilation, environment: environment.clone() })
    }

    /// Returns the model's maximum throughput; `None` unless the target is a virtual disk.
    pub(crate) fn peak(&self) -> Option<BytesPerSecond> {
        let spec = model::Spec::from_toml(&self.disk.as_ref()?.record().model).ok()?;
        Some(spec.peak().throughput)
    }

    /// Locks the bdi and starts the guard.
    ///
    /// # Errors
    ///
    /// If another process holds the lock, or the journal cannot be written.
    pub(crate) fn begin(&self) -> Result<BdiLease, StudyError> {
        let Environment { dirs, root, guard, .. } = &self.environment;
        Ok(BdiLease::begin(dirs, root, &self.storage, guard)?)
    }

    /// Sets a tunable until this target is closed.
    ///
    /// # Errors
    ///
    /// If the value cannot be set, or another process holds the lock of the bdi.
    pub fn set(&mut self, tunable: &'static Tunable, value: &Value) -> Result<(), StudyError> {
        if self.lease.is_none() {
            self.lease = Some(self.begin()?);
        }
        if let Some(lease) = &mut self.lease {
            lease.set(tunable, value)?;
        }
        Ok(())
    }

    /// Sets read-ahead until this target is closed.
    ///
    /// # Errors
    ///
    /// See [`LiveTarget::set`].
    pub fn set_read_ahead(&mut self, window: Kib) -> Result<(), StudyError> {
        self.set(tunables::find("read_ahead")?, &Value::from(window.to_bytes()))
    }

    /// Returns the current read-ahead.
    ///
    /// # Errors
    ///
    /// If the tunable cannot be read.
    pub fn read_ahead(&self) -> Result<Kib, StudyError> {
        let site = tunables::TunableScope::from(&self.storage);
        let tunable = tunables::find("read_ahead")?;
        let value = tunables::read(&self.environment.root, tunable, &site)?;
        Ok(value.bytes().map(Bytes::to_kib_floor).unwrap_or_default())
    }

    /// Sets whether a virtual disk serves requests at the pace of its model or at once. Does not
    /// change a disk that another process created, because others may be measuring on it.
    ///
    /// # Errors
    ///
    /// If the disk's server does not respond.
    pub fn set_timing(&self, on: bool) -> Result<(), StudyError> {
        let ours = self.disk.as_ref().filter(|disk| disk.is_ours());
        Ok(ours.map_or(Ok(()), |disk| disk.set_timing(on))?)
    }

    /// Empties the caches of a virtual disk and resets its counters. Has no effect on a real disk.
    pub fn reset_disk(&self) -> Result<(), StudyError> {
        Ok(self.disk.as_ref().map_or(Ok(()), VirtualDisk::reset)?)
    }

    /// Describes the storage and its tunables in the form of the record.
    pub fn describe(&self) -> Json {
        describe(&self.environment, &self.storage, self.disk.as_ref())
    }

    /// Restores the settings, and removes the virtual disk if this process created it.
    ///
    /// # Errors
    ///
    /// If a setting cannot be restored or the disk cannot be removed; both are attempted.
    pub fn close(self, progress: &mut dyn Progress) -> Result<(), StudyError> {
        progress.step(&ProgressEvent::Phase(StudyPhase::Restoring));
        let restored = self.lease.map(BdiLease::restore).transpose();
        let removed = self.disk.map_or(Ok(()), VirtualDisk::release);
        restored?;
        Ok(removed?)
    }
}

/// Describes the storage and its tunables in the form of the record.
pub fn describe(environment: &Environment, storage: &Storage, disk: Option<&VirtualDisk>) -> Json {
    let root = &environment.root;
    let devices: Vec<_> =
        storage.leaves.iter().filter_map(|device| device_facts(root, *device).ok()).collect();
    // All tunables: those that a study does not vary are part of its conditions.
    let site = tunables::TunableScope::with_layers(root, storage);
    let present = |tunable: &&Tunable| {
        let value = tunables::read(root, tunable, &site).ok()?;
        Some((tunable.json_key().to_owned(), tunable.to_json(&value)))
    };
    let all: serde_json::Map<String, Json> =
        tunables::REGISTRY.iter().filter_map(present).collect();
    json!({
        "storage": storage,
        "devices": devices,
        "tunables": all,
        "virtual_disk": disk.map(VirtualDisk::record),
    })
}
