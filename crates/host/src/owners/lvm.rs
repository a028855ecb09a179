//! Read-ahead in LVM's metadata, from the text copies in `/etc/lvm/backup`. `lvchange -r N` stores
//! `read_ahead = N` (sectors); `-r none` stores -1. Otherwise LVM uses the largest of the kernel's
//! default, the value of its physical volumes, and two stripes.

use std::path::{Path, PathBuf};

use super::shell::lvm_names;
use super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted};
use crate::Root;
use units::Kib;

const FOLDER: &str = "/etc/lvm/backup";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    volumes: Vec<LogicalVolume>,
    groups: Vec<String>,
}

/// A logical volume whose metadata sets read-ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalVolume {
    pub group: String,
    pub name: String,
    /// Read-ahead in sectors; -1 means none.
    pub read_ahead_sectors: i64,
    pub place: FileLocation,
}

impl Metadata {
    /// Reads the copies, as root only. The error holds the unreadable path and the reason.
    pub(super) fn read(root: &Root) -> Result<Self, (PathBuf, String)> {
        let mut metadata = Self::default();
        let folder = root.path(FOLDER);
        match std::fs::read_dir(&folder) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err((FOLDER.into(), error.to_string()));
            }
            Err(_) => return Ok(metadata),
        }
        for group in root.names(FOLDER) {
            let file = Path::new(FOLDER).join(&group);
            // Opening a pipe would block.
            let path = root.path(&file);
            match path
                .metadata()
                .and_then(|it| it.is_file().then(|| std::fs::File::open(&path)).transpose())
            {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    return Err((file, error.to_string()));
                }
                _ => {}
            }
            if let Some(text) = root.lines_of(&file) {
                metadata.volumes.extend(parse(&file, &group, &text));
                metadata.groups.push(group);
            }
        }
        Ok(metadata)
    }

    /// Returns the target's volume if its read-ahead is not automatic.
    fn volume(&self, target: &Target) -> Option<&LogicalVolume> {
        let (group, name) = lvm_names(&target.dm.as_ref()?.0)?;
        self.volumes.iter().find(|volume| volume.group == group && volume.name == name)
    }

    pub(super) fn claim(&self, target: &Target) -> Option<Claim> {
        let volume = self.volume(target)?;
        let wanted = match u64::try_from(volume.read_ahead_sectors) {
            Ok(sectors) => Wanted::sectors(sectors),
            Err(_) => Wanted::Exactly(Kib::new(0)),
        };
        Some(Claim {
            owner: OwnerKind::Lvm,
            wanted,
            place: volume.place.clone(),
            text: format!("read_ahead = {} (sectors)", volume.read_ahead_sectors),
            comment: None,
            certainty: Certainty::Sure,
            by_foreread: false,
        })
    }

    /// Returns whether the volume's read-ahead is automatic; `None` if its group is unknown.
    pub(super) fn is_auto(&self, target: &Target) -> Option<bool> {
        let (group, _) = lvm_names(&target.dm.as_ref()?.0)?;
        let known = self.groups.contains(&group);
        known.then(|| self.volume(target).is_none())
    }
}

/// Returns the group and name of a device's logical volume; `None` for other devices.
pub fn volume_of(root: &Root, device: crate::DevNo) -> Option<(String, String)> {
    let of_dm = |name| root.read(format!("/sys/dev/block/{device}/dm/{name}")).ok();
    of_dm("uuid").filter(|uuid| uuid.starts_with("LVM-"))?;
    lvm_names(&of_dm("name")?)
}

/// Returns a volume's read-ahead from its group's metadata, in sectors; `None` if it is automatic
/// or unreadable.
pub fn read_ahead_sectors(root: &Root, group: &str, name: &str) -> Option<i64> {
    let file = Path::new(FOLDER).join(group);
    let text = root.lines_of(&file)?;
    let volumes = parse(&file, group, &text);
    volumes.iter().find(|volume| volume.name == name).map(|volume| volume.read_ahead_sectors)
}

/// Parses a group's metadata and returns the volumes that set read-ahead. The syntax is `name { key
/// = value … name { … } }`.
pub fn parse(file: &Path, group: &str, text: &str) -> Vec<LogicalVolume> {
    let mut found = Vec::new();
    let mut sections: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(name) = line.strip_suffix('{') {
            sections.push(name.trim().to_owned());
        } else if line == "}" {
            sections.pop();
        } else if let Some(("read_ahead", value)) =
            line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
            && let [.., section, name] = sections.as_slice()
            && section == "logical_volumes"
            && let Ok(read_ahead_sectors) = value.parse()
        {
            found.push(LogicalVolume {
                group: group.to_owned(),
                name: name.clone(),
                read_ahead_sectors,
                place: FileLocation::new(file, index + 1),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GROUP: &str = "\
# Generated
vg {
\tid = \"x\"
\tlogical_volumes {

\t\thome {
\t\t\tid = \"y\"
\t\t\tread_ahead = 8192
\t\t\tsegment1 {
\t\t\t\tstart_extent = 0
\t\t\t}
\t\t}
\t\traw {
\t\t\t# None
\t\t\tread_ahead = -1
\t\t}
\t\troot {
\t\t}
\t}
}
";

    fn target(label: &str) -> Target {
        Target {
            bdi: crate::BdiId::new("253:0").unwrap(),
            name: Some("dm-0".to_owned()),
            dm: Some((label.to_owned(), "LVM-x".to_owned())),
            fstype: None,
            points: Vec::new(),
        }
    }

    #[test]
    fn a_volume_s_read_ahead_is_in_sectors() {
        let volumes = parse(Path::new("/etc/lvm/backup/vg"), "vg", GROUP);
        let metadata = Metadata { volumes, groups: vec!["vg".to_owned()] };
        let claim = metadata.claim(&target("vg-home")).unwrap();
        assert_eq!((claim.wanted, claim.place.line), (Wanted::Exactly(Kib::new(4096)), 8));
        assert_eq!(metadata.claim(&target("vg-raw")).unwrap().wanted.kib(), Some(Kib::new(0)));
        assert_eq!(metadata.is_auto(&target("vg-root")), Some(true));
        assert_eq!(metadata.is_auto(&target("vg-home")), Some(false));
        assert_eq!(metadata.is_auto(&target("other-home")), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(\\PC|[{}\n=#]|read_ahead|logical_volumes){0,80}") {
            parse(Path::new("/x"), "vg", &text);
        }
    }
}
