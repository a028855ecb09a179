//! By what a device is known after a boot: never by the kernel's name, which may be another's then.

use host::{DevNo, Root};

/// A condition of a udev rule that one device alone meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// `ENV{ID_SERIAL}=="…"`.
    pub condition: String,
    /// The identity itself, for file names and people.
    pub value: String,
}

/// Properties of udev's database, the surest first. Array and mapper names come first because
/// their serial would be a member's.
const PROPERTIES: &[&str] =
    &["DM_UUID", "MD_UUID", "ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_FS_UUID"];

/// Attributes of sysfs, for machines and containers without udev's database.
const ATTRIBUTES: &[&str] =
    &["dm/uuid", "md/uuid", "wwid", "device/wwid", "serial", "device/serial"];

/// How a whole device can be told from all others; `None` if it has nothing of its own.
pub fn matched(root: &Root, device: DevNo) -> Option<Match> {
    let database = root.read(format!("/run/udev/data/b{device}")).unwrap_or_default();
    let property = |name: &&str| {
        let line = |line: &str| {
            let (key, value) = line.strip_prefix("E:")?.split_once('=')?;
            (key == *name).then(|| value.to_owned())
        };
        let value = database.lines().find_map(line).filter(|value| is_plain(value))?;
        Some(Match { condition: format!("ENV{{{name}}}==\"{value}\""), value })
    };
    let attribute = |name: &&str| {
        let value = root.read(format!("/sys/dev/block/{device}/{name}")).ok()?;
        let value = value.lines().next()?.trim().to_owned();
        is_plain(&value).then(|| Match { condition: format!("ATTR{{{name}}}==\"{value}\""), value })
    };
    PROPERTIES.iter().find_map(property).or_else(|| ATTRIBUTES.iter().find_map(attribute))
}

/// Nothing that means something to udev's patterns, or that ends the string.
fn is_plain(value: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:+=/ ".contains(c);
    (4..=128).contains(&value.len()) && value.chars().all(fits)
}

/// A name for files: letters, digits and dashes of an identity.
pub fn slug(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = text.chars().map(letter).take(60).collect();
    slug.trim_matches('-').to_owned()
}
