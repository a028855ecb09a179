//! Creates and mounts the file system of a disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::availability::Unavailable;
use crate::error::VdiskError;
use crate::filesystem::Filesystem;
use crate::layout::DiskDirs;

/// Creates the file system on `device`. Does background work such as zeroing inode tables now
/// rather than after the first mount, so that it does not disturb measurements.
pub(crate) fn make(filesystem: Filesystem, device: &Path) -> Result<(), VdiskError> {
    let Some(maker) = filesystem.maker() else { return Ok(()) };
    let (program, package) = (maker.program, maker.package);
    let path = sys::program::find_also_in(program, &[]).ok_or(Unavailable::NoProgram {
        filesystem,
        program,
        package,
    })?;
    let mut command = Command::new(path);
    command.args(options(filesystem)).arg(device);
    run(&mut command)
}

fn options(filesystem: Filesystem) -> &'static [&'static str] {
    // No discard: the disk is new. ext3 and ext4 get one inode per MiB: a disk for measurements has
    // few files, and larger tables would separate them.
    const EXT: &[&str] =
        &["-q", "-F", "-T", "largefile", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];
    match filesystem {
        Filesystem::Xfs => &["-q", "-f", "-K"],
        Filesystem::Ext4 | Filesystem::Ext3 => EXT,
        Filesystem::Btrfs => &["-q", "-f", "-K"],
        Filesystem::Raw => &[],
    }
}

/// btrfs would discard freed space in the background; the others discard only on request.
fn mount_options(filesystem: Filesystem) -> &'static str {
    if filesystem == Filesystem::Btrfs { "nodiscard" } else { "" }
}

/// Mounts the file system and returns the mount point; `None` for a raw disk.
pub(crate) fn mount(
    home: &DiskDirs,
    fs: Filesystem,
    device: &Path,
) -> Result<Option<PathBuf>, VdiskError> {
    if fs == Filesystem::Raw {
        return Ok(None);
    }
    let target = home.mountpoint();
    sys::mounts::mount(device, &target, fs.name(), mount_options(fs)).map_err(
        |error| match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NODEV) => Unavailable::NoFilesystem { filesystem: fs }.into(),
            _ => VdiskError::io("mounting", &target)(error),
        },
    )?;
    // Write the data that mounting left in memory now, while the disk is not timed.
    let root = File::open(&target).map_err(VdiskError::io("opening", &target))?;
    rustix::fs::syncfs(&root)
        .map_err(|error| VdiskError::io("writing out", &target)(error.into()))?;
    Ok(Some(target))
}

fn run(command: &mut Command) -> Result<(), VdiskError> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(VdiskError::io("running", Path::new(command.get_program())))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(VdiskError::Program { program: shown, status: output.status.to_string(), stderr })
}
