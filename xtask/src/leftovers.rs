//! Virtual disks that a killed test run has left.
//!
//! A server that died with its test leaves a mount and a loop device. They spoil later runs:
//! `mkfs.btrfs` refuses to work while any loop device's file cannot be reached.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

/// Removes virtual disks whose server is dead and whose files are in the directory for temporary
/// files, where only tests put them.
pub fn remove(root: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("reading the mounts")?;
    for (runtime, name) in dead(&mounts, &env::temp_dir(), is_dead) {
        println!("removing {name} in {}, left by a killed test run", runtime.display());
        let status = Command::new(root.join("target/debug/foreread"))
            .args(["vdisk", "remove", &name])
            .env("FOREREAD_RUNTIME_DIR", &runtime)
            .env("FOREREAD_STATE_DIR", runtime.with_file_name("state"))
            .status();
        status.context("starting foreread")?;
    }
    Ok(())
}

/// Returns the runtime directory and the name of each virtual disk below `temporary` whose mount
/// is dead. Lines of `mounts` are as in `/proc/self/mounts`.
fn dead(mounts: &str, temporary: &Path, is_dead: impl Fn(&Path) -> bool) -> Vec<(PathBuf, String)> {
    let fuse = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (source, point, kind) = (words.next()?, Path::new(words.next()?), words.next()?);
        let ours = source == "foreread" && kind == "fuse" && point.starts_with(temporary);
        (ours && is_dead(point)).then_some(point)
    });
    fuse.filter_map(|point| {
        let disk = point.parent()?;
        let runtime = disk.parent()?.parent()?;
        Some((runtime.to_owned(), disk.file_name()?.to_str()?.to_owned()))
    })
    .collect()
}

fn is_dead(point: &Path) -> bool {
    fs::metadata(point).is_err_and(|error| error.kind() == std::io::ErrorKind::NotConnected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dead_virtual_disks_of_tests_are_removed() {
        let mounts = "\
            /dev/vda / ext4 rw 0 0\n\
            foreread /run/foreread/vdisk/users/fuse fuse rw 0 0\n\
            foreread /tmp/.tmpA/runtime/vdisk/stage/fuse fuse rw 0 0\n\
            /dev/loop8 /tmp/.tmpA/runtime/vdisk/stage/mnt ext4 rw 0 0\n\
            foreread /tmp/.tmpB/runtime/vdisk/alive/fuse fuse rw 0 0\n";
        let is_dead = |point: &Path| !point.to_string_lossy().contains("alive");
        let found = dead(mounts, Path::new("/tmp"), is_dead);
        assert_eq!(found, [(PathBuf::from("/tmp/.tmpA/runtime"), "stage".to_owned())]);
    }
}
