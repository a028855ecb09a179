//! All storage of a machine: one subject per bdi.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use units::Kib;

use super::build::Builder;
use super::{Layer, LayerKind};
use crate::mount::{MountInfo, mounts};
use crate::resolve::{of_file_system, without_device};
use crate::{BdiId, DevNo, HostError, PathProbe, ProbeKind, Root, Storage};

/// A bdi with the storage that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The bdi that determines the window of newly opened files.
    pub bdi: BdiId,
    pub read_ahead: Kib,
    /// One stack per file system on the bdi, or only the device. Empty if sysfs has the bdi but its
    /// storage is not visible, as for mounts of other containers.
    pub stacks: Vec<Layer>,
    /// Whether another device or a multi-device btrfs is built on this bdi, so that its read-ahead
    /// does not apply to their files.
    pub member: bool,
}

impl Subject {
    pub fn owner(&self) -> Option<&Layer> {
        self.stacks.iter().find_map(|stack| stack.with_bdi(&self.bdi))
    }

    pub fn filesystems(&self) -> impl Iterator<Item = &Layer> {
        self.stacks.iter().filter(|stack| matches!(stack.kind, LayerKind::Filesystem { .. }))
    }

    /// Returns whether it is part of a virtual disk of foreread, which a reboot removes.
    pub fn is_virtual_disk(&self) -> bool {
        let mut layers = self.stacks.iter().flat_map(Layer::walk);
        layers.any(|layer| layer.fstype() == Some("fuse.foreread"))
    }

    /// Returns whether the device is empty, such as a loop device without a file.
    pub fn vacant(&self) -> bool {
        !self.stacks.is_empty() && self.stacks.iter().all(Layer::vacant)
    }
}

/// All storage with read-ahead of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// One subject per bdi in sysfs: mounted file systems in mount order, then the others.
    pub subjects: Vec<Subject>,
    /// Bdis whose read-ahead could not be read, each with the reason.
    pub unreadable: Vec<(BdiId, String)>,
}

/// A file system's super block with all its mount points.
struct Super<'a> {
    first: &'a MountInfo,
    points: Vec<PathBuf>,
    devices: Vec<DevNo>,
}

impl Survey {
    pub fn of_machine(root: &Root) -> Result<Self, HostError> {
        let mounts = mounts(root)?;
        let builder = Builder { root, mounts: &mounts };
        let mut supers = super_blocks(root, &mounts);
        let mut survey = Self { subjects: Vec::new(), unreadable: Vec::new() };
        let names = root.names("/sys/class/bdi");
        for bdi in names.iter().filter_map(|name| BdiId::new(name)) {
            let stacks = supers.remove(&bdi).unwrap_or_default();
            survey.add(&builder, bdi, stacks);
        }
        let members = survey.member_bdis();
        for subject in &mut survey.subjects {
            let alone = subject.filesystems().next().is_none();
            subject.member = alone && members.contains(&subject.bdi);
        }
        let order = |subject: &Subject| {
            let device = subject.filesystems().next().and_then(|layer| layer.device);
            let mounted = mounts.iter().position(|info| Some(info.device) == device);
            (subject.vacant(), subject.member, mounted.unwrap_or(usize::MAX))
        };
        survey.subjects.sort_by_key(order);
        Ok(survey)
    }

    /// Returns a survey with the subject of one storage only.
    pub fn of_storage(root: &Root, storage: &Storage) -> Result<Self, HostError> {
        let mounts = mounts(root)?;
        let builder = Builder { root, mounts: &mounts };
        let mut supers = super_blocks(root, &mounts);
        let mut stacks = supers.remove(&storage.bdi).unwrap_or_default();
        if let Some(mount) = &storage.mount
            && let Some(at) = stacks.iter().position(|found| found.points.contains(&mount.point))
        {
            // Keep only the file system of this storage.
            stacks.swap(0, at);
            stacks.truncate(1);
        } else if let Some(device) = storage.devices.first() {
            // The storage is a block device, mounted or not.
            let on = |found: &Super<'_>| found.devices.contains(device);
            stacks.retain(on);
            if stacks.is_empty() {
                let mut survey = Self { subjects: Vec::new(), unreadable: Vec::new() };
                survey.add_stack(&builder, storage.bdi.clone(), builder.device(*device, 0));
                return Ok(survey);
            }
        }
        let mut survey = Self { subjects: Vec::new(), unreadable: Vec::new() };
        survey.add(&builder, storage.bdi.clone(), stacks);
        Ok(survey)
    }

    fn add(&mut self, builder: &Builder<'_>, bdi: BdiId, supers: Vec<Super<'_>>) {
        let Some(read_ahead) = self.read(builder, &bdi) else { return };
        let mut stacks: Vec<Layer> =
            supers.into_iter().map(|found| stack(builder, &bdi, read_ahead, found)).collect();
        if stacks.is_empty()
            && let Ok(device) = bdi.as_str().parse::<DevNo>()
            && builder.root.exists(format!("/sys/dev/block/{device}"))
        {
            stacks.push(builder.device(device, 0));
        }
        self.subjects.push(Subject { bdi, read_ahead, stacks, member: false });
    }

    fn add_stack(&mut self, builder: &Builder<'_>, bdi: BdiId, stack: Layer) {
        let Some(read_ahead) = self.read(builder, &bdi) else { return };
        self.subjects.push(Subject { bdi, read_ahead, stacks: vec![stack], member: false });
    }

    fn read(&mut self, builder: &Builder<'_>, bdi: &BdiId) -> Option<Kib> {
        match builder.root.read_number(bdi.dir().join("read_ahead_kb")) {
            Ok(kib) => Some(Kib::new(kib)),
            Err(error) => {
                self.unreadable.push((bdi.clone(), error.to_string()));
                None
            }
        }
    }

    /// Returns the bdis in the stacks that differ from the bdis of their subjects.
    fn member_bdis(&self) -> Vec<BdiId> {
        let mut found = Vec::new();
        for subject in &self.subjects {
            for layer in subject.stacks.iter().flat_map(Layer::walk) {
                if let Some(bdi) = &layer.bdi
                    && *bdi != subject.bdi
                {
                    found.push(bdi.clone());
                }
            }
        }
        found
    }
}

/// Groups super blocks by bdi and resolves each super block once for all its mounts.
fn super_blocks<'a>(root: &Root, mounts: &'a [MountInfo]) -> BTreeMap<BdiId, Vec<Super<'a>>> {
    let mut known: BTreeMap<(DevNo, &str), Option<BdiId>> = BTreeMap::new();
    let mut found: BTreeMap<BdiId, Vec<Super<'a>>> = BTreeMap::new();
    for info in mounts {
        let fstype = info.mount.fstype.as_str();
        if without_device(fstype) {
            continue;
        }
        if let Some(bdi) = known.get(&(info.device, fstype)) {
            let supers = bdi.as_ref().and_then(|bdi| found.get_mut(bdi));
            let same = |found: &&mut Super<'_>| found.first.device == info.device;
            if let Some(known) = supers.and_then(|supers| supers.iter_mut().find(same)) {
                known.points.push(info.mount.point.clone());
            }
            continue;
        }
        let probe = PathProbe {
            path: info.mount.point.clone(),
            kind: ProbeKind::Directory,
            device: info.device,
            mount_id: Some(info.id),
        };
        let bdi = of_file_system(root, mounts, &probe, info).ok();
        known.insert((info.device, fstype), bdi.as_ref().map(|(bdi, _)| bdi.clone()));
        if let Some((bdi, devices)) = bdi {
            let points = vec![info.mount.point.clone()];
            found.entry(bdi).or_default().push(Super { first: info, points, devices });
        }
    }
    found
}

fn stack(builder: &Builder<'_>, bdi: &BdiId, read_ahead: Kib, found: Super<'_>) -> Layer {
    let mut layer = builder.file_system(found.first, found.points);
    layer.below = found.devices.iter().map(|device| builder.device(*device, 0)).collect();
    if layer.with_bdi(bdi).is_none() {
        layer.bdi = Some(bdi.clone());
        layer.read_ahead = Some(read_ahead);
    }
    layer
}
