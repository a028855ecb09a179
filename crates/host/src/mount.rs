//! The mount table.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{DevNo, HostError, Root};

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountInfo {
    /// The mount's id, as `statx` also reports it for paths on the mount.
    pub id: u64,
    /// The id of the parent mount.
    pub parent: u64,
    /// Device of the files, as in `st_dev` (except on btrfs, where each subvolume has its own).
    pub device: DevNo,
    /// The mounted directory of the file system; not `/` for bind mounts.
    pub root: PathBuf,
    /// The fields that a [`crate::Storage`] stores.
    pub mount: Mount,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub point: PathBuf,
    /// The type of file system: `ext4`, `nfs4`, `fuse.sshfs`.
    pub fstype: String,
    /// The mounted object: a device, a server's export, or any text.
    pub source: String,
    /// The options of the mount and of the file system, separated by commas.
    pub options: String,
    /// Whether the mount or its file system is read-only.
    pub read_only: bool,
}

/// Parses `mountinfo`; invalid lines are skipped.
pub fn parse_mountinfo(text: &str) -> Vec<MountInfo> {
    text.lines().filter_map(parse_line).collect()
}

pub(crate) fn mounts(root: &Root) -> Result<Vec<MountInfo>, HostError> {
    // In a tree with a live procfs, such as a host's root mounted in a container, `self` is this
    // process with the container's mounts. Process 1 has the host's mounts.
    let is_live = !root.is_system() && root.path("/proc/self").is_symlink();
    let file = if is_live { "/proc/1/mountinfo" } else { "/proc/self/mountinfo" };
    match root.read(file) {
        Ok(text) => Ok(parse_mountinfo(&text)),
        Err(error) => root.ensure_mounted().and(Err(error)),
    }
}

/// Returns the source of the mount with this device number, for mounts without a block device.
pub fn mount_source(root: &Root, device: DevNo) -> Option<String> {
    let mounts = mounts(root).ok()?;
    mounts.into_iter().rev().find(|info| info.device == device).map(|info| info.mount.source)
}

/// Returns the mount that contains a path, by names alone: the longest mount point above the path.
/// If several are mounted there, returns the last one, which hides the others.
pub(crate) fn mount_above<'a>(mounts: &'a [MountInfo], path: &Path) -> Option<&'a MountInfo> {
    mounts
        .iter()
        .filter(|info| path.starts_with(&info.mount.point))
        .max_by_key(|info| info.mount.point.components().count())
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. The
/// dash follows any number of optional fields. A source may be empty, so each space separates.
fn parse_line(line: &str) -> Option<MountInfo> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let id = before.next()?.parse().ok()?;
    let parent = before.next()?.parse().ok()?;
    let device = before.next()?.parse().ok()?;
    let root = unescape(before.next()?);
    let point = unescape(before.next()?);
    let mount_options = before.next()?;
    let mut after = after.splitn(3, ' ');
    let fstype = after.next()?.to_owned();
    let source = unescape(after.next()?).to_string_lossy().into_owned();
    let super_options = after.next().unwrap_or("");
    let read_only =
        [mount_options, super_options].iter().any(|options| options.split(',').any(|o| o == "ro"));
    let options = unescape(&join_options(mount_options, super_options));
    let options = options.to_string_lossy().into_owned();
    let mount = Mount { point: point.into(), fstype, source, options, read_only };
    Some(MountInfo { id, parent, device, root: root.into(), mount })
}

fn join_options(mount: &str, super_block: &str) -> String {
    let new =
        super_block.split(',').filter(|option| mount.split(',').all(|known| known != *option));
    mount.split(',').chain(new).filter(|option| !option.is_empty()).collect::<Vec<_>>().join(",")
}

/// Decodes the kernel's octal escapes such as `\040`, which stand for spaces, tabs, line ends,
/// backslashes and `#`.
fn unescape(field: &str) -> OsString {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes.get(at..at + 4).and_then(octal) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(plain)
}

fn octal(escape: &[u8]) -> Option<u8> {
    let digits = escape.strip_prefix(b"\\")?;
    let value = digits.iter().try_fold(0u32, |value, digit| {
        (b'0'..=b'7').contains(digit).then(|| value * 8 + u32::from(digit - b'0'))
    })?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 27 8:17 /sub /mnt/my\\040disk\\134x ro,noatime master:1 shared:2 - ext4 /dev/sdb1 rw
37 27 0:40 / /mnt/export rw - nfs4 server:/a\\040b rw,vers=4.2
38 27 0:41 / /mnt/nameless rw - fuse  rw
nonsense
39 27 8:18 / /mnt/my rw - xfs /dev/sdb2 ro,attr2
";

    #[test]
    fn the_table_is_read_with_its_escapes() {
        let mounts = parse_mountinfo(TABLE);
        assert_eq!(mounts.len(), 6);
        let disk = &mounts[2];
        assert_eq!((disk.id, disk.parent, disk.device.to_string().as_str()), (36, 27, "8:17"));
        assert_eq!(disk.root, Path::new("/sub"));
        assert_eq!(disk.mount.point, Path::new("/mnt/my disk\\x"));
        assert_eq!(disk.mount.source, "/dev/sdb1");
        assert_eq!(disk.mount.options, "ro,noatime,rw");
        assert!(disk.mount.read_only);
        assert_eq!(mounts[3].mount.source, "server:/a b");
        assert_eq!(mounts[4].mount.source, "");
        assert!(!mounts[4].mount.read_only);
        assert!(mounts[5].mount.read_only, "the file system is, though the mount is not");
    }

    #[test]
    fn the_longest_and_last_mount_counts() {
        let mut mounts = parse_mountinfo(TABLE);
        let above = |mounts: &[MountInfo], path: &str| {
            mount_above(mounts, Path::new(path)).map(|info| info.id)
        };
        assert_eq!(above(&mounts, "/mnt/my disk\\x/data"), Some(36));
        assert_eq!(above(&mounts, "/mnt/my/data"), Some(39));
        assert_eq!(above(&mounts, "/mnt/mystery"), Some(27));
        let mut hiding = mounts[5].clone();
        hiding.id = 99;
        mounts.push(hiding);
        assert_eq!(above(&mounts, "/mnt/my/data"), Some(99));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            parse_mountinfo(&text);
        }

        #[test]
        fn lines_near_the_format_are_read_without_panic(
            text in "([0-9:/a-z\\\\, -]{0,20} ){0,9}- [a-z0-9 /\\\\]{0,20}"
        ) {
            parse_mountinfo(&text);
        }

        #[test]
        fn escaping_is_undone(point in "/[ -~\\t\\n]{0,30}") {
            let escaped: String = point
                .bytes()
                .map(|byte| match byte {
                    b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}"),
                    _ => char::from(byte).to_string(),
                })
                .collect();
            let line = format!("1 2 8:1 / {escaped} rw - ext4 /dev/sda1 rw");
            let mounts = parse_mountinfo(&line);
            prop_assert_eq!(&mounts[0].mount.point, Path::new(&point));
        }
    }
}
