//! Packs foreread for the guest: a tar file on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::disk::{Bus, Disk};
use super::image::Image;
use super::machine::Hardware;
use crate::binaries::BUILD;
use crate::command::{captured, cargo, run, target_directory};

/// Variable that forces the build for an older C library, to test it where it is not needed.
const STATIC: &str = "FOREREAD_GUEST_STATIC";

/// Variable with a binary that runs in the guest, such as one of `xtask dist`; replaces the build.
const BINARY: &str = "FOREREAD_GUEST_BINARY";

/// Path of the tar file in the guest.
pub const PAYLOAD_PATH: &str = "/dev/disk/by-id/virtio-payload";

const DISK: Disk = Disk { serial: "payload", bus: Bus::Virtio, mib: 0 };

/// Builds foreread and adds a disk with it.
pub fn pack(root: &Path, hardware: &mut Hardware) -> Result<()> {
    let binary = match std::env::var_os(BINARY) {
        Some(named) => PathBuf::from(named),
        None => build(root, &hardware.image)?,
    };
    let directory = tempfile::tempdir()?;
    let copy = directory.path().join("foreread");
    // Debug information makes up most of a development build.
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg("-o").arg(&copy).arg(&binary);
    let is_stripped = strip.status().is_ok_and(|status| status.success());
    pack_files(&[("foreread", if is_stripped { copy } else { binary })], hardware)
}

/// Adds a disk whose content is a tar file with these files, under their names in the guest.
pub fn pack_files(files: &[(&str, PathBuf)], hardware: &mut Hardware) -> Result<()> {
    let directory = tempfile::tempdir()?;
    for (name, path) in files {
        fs::copy(path, directory.path().join(name))
            .with_context(|| format!("copying {}", path.display()))?;
    }
    let mut command = Command::new("tar");
    command.arg("-cf").arg(DISK.file(&hardware.directory)).arg("-C").arg(directory.path());
    hardware.disks.push(DISK);
    run(command.args(files.iter().map(|(name, _)| name)))
}

/// Returns the binary of `make test` if it can run in the guest, otherwise a static one.
fn build(root: &Path, image: &Image) -> Result<PathBuf> {
    let target = target_directory(root)?;
    let forced = std::env::var_os(STATIC).is_some();
    let mut command = Command::new(cargo());
    command.current_dir(root).args(BUILD).arg("--quiet");
    let binary = if !forced && version(&host_libc()?) <= version(&image.libc_version()?) {
        target.join("debug/foreread")
    } else {
        let triple = "x86_64-unknown-linux-gnu";
        let target = target.join("guest-static");
        command.args(["--target", triple, "--target-dir"]).arg(&target);
        command.env("RUSTFLAGS", "-C target-feature=+crt-static");
        target.join(triple).join("debug/foreread")
    };
    run(&mut command).context("building foreread for the guest")?;
    Ok(binary)
}

/// Returns the version of this machine's C library, which the binary may need: `2.36`.
fn host_libc() -> Result<String> {
    let text = captured(Command::new("getconf").arg("GNU_LIBC_VERSION"))?.stdout;
    match text.trim().strip_prefix("glibc ") {
        Some(version) => Ok(version.to_owned()),
        // Another C library.
        None if text.trim().is_empty() => Ok("999".to_owned()),
        None => bail!("getconf GNU_LIBC_VERSION printed {text}"),
    }
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(version("2.9") < version("2.36"));
        assert!(version("2.36") <= version("2.36"));
        assert!(version("2.39") > version("2.36"));
    }
}
