//! Names of storage, devices and layers.

use std::collections::BTreeMap;

use doctor::{Diagnosis, Evidence};
use host::{Layer, LayerKind, QueueLimits, Subject};
use units::Kib;

/// Returns a storage's heading: `/srv · xfs on vg-srv (dm-0)`.
pub(crate) fn subject(subject: &Subject) -> String {
    let mut filesystems = subject.filesystems();
    let Some(first) = filesystems.next() else {
        return match subject.stacks.first() {
            Some(layer) => format!("{} · {}", device(layer), kind(layer)),
            None => format!("{} · not visible from here", subject.bdi),
        };
    };
    let more = match filesystems.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let on = match (first.bdi.is_some(), subject.owner()) {
        (false, Some(owner)) => format!("{} on {}", kind(first), device(owner)),
        _ => match source(first) {
            source if source.is_empty() => kind(first),
            source => format!("{} of {source}", kind(first)),
        },
    };
    format!("{}{more} · {on}", short(subject))
}

/// Returns a short name: the first mount point, or the device.
pub fn short(subject: &Subject) -> String {
    let point = subject.filesystems().find_map(|layer| match &layer.kind {
        LayerKind::Filesystem { points, .. } => points.first(),
        _ => None,
    });
    match (point, subject.stacks.first()) {
        (Some(point), _) => point.display().to_string(),
        (None, Some(layer)) => layer.name.clone(),
        (None, None) => subject.bdi.to_string(),
    }
}

fn source(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::Filesystem { source, .. } => source.clone(),
        _ => String::new(),
    }
}

/// Returns a device's name, with its user-defined name if it has one.
fn device(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::Dm { label: Some(label), .. } => format!("{label} ({})", layer.name),
        _ => layer.name.clone(),
    }
}

/// Returns a short description of a layer.
pub(super) fn kind(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::Filesystem { fstype, .. } => fstype.clone(),
        LayerKind::Partition => "partition".to_owned(),
        LayerKind::Disk { transport, model } => {
            let what = if *transport == "other" { "disk" } else { &format!("{transport} disk") };
            match model {
                Some(model) => format!("{what} {model}"),
                None => what.to_owned(),
            }
        }
        LayerKind::Dm { target: "lvm", .. } => "LVM volume".to_owned(),
        LayerKind::Dm { target: "crypt", .. } => "encrypted (dm-crypt)".to_owned(),
        LayerKind::Dm { target: "multipath", .. } => "multipath".to_owned(),
        LayerKind::Dm { .. } => "device mapper".to_owned(),
        LayerKind::Md { level, raid_disks, degraded, .. } => {
            let disks = raid_disks.map_or_else(String::new, |disks| format!(" of {disks}"));
            let note = if *degraded { ", degraded" } else { "" };
            format!("{level}{disks}{note}")
        }
        LayerKind::Loop { file: Some(file) } => format!("loop device over {}", file.display()),
        LayerKind::Loop { file: None } => "loop device without a file".to_owned(),
        LayerKind::Zram => "compressed memory (zram)".to_owned(),
        LayerKind::Bcache => "bcache".to_owned(),
        LayerKind::Missing => "cannot be seen".to_owned(),
    }
}

/// Returns a layer's text in a tree: `vda  virtio disk`.
pub(super) fn layer(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::Filesystem { fstype, points, .. } => {
            let points: Vec<String> =
                points.iter().take(3).map(|point| point.display().to_string()).collect();
            format!("{fstype} on {}", points.join(", "))
        }
        _ => format!("{}  {}", device(layer), kind(layer)),
    }
}

/// Returns the devices of a stack in one line, if there are more than the one in the heading: from
/// the top down, siblings separated by commas. The file system under a loop device is omitted.
pub(super) fn stack_line(subject: &Subject) -> Option<String> {
    const MAX_NAMES_PER_LEVEL: usize = 6;
    let stack = subject.stacks.first()?;
    let mut level: Vec<&Layer> = match stack.fstype() {
        Some(_) => stack.below.iter().collect(),
        None => vec![stack],
    };
    let mut words = Vec::new();
    while !level.is_empty() {
        let mut names: Vec<String> =
            level.iter().take(MAX_NAMES_PER_LEVEL).map(|l| with_value(l)).collect();
        names.dedup();
        if level.len() > MAX_NAMES_PER_LEVEL {
            names.push(format!("{} more", level.len() - MAX_NAMES_PER_LEVEL));
        }
        words.push(names.join(", "));
        let is_loop = |layer: &&&Layer| matches!(layer.kind, LayerKind::Loop { .. });
        let inner = level.iter().filter(|layer| !is_loop(layer)).flat_map(|l| &l.below).collect();
        level = inner;
    }
    let is_in_heading = words.len() < 2 && stack.bdi.is_none();
    (!is_in_heading && !words.is_empty()).then(|| words.join(" → "))
}

fn with_value(layer: &Layer) -> String {
    match layer.read_ahead {
        Some(kib) => format!("{} ({kib})", device(layer)),
        None => device(layer),
    }
}

/// Returns the queue settings related to read-ahead, of the effective device or one below it.
pub(super) fn queue_settings(subject: &Subject) -> Option<String> {
    let own = subject.owner().and_then(|owner| owner.queue.as_ref());
    let below = || subject.stacks.iter().flat_map(Layer::walk).find_map(|l| l.queue.as_ref());
    let queue: &QueueLimits = own.or_else(below)?;
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {value}")));
    };
    add("scheduler", queue.scheduler.clone());
    add("nr_requests", queue.nr_requests.map(|n| n.to_string()));
    add("max_sectors_kb", queue.max_sectors.map(|size| size.to_kib_floor().get().to_string()));
    add("optimal_io_size", queue.optimal_io_size.map(|size| size.get().to_string()));
    add("queue_depth", queue.queue_depth.map(|n| n.to_string()));
    add("stripe_cache_size", queue.stripe_cache_size.map(|n| n.to_string()));
    words.extend(
        queue
            .rotational
            .map(|turns| if turns { "rotational".to_owned() } else { "not rotational".to_owned() }),
    );
    Some(words.join(" · "))
}

pub(super) fn open(diagnosis: &Diagnosis) -> Option<String> {
    let open = diagnosis.open.as_ref().filter(|open| open.files > 0)?;
    let all = if open.files == 1 { "1 file".to_owned() } else { format!("{} files", open.files) };
    Some(match open.outdated.len() {
        0 => format!("{all} for reading, all with this window"),
        other => format!("{all} for reading, {other} of them with another window"),
    })
}

pub(super) fn evidence(evidence: &Evidence) -> String {
    match &evidence.place {
        Some(place) => format!("{place}: {}", evidence.fact),
        None => evidence.fact.clone(),
    }
}

/// Returns names in one line, shortened if there are many.
fn few(names: &[String]) -> String {
    const MAX_LISTED_NAMES: usize = 4;
    match names.len() {
        0..=MAX_LISTED_NAMES => names.join(", "),
        all => format!(
            "{} and {} more",
            names[..MAX_LISTED_NAMES - 1].join(", "),
            all - (MAX_LISTED_NAMES - 1)
        ),
    }
}

/// Returns storage that needs no block of its own, grouped by kind, value and origin.
pub(super) fn minor_devices<'a>(diagnoses: impl Iterator<Item = &'a Diagnosis>) -> Vec<String> {
    let mut groups: BTreeMap<(String, Kib, String), Vec<String>> = BTreeMap::new();
    for diagnosis in diagnoses {
        let subject = &diagnosis.subject;
        let what = match subject.stacks.first().filter(|_| subject.vacant()) {
            Some(layer) => kind(layer),
            None => "part of the storage above".to_owned(),
        };
        let key = (what, subject.read_ahead, diagnosis.origin.summary.clone());
        groups.entry(key).or_default().push(short(subject));
    }
    let line = |((what, value, from), names): ((String, Kib, String), Vec<String>)| {
        // The line already contains the value.
        let from = from.replacen(&format!("{value}, "), "its default, ", 1);
        format!("{} ({what}): {value}, from {from}", few(&names))
    };
    groups.into_iter().map(line).collect()
}
