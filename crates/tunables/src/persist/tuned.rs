//! A child of TuneD's active profile, which leaves other settings unchanged.
//!
//! A section selects disks by udev property, never by kernel name. If several sections match a
//! disk, only the one with the lowest `priority` number applies, so the parent's section must have
//! a higher number.

use std::path::PathBuf;

use host::owners::tuned::includes;
use host::{DevNo, Root};

use super::{Draft, PersistBackend, PersistError};
use crate::marks::{lasting_marks, slug};
use crate::{TunableScope, TunableValues};

/// The name of the child profile.
pub(super) const OURS: &str = "foreread";

/// Returns the active profile, or the profile that it includes if the active one is foreread's.
pub fn parent(root: &Root) -> Option<String> {
    let active = root.read("/etc/tuned/active_profile").ok()?;
    let other = active.split_whitespace().find(|word| *word != OURS).map(str::to_owned);
    let included = || {
        let text = root.read(format!("/etc/tuned/{OURS}/tuned.conf")).ok()?;
        includes(&text).into_iter().find(|name| name != OURS)
    };
    let name = other.or_else(included)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().all(fits).then_some(name)
}

pub(super) fn profile(
    root: &Root,
    site: &TunableScope,
    settings: TunableValues,
) -> Result<Draft, PersistError> {
    let parent = parent(root).ok_or(PersistError::NoTuned)?;
    // The sections with their options, in order.
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |head: String, option: String| match sections
        .iter_mut()
        .find(|(known, _)| *known == head)
    {
        Some((_, options)) => options.push(option),
        None => sections.push((head, vec![option])),
    };
    for setting in settings.iter() {
        let value = setting.tunable.encode(&setting.value)?;
        if let Some(name) = setting.tunable.sysctl().filter(|_| setting.tunable.is_of_machine()) {
            add("[sysctl]".to_owned(), format!("{name}={value}"));
            continue;
        }
        let unfit = || PersistError::unfit(setting, PersistBackend::Tuned);
        let option = match setting.tunable.name() {
            "read_ahead" | "member_read_ahead" => "readahead",
            "scheduler" => "elevator",
            _ => return Err(unfit()),
        };
        for file in setting.tunable.files(root, site) {
            let device = device_of(&file).ok_or_else(unfit)?;
            add(head(root, device)?, format!("{option}={value}"));
        }
    }
    let path = PathBuf::from(format!("/etc/tuned/{OURS}/tuned.conf"));
    let mut draft = Draft::new(PersistBackend::Tuned, path);
    draft.lines = vec!["[main]".to_owned(), format!("include={parent}")];
    for (head, options) in sections {
        draft.lines.push(String::new());
        draft.lines.extend(head.lines().map(str::to_owned));
        draft.lines.extend(options);
    }
    draft.settings = settings;
    Ok(draft)
}

/// Returns the whole device that a sysfs file belongs to.
fn device_of(file: &std::path::Path) -> Option<DevNo> {
    let text = file.to_str()?;
    let rest = ["/sys/dev/block/", "/sys/class/bdi/"].iter().find_map(|dir| text.strip_prefix(dir));
    let device: DevNo = rest?.split_once('/')?.0.parse().ok()?;
    (device.major != 0).then_some(device)
}

/// Returns the section header and selection of one disk.
fn head(root: &Root, device: DevNo) -> Result<String, PersistError> {
    // TuneD matches udev properties only, not sysfs attributes.
    let mark = lasting_marks(root, device).into_iter().find(|(name, _)| !name.contains('/'));
    let mark = mark.filter(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let (name, value) = mark.ok_or_else(|| PersistError::without_identity(root, device))?;
    let escaped: String = value
        .chars()
        .flat_map(|c| c.is_ascii_punctuation().then_some('\\').into_iter().chain([c]))
        .collect();
    Ok(format!(
        "[foreread_{}]\ntype=disk\npriority=-10\ndevices_udev_regex=^{name}={escaped}$",
        slug(&value)
    ))
}
