//! Selects the recommendations that apply to this machine.

use std::path::Path;

use host::{BdiId, Layer, LayerKind, ProcessInfo, Subject, installed_packages, processes};

use super::version::{installed, runs};
use crate::HostSnapshot;
use crate::presets::{Applies, AppliesTo, Group, VendorPreset, all, groups};

/// How a group's software was detected.
struct Sign {
    group: usize,
    because: String,
    storage: AppliesTo,
    /// The installed or running major versions; empty if unknown.
    versions: Vec<u32>,
}

/// Returns the recommendations that apply to this machine; computed once for each snapshot.
pub fn running(snapshot: &HostSnapshot) -> &[Applies] {
    snapshot.applying.get_or_init(|| find(snapshot))
}

fn find(snapshot: &HostSnapshot) -> Vec<Applies> {
    let processes = processes(&snapshot.root);
    let packages = installed_packages(&snapshot.root);
    let signs = groups().iter().enumerate().filter_map(|(index, group)| {
        let (because, storage) = sign(snapshot, group, &processes, &packages)?;
        let versions = installed(snapshot, group, &processes, &packages);
        Some(Sign { group: index, because, storage, versions })
    });
    let signs: Vec<Sign> = signs.collect();
    let mut found = Vec::new();
    for preset in all() {
        let Some(sign) = signs.iter().find(|sign| Some(sign.group) == preset.group) else {
            found.extend(of_tuned(snapshot, preset));
            continue;
        };
        let Some(storage) = narrowed(snapshot, preset, &sign.storage) else { continue };
        let (wanted, here) = (preset.versions(), &sign.versions);
        if !wanted.is_empty() && !here.is_empty() && !wanted.iter().any(|one| here.contains(one)) {
            continue;
        }
        let mut because = sign.because.clone();
        if !wanted.is_empty() && here.is_empty() {
            because.push_str(", of which version cannot be seen");
        }
        found.push(Applies { preset, because, storage });
    }
    found
}

/// Returns how a group's software was detected and which storage it uses; `None` if it is not here.
fn sign(
    snapshot: &HostSnapshot,
    group: &Group,
    processes: &[ProcessInfo],
    packages: &[String],
) -> Option<(String, AppliesTo)> {
    let mounted: Vec<&Subject> =
        snapshot.survey.subjects.iter().filter(|subject| mounts(subject, group)).collect();
    if let Some(first) = mounted.first() {
        let bdis = mounted.iter().map(|subject| subject.bdi.clone()).collect();
        let point = first.filesystems().next().map(name_of).unwrap_or_default();
        return Some((format!("{point} is mounted"), AppliesTo::Bdis(bdis)));
    }
    if group.md {
        let is_md = |layer: &&Layer| matches!(layer.kind, LayerKind::Md { .. });
        let arrays: Vec<BdiId> = snapshot
            .survey
            .subjects
            .iter()
            .filter(|subject| subject.owner().as_ref().is_some_and(is_md))
            .map(|subject| subject.bdi.clone())
            .collect();
        return (!arrays.is_empty())
            .then(|| ("an array of md".to_owned(), AppliesTo::Bdis(arrays)));
    }
    let process = processes.iter().find(|process| runs(process, group));
    let package = packages.iter().find(|package| {
        group.packages.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => package.starts_with(prefix),
            None => *package == pattern,
        })
    });
    let because = match (process, package) {
        (Some(process), _) => format!("{} runs ({})", process.name, process.pid),
        (None, Some(package)) => format!("package {package} is installed"),
        (None, None) => return None,
    };
    if group.all_disks {
        return Some((because, AppliesTo::Bdis(disks(snapshot))));
    }
    let data = group.data.iter().map(Path::new).filter(|path| snapshot.root.exists(path));
    let mut bdis: Vec<BdiId> = data.filter_map(|path| bdi_of(snapshot, path)).collect();
    bdis.dedup();
    let storage = if bdis.is_empty() { AppliesTo::Unknown } else { AppliesTo::Bdis(bdis) };
    Some((because, storage))
}

/// Selects a TuneD profile's recommendation if the profile is active; installed is not enough.
fn of_tuned(snapshot: &HostSnapshot, preset: &'static VendorPreset) -> Option<Applies> {
    let active = snapshot.owners.tuned_profile()?;
    let name = preset.software.strip_prefix("TuneD ")?;
    let chosen = active.profile.split_whitespace().any(|profile| profile == name);
    chosen.then(|| Applies {
        preset,
        because: format!("TuneD's profile {name} is chosen"),
        storage: AppliesTo::Bdis(disks(snapshot)),
    })
}

fn mounts(subject: &Subject, group: &Group) -> bool {
    subject.filesystems().any(|layer| {
        let LayerKind::Filesystem { fstype, source, .. } = &layer.kind else { return false };
        group.fstypes.contains(fstype)
            && (group.sources.is_empty()
                || group.sources.iter().any(|word| source.contains(word.as_str())))
    })
}

fn name_of(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::Filesystem { fstype, points, .. } => {
            let point = points.first().map(|point| point.display().to_string());
            format!("{fstype} on {}", point.unwrap_or_default())
        }
        _ => layer.name.clone(),
    }
}

/// Returns the bdis of disks and arrays that are not members of an array.
fn disks(snapshot: &HostSnapshot) -> Vec<BdiId> {
    let tops =
        snapshot.survey.subjects.iter().filter(|subject| !subject.member && !subject.vacant());
    tops.filter(|subject| {
        subject.owner().is_some_and(|owner| {
            matches!(
                owner.kind,
                LayerKind::Disk { .. } | LayerKind::Dm { .. } | LayerKind::Md { .. }
            )
        })
    })
    .map(|subject| subject.bdi.clone())
    .collect()
}

/// Returns the bdi of a path, from the surveyed mounts.
fn bdi_of(snapshot: &HostSnapshot, path: &Path) -> Option<BdiId> {
    let mut best: Option<(usize, &BdiId)> = None;
    for subject in &snapshot.survey.subjects {
        for layer in subject.filesystems() {
            let LayerKind::Filesystem { points, .. } = &layer.kind else { continue };
            for point in points.iter().filter(|point| path.starts_with(point)) {
                let depth = point.components().count();
                if best.is_none_or(|(known, _)| depth > known) {
                    best = Some((depth, &subject.bdi));
                }
            }
        }
    }
    best.map(|(_, bdi)| bdi.clone())
}

/// Keeps the storage with the device type of a recommendation; `None` if there is none.
fn narrowed(
    snapshot: &HostSnapshot,
    preset: &VendorPreset,
    storage: &AppliesTo,
) -> Option<AppliesTo> {
    let device = preset.device.to_lowercase();
    let flash = device.contains("ssd") || device.contains("nvme");
    let disk = device.contains("hdd") || device.contains("spinning");
    let AppliesTo::Bdis(bdis) = storage else { return Some(AppliesTo::Unknown) };
    if flash == disk {
        return Some(storage.clone());
    }
    let fits = |bdi: &&BdiId| {
        let queue = snapshot.subject(bdi).and_then(Subject::owner).and_then(|o| o.queue.as_ref());
        queue.and_then(|queue| queue.rotational).is_none_or(|rotational| rotational == disk)
    };
    let left: Vec<BdiId> = bdis.iter().filter(fits).cloned().collect();
    (!left.is_empty()).then_some(AppliesTo::Bdis(left))
}
