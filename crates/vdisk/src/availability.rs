//! Checks whether this machine supports virtual disks, and what is missing.

use std::fs;
use std::path::PathBuf;

use thiserror::Error;

use crate::filesystem::Filesystem;

/// A requirement that this machine or user does not meet.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unavailable {
    /// Mounting and loop devices require root.
    #[error("a virtual disk needs root, to mount it: run with sudo")]
    NotRoot,
    /// `/dev/fuse` cannot be opened.
    #[error(
        "a virtual disk needs FUSE, and {} cannot be opened ({reason}): load the kernel module \
         `fuse`, or give the container that device",
        .path.display()
    )]
    NoFuse { path: PathBuf, reason: String },
    /// `/dev/loop-control` cannot be opened.
    #[error(
        "a virtual disk needs a loop device, and {} cannot be opened ({reason}): load the kernel \
         module `loop`, or give the container that device",
        .path.display()
    )]
    NoLoop { path: PathBuf, reason: String },
    /// The program that creates the file system is not installed.
    #[error("fs={filesystem} needs {program}: install the package {package}")]
    NoProgram {
        filesystem: Filesystem,
        program: &'static str,
        /// The Debian and Ubuntu package that contains the program.
        package: &'static str,
    },
    /// The kernel does not support the file system.
    #[error("fs={filesystem}: this kernel does not have {filesystem}; try ext4, xfs or raw")]
    NoFilesystem { filesystem: Filesystem },
}

/// Checks that this user can create a virtual disk with this file system on this machine.
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
