//! Clean systems for testing packages: mmdebstrap creates each once; it is unpacked for each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{Output, captured, output, target_directory};

/// The programs of a system without Debian's: one file.
const BUSYBOX: &str = "busybox-static";

/// Bind mounts the system, because a root directory must be a mount. `$0` is its directory.
const MOUNT_ROOT: &str = "mount --bind \"$0\" \"$0\"; mount -t proc proc \"$0/proc\"";

/// Not chroot(8), because the kernel refuses user namespaces there. A minimal Debian has no
/// umount(8), but perl: 166 is umount2(2) on x86-64, 2 is MNT_DETACH.
const ENTER: &str = "cd \"$0\"; pivot_root . .old
umount -l .old 2>/dev/null ||
perl -e 'my $old = \".old\"; syscall(166, $old, 2) == 0 or die \"umount: $!\"'";

/// Mounts /sys read-only, which scripts may expect.
const READ_ONLY_SYS: &str = "mount -t sysfs -o ro sysfs \"$0/sys\"";

/// A system in a directory, which is removed on drop.
#[derive(Debug)]
pub struct Chroot {
    pub root: PathBuf,
}

impl Chroot {
    /// Unpacks this Debian release, with these packages besides the essential ones; keeps the tar
    /// file, which takes minutes to create.
    pub fn unpack(repository: &Path, suite: &str, packages: &[&str]) -> Result<Self> {
        Self::of_variant(repository, "essential", suite, packages)
    }

    /// Creates a system whose only program is busybox, without libraries.
    pub fn busybox(repository: &Path) -> Result<Self> {
        let chroot = Self::of_variant(repository, "extract", "bookworm", &[BUSYBOX])?;
        let script = "cd \"$0\"; mkdir -p proc sys tmp usr/local/bin
            for name in $(bin/busybox --list); do
                [ -e bin/$name ] || ln -s busybox bin/$name
            done";
        output(Command::new("sh").args(["-ec", script]).arg(&chroot.root))?;
        Ok(chroot)
    }

    fn of_variant(
        repository: &Path,
        variant: &str,
        suite: &str,
        packages: &[&str],
    ) -> Result<Self> {
        let cache = target_directory(repository)?.join("dist-systems");
        fs::create_dir_all(&cache)?;
        let name = [&[suite], packages].concat().join("+");
        let tar = cache.join(format!("{name}.tar"));
        if !tar.exists() {
            let partial = cache.join(format!("{name}.partial.tar"));
            let mut command = Command::new("mmdebstrap");
            command.args(["--quiet", &format!("--variant={variant}")]);
            // A mirror may lag by more than the week for which an index of testing is valid.
            command.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
            command.args(packages.iter().map(|package| format!("--include={package}")));
            command.arg(suite).arg(&partial);
            command.args(std::env::var("FOREREAD_GUEST_MIRROR"));
            output(&mut command).context("making a system needs mmdebstrap and a Debian mirror")?;
            fs::rename(partial, &tar)?;
        }
        let chroot = Self { root: cache.join(format!("{name}.{}", std::process::id())) };
        fs::create_dir_all(chroot.root.join(".old"))?;
        output(Command::new("tar").arg("-xf").arg(&tar).arg("-C").arg(&chroot.root))?;
        Ok(chroot)
    }

    /// Returns the path of a file next to the system, removed with it: `$0.img`.
    pub fn image(&self) -> PathBuf {
        PathBuf::from(format!("{}.img", self.root.display()))
    }

    /// Copies a file into the top directory.
    pub fn copy(&self, from: &Path, name: &str) -> Result<()> {
        fs::copy(from, self.root.join(name)).with_context(|| from.display().to_string())?;
        Ok(())
    }

    /// Runs a script inside, without a network.
    pub fn run(&self, script: &str) -> Result<Output> {
        let words = ["--net", "--pid", "--fork", "--kill-child"];
        self.enter(&words, READ_ONLY_SYS, "env", &format!("set -e\n{script}"))
    }

    /// Runs a script inside after `prepare`, with the command `wrapper`. Mounts disappear with the
    /// script; its processes do so only if `namespaces` (options of unshare(1)) kill them.
    pub fn enter(
        &self,
        namespaces: &[&str],
        prepare: &str,
        wrapper: &str,
        script: &str,
    ) -> Result<Output> {
        let mut command = Command::new("unshare");
        command
            .arg("--mount")
            .args(namespaces)
            .args(["/bin/sh", "-ec"])
            .arg(format!("{MOUNT_ROOT}\n{prepare}\n{ENTER}\nexec {wrapper} /bin/sh -c \"$1\""))
            .arg(&self.root)
            .arg(script)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C.UTF-8");
        captured(&mut command)
    }
}

impl Drop for Chroot {
    fn drop(&mut self) {
        // Mounts were made in other namespaces; --one-file-system is a second safeguard.
        let removed = Command::new("rm")
            .args(["-rf", "--one-file-system"])
            .args([&self.root, &self.image()])
            .status();
        if !removed.is_ok_and(|status| status.success()) {
            eprintln!("xtask: could not remove {}", self.root.display());
        }
    }
}
