//! Names of storage that stay the same when devices are found in another order.

use host::{Layer, LayerKind, Root, Subject};

/// Returns the key of a storage: its WWN, the UUID of its volume or array, or the mounted source.
/// The kernel's name is the last resort.
pub(crate) fn of(root: &Root, subject: &Subject) -> String {
    let Some(layer) = subject.owner().or(subject.stacks.first()) else {
        return format!("bdi:{}", subject.bdi);
    };
    match &layer.kind {
        LayerKind::Filesystem { fstype, source, .. } => format!("{fstype}:{source}"),
        LayerKind::Dm { uuid: Some(uuid), .. } if !uuid.is_empty() => format!("dm:{uuid}"),
        LayerKind::Loop { file: Some(file) } => format!("loop:{}", file.display()),
        _ => of_device(root, layer),
    }
}

fn of_device(root: &Root, layer: &Layer) -> String {
    let directory = format!("/sys/class/block/{}", layer.name);
    let files = [("wwn", "wwid"), ("wwn", "device/wwid"), ("md", "md/uuid"), ("serial", "serial")];
    let found = files.iter().find_map(|(kind, file)| {
        let text = root.read_if_present(format!("{directory}/{file}")).ok().flatten()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| format!("{kind}:{text}"))
    });
    found.or_else(|| of_udev(root, layer)).unwrap_or_else(|| format!("name:{}", layer.name))
}

/// Returns what udev knows about a device whose driver provides no identity in sysfs.
fn of_udev(root: &Root, layer: &Layer) -> Option<String> {
    let text = root.read_if_present(format!("/run/udev/data/b{}", layer.device?)).ok().flatten()?;
    let property = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("E:")?.strip_prefix(name));
        line.and_then(|line| line.strip_prefix('=')).filter(|value| !value.is_empty())
    };
    let wwn = property("ID_WWN_WITH_EXTENSION").or(property("ID_WWN"));
    let wwn = wwn.map(|wwn| format!("wwn:{wwn}"));
    wwn.or_else(|| property("ID_SERIAL").map(|serial| format!("serial:{serial}")))
}
