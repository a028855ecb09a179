//! System calls on a path.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;

use crate::block::number_in;
use crate::mount::{mount_above, mounts};
use crate::{DevNo, HostError, Root};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    Directory,
    File,
    /// A block device with this number.
    BlockDevice(DevNo),
}

/// Results of system calls on a path. All other facts come from `/proc` and `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathProbe {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    pub kind: ProbeKind,
    /// Device number of the file system (`st_dev`).
    pub device: DevNo,
    /// Id of the mount; `None` before Linux 5.8.
    pub mount_id: Option<u64>,
}

impl PathProbe {
    /// Examines `path`. System calls cannot query a captured tree: there, device nodes are
    /// identified by their names under `/dev`, and files by the mount above them.
    pub fn read(root: &Root, path: &Path) -> Result<Self, HostError> {
        if root.is_system() { Self::of_live(root, path) } else { Self::of_captured(root, path) }
    }

    fn of_live(root: &Root, given: &Path) -> Result<Self, HostError> {
        let path = fs::canonicalize(given).map_err(|source| explain(root, given, source))?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let status = statx(CWD, &path, AtFlags::empty(), wanted)
            .map_err(|errno| HostError::Read { path: path.clone(), source: errno.into() })?;
        let kind = kind(given, &status)?;
        let device = DevNo { major: status.stx_dev_major, minor: status.stx_dev_minor };
        let has_id = status.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Ok(Self { path, kind, device, mount_id: has_id.then_some(status.stx_mnt_id) })
    }

    fn of_captured(root: &Root, given: &Path) -> Result<Self, HostError> {
        let not_found = || HostError::NotFound { path: given.to_owned(), hint: String::new() };
        let mounts = mounts(root)?;
        let mount = mount_above(&mounts, given).ok_or_else(not_found)?;
        let kind = if given.starts_with("/dev") {
            ProbeKind::BlockDevice(node_number(root, given).ok_or_else(not_found)?)
        } else if root.path(given).is_file() {
            ProbeKind::File
        } else {
            ProbeKind::Directory
        };
        Ok(Self { path: given.to_owned(), kind, device: mount.device, mount_id: Some(mount.id) })
    }
}

fn kind(given: &Path, status: &Statx) -> Result<ProbeKind, HostError> {
    let what = match FileType::from_raw_mode(status.stx_mode.into()) {
        FileType::Directory => return Ok(ProbeKind::Directory),
        FileType::RegularFile => return Ok(ProbeKind::File),
        FileType::BlockDevice => {
            let device = DevNo { major: status.stx_rdev_major, minor: status.stx_rdev_minor };
            return Ok(ProbeKind::BlockDevice(device));
        }
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "special file",
    };
    Err(HostError::NotStorage { path: given.to_owned(), what })
}

/// Converts an error of `canonicalize`, with a hint if `given` is the name of a block device.
fn explain(root: &Root, given: &Path, source: io::Error) -> HostError {
    let path = given.to_owned();
    let nowhere = [Errno::LOOP, Errno::NAMETOOLONG, Errno::NOTDIR, Errno::INVAL];
    if nowhere.iter().any(|errno| source.raw_os_error() == Some(errno.raw_os_error())) {
        return HostError::Unresolvable { path, source };
    }
    if source.kind() != io::ErrorKind::NotFound {
        return HostError::Read { path, source };
    }
    let bare = given.to_str().filter(|name| !name.is_empty() && !name.contains('/'));
    let hint = bare
        .filter(|name| root.exists(format!("/sys/class/block/{name}")))
        .map(|name| format!(" (did you mean /dev/{name}?)"));
    HostError::NotFound { path, hint: hint.unwrap_or_default() }
}

/// Returns the block device number of a node under `/dev`. If the node itself cannot be examined,
/// uses the name that its links lead to, or its dm name.
pub(crate) fn node_number(root: &Root, path: &Path) -> Option<DevNo> {
    if root.is_system()
        && let Ok(status) = rustix::fs::stat(path)
        && FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice
    {
        return Some(DevNo::from_raw(status.st_rdev));
    }
    let node = follow(root, path);
    let name = node.file_name()?.to_str()?;
    number_in(root, &format!("/sys/class/block/{name}/dev")).or_else(|| mapped_number(root, name))
}

fn mapped_number(root: &Root, label: &str) -> Option<DevNo> {
    let names = root.names("/sys/class/block");
    let dir = names
        .iter()
        .map(|name| format!("/sys/class/block/{name}"))
        .find(|dir| root.read(format!("{dir}/dm/name")).is_ok_and(|name| name == label))?;
    number_in(root, &format!("{dir}/dev"))
}

/// Follows links by their text, because a captured tree may lack their targets.
fn follow(root: &Root, path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 8;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(root.path(&path)) else { break };
        path.pop();
        for part in target.components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                part => path.push(part),
            }
        }
    }
    path
}
