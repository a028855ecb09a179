//! Names of devices on a command line.

use std::path::PathBuf;

use host::{DevNo, Layer, LayerKind, Mount, Storage, StorageKind, Subject};

use crate::HostSnapshot;

/// Returns the `--on` argument that selects exactly this device, quoted if necessary: a mount point
/// that no other mount hides, the device file, or the bdi's number.
pub(crate) fn on(snapshot: &HostSnapshot, subject: &Subject) -> String {
    quoted(&plain(snapshot, subject).display().to_string())
}

/// Returns the same name as a path.
pub(super) fn plain(snapshot: &HostSnapshot, subject: &Subject) -> PathBuf {
    let shadowed = |point: &&PathBuf| {
        let others = snapshot.survey.subjects.iter().filter(|other| other.bdi != subject.bdi);
        others.flat_map(Subject::filesystems).any(|layer| points(layer).contains(*point))
    };
    let point = subject.filesystems().flat_map(points).find(|point| !shadowed(point));
    let device = subject.stacks.first().filter(|layer| layer.device.is_some());
    match (point, device) {
        (Some(point), _) => point.clone(),
        (None, Some(device)) if device.fstype().is_none() => {
            PathBuf::from(format!("/dev/{}", device.name))
        }
        _ => PathBuf::from(subject.bdi.to_string()),
    }
}

fn points(layer: &Layer) -> &[PathBuf] {
    match &layer.kind {
        LayerKind::Filesystem { points, .. } => points,
        _ => &[],
    }
}

pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

pub(super) fn is_nfs(subject: &Subject) -> bool {
    subject.filesystems().any(|layer| layer.fstype().is_some_and(|name| name.starts_with("nfs")))
}

/// Returns the storage as `apply` and `persist` would, without accessing a mount that may hang.
pub(super) fn storage(snapshot: &HostSnapshot, subject: &Subject) -> Storage {
    let path = plain(snapshot, subject);
    let layer = subject.filesystems().find(|layer| points(layer).contains(&path));
    let mount = layer.and_then(|layer| match &layer.kind {
        LayerKind::Filesystem { fstype, source, options, .. } => Some(Mount {
            point: path.clone(),
            fstype: fstype.clone(),
            source: source.clone(),
            options: options.clone(),
            read_only: false,
        }),
        _ => None,
    });
    let kind = match mount {
        Some(_) => StorageKind::Directory,
        None => StorageKind::BlockDevice,
    };
    let number: Option<DevNo> = subject.bdi.as_str().parse().ok();
    let devices = number.filter(|number| number.major != 0).into_iter().collect();
    Storage { path, kind, mount, bdi: subject.bdi.clone(), devices, leaves: Vec::new() }
}
