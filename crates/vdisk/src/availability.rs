//! Whether virtual disks are possible on this machine, and if not, what is missing.

use std::fs;
use std::path::PathBuf;

use thiserror::Error;

use crate::filesystem::Filesystem;

/// What is missing on this machine or for this user.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unavailable {
    /// Mounting and loop devices need root.
    #[error("a virtual disk needs root, to mount it: run with sudo")]
    NotRoot,
    /// No `/dev/fuse`.
    #[error(
        "a virtual disk needs FUSE, and {} cannot be opened ({reason}): load the kernel module \
         `fuse`, or give the container that device",
        .path.display()
    )]
    NoFuse { path: PathBuf, reason: String },
    /// No `/dev/loop-control`.
    #[error(
        "a virtual disk needs a loop device, and {} cannot be opened ({reason}): load the kernel \
         module `loop`, or give the container that device",
        .path.display()
    )]
    NoLoop { path: PathBuf, reason: String },
    /// The program that creates the filesystem is not installed.
    #[error("fs={filesystem} needs {program}: install the package {package}")]
    NoProgram {
        filesystem: Filesystem,
        program: &'static str,
        /// The Debian and Ubuntu package that has it.
        package: &'static str,
    },
    /// The kernel does not support the filesystem.
    #[error("fs={filesystem}: this kernel does not have {filesystem}; try ext4, xfs or raw")]
    NoFilesystem { filesystem: Filesystem },
}

/// Whether this user can create a virtual disk with this filesystem here.
pub fn availability(filesystem: Filesystem) -> Result<(), Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable::NotRoot);
    }
    openable("/dev/fuse").map_err(|(path, reason)| Unavailable::NoFuse { path, reason })?;
    openable("/dev/loop-control").map_err(|(path, reason)| Unavailable::NoLoop { path, reason })?;
    let Some(maker) = filesystem.maker() else { return Ok(()) };
    if sys::program::find_also_in(maker.program, &[]).is_none() {
        let (program, package) = (maker.program, maker.package);
        return Err(Unavailable::NoProgram { filesystem, program, package });
    }
    Ok(())
}

fn openable(device: &str) -> Result<(), (PathBuf, String)> {
    let path = PathBuf::from(device);
    match fs::OpenOptions::new().read(true).write(true).open(&path) {
        Ok(_) => Ok(()),
        Err(error) => Err((path, error.to_string())),
    }
}
