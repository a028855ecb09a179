//! Device identifiers that survive a reboot, unlike the kernel's device names.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use host::{DevNo, Root};

/// Returns a name for the device at `path` that does not change at reboot, as `/dev/sdb` may.
/// Returns `path` itself if it is not a kernel name or the device has no such name.
pub fn lasting_name(root: &Root, path: &Path) -> PathBuf {
    if path.parent() != Some(Path::new("/dev")) {
        return path.to_owned();
    }
    let folder = Path::new("/dev/disk/by-id");
    let Ok(entries) = fs::read_dir(root.path(folder)) else { return path.to_owned() };
    let device = root.path(path);
    let same = |name: &OsString| {
        fs::canonicalize(root.path(folder.join(name))).is_ok_and(|meant| meant == device)
    };
    let names = entries.flatten().map(|entry| entry.file_name()).filter(same);
    // World wide names and UUIDs precede names made from model and serial number.
    let rank = |name: &OsString| {
        let name = name.to_string_lossy();
        let sure = ["wwn-", "nvme-eui.", "nvme-uuid.", "md-uuid-", "dm-uuid-"];
        !sure.iter().any(|start| name.starts_with(start))
    };
    let best = names.min_by(|a, b| (rank(a), a).cmp(&(rank(b), b)));
    best.map_or_else(|| path.to_owned(), |name| folder.join(name))
}

/// A udev rule condition that matches exactly one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMatch {
    /// The condition, as in `ENV{ID_SERIAL}=="…"`.
    pub condition: String,
    /// The identifier itself, for file names and messages.
    pub value: String,
}

/// Properties in udev's database, strongest first. Those of arrays and device mapper come first,
/// because the serial number of such a device would be a member's.
const PROPERTIES: &[&str] =
    &["DM_UUID", "MD_UUID", "ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_FS_UUID"];

/// Attributes in sysfs, for machines and containers without a udev database.
const ATTRIBUTES: &[&str] =
    &["dm/uuid", "md/uuid", "wwid", "device/wwid", "serial", "device/serial"];

/// Properties and attributes, strongest first.
pub(crate) const MARKS: &[&str] = &[
    "DM_UUID",
    "MD_UUID",
    "ID_WWN_WITH_EXTENSION",
    "ID_WWN",
    "ID_SERIAL",
    "dm/uuid",
    "md/uuid",
    "wwid",
    "device/wwid",
    "serial",
    "device/serial",
    "ID_FS_UUID",
];

/// Returns the condition that matches only this device; `None` if it has no identifier.
pub fn matched(root: &Root, device: DevNo) -> Option<DeviceMatch> {
    let (name, value) = lasting_marks(root, device).into_iter().next()?;
    let property = PROPERTIES.contains(&name);
    let key = if property { "ENV" } else { "ATTR" };
    Some(DeviceMatch { condition: format!("{key}{{{name}}}==\"{value}\""), value })
}

/// Returns all permanent identifiers of a whole device, strongest first: the name of the property
/// or attribute, and its value.
pub(crate) fn lasting_marks(root: &Root, device: DevNo) -> Vec<(&'static str, String)> {
    let database = root.read(format!("/run/udev/data/b{device}")).unwrap_or_default();
    let property = |name: &&'static str| {
        let line = |line: &str| {
            let (key, value) = line.strip_prefix("E:")?.split_once('=')?;
            (key == *name).then(|| value.to_owned())
        };
        let value = database.lines().find_map(line).filter(|value| is_plain(value))?;
        Some((*name, value))
    };
    let attribute = |name: &&'static str| {
        let value = root.read(format!("/sys/dev/block/{device}/{name}")).ok()?;
        let value = value.lines().next()?.trim().to_owned();
        is_plain(&value).then_some((*name, value))
    };
    let properties = PROPERTIES.iter().filter_map(property);
    properties.chain(ATTRIBUTES.iter().filter_map(attribute)).collect()
}

/// Returns whether a udev rule can identify the device after a reboot.
pub fn is_known_after_boot(root: &Root, device: DevNo) -> bool {
    matched(root, device).is_some()
}

/// Returns whether a value contains no character that is special in udev rules.
fn is_plain(value: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:+=/ ".contains(c);
    (4..=128).contains(&value.len()) && value.chars().all(fits)
}

/// Converts a text to a name for files, of lower-case letters, digits and dashes.
pub fn slug(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = text.chars().map(letter).take(60).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod naming {
    use super::*;

    #[test]
    fn a_disk_is_remembered_by_its_world_wide_name() {
        let dir = tempfile::tempdir().expect("a directory");
        // Without symbolic links in the path, as on a real machine.
        let top = fs::canonicalize(dir.path()).expect("a path");
        let links = top.join("dev/disk/by-id");
        fs::create_dir_all(&links).expect("directories");
        for disk in ["sda", "sdb"] {
            fs::write(top.join("dev").join(disk), "").expect("a disk");
        }
        for (name, disk) in [("ata-A", "sda"), ("wwn-0x5", "sda"), ("ata-B", "sdb")] {
            std::os::unix::fs::symlink(format!("../../{disk}"), links.join(name)).expect("a link");
        }
        let root = Root::at(&top);
        let name = |path: &str| lasting_name(&root, Path::new(path));
        assert_eq!(name("/dev/sda"), Path::new("/dev/disk/by-id/wwn-0x5"));
        assert_eq!(name("/dev/sdb"), Path::new("/dev/disk/by-id/ata-B"));
        assert_eq!(name("/dev/sdc"), Path::new("/dev/sdc"), "which has none");
        assert_eq!(name("/srv/data"), Path::new("/srv/data"), "no device");
    }
}
