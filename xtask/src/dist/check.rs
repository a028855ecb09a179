//! Installs, uses, upgrades and removes the Debian package in clean systems:
//! `cargo run -p xtask -- dist --check VERSION`. Needs root, mmdebstrap and a Debian mirror.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::architecture::Architecture;
use super::tools::ReleaseTools;
use super::{Release, output, run, target};

const SYSTEMS: [(&str, &str); 3] =
    [("Debian 11", "bullseye"), ("Debian 12", "bookworm"), ("Debian 13", "trixie")];

/// What is done in each system, in this order, and the script that must succeed.
const STEPS: [(&str, &str); 8] = [
    ("install", "dpkg -i /packages/first.deb"),
    (
        "use",
        "foreread --version\n\
         foreread doctor --json >/tmp/doctor.json\n\
         foreread sweep sim:nvme,cache=64M --vary read_ahead=128K,1M --workload seq-1 \\\n\
             --repeats 2 --duration 100ms --json >/tmp/sweep.json\n\
         test -s /tmp/sweep.json",
    ),
    (
        "documentation",
        "test -f /usr/share/man/man1/foreread-tune.1.gz\n\
         test -f /usr/share/bash-completion/completions/foreread\n\
         test -f /usr/share/doc/foreread/THIRD-PARTY-LICENSES.gz",
    ),
    (
        "service is disabled",
        "test ! -e /etc/systemd/system/multi-user.target.wants/foreread-auto.service",
    ),
    ("upgrade", "echo '# mine' >>/etc/foreread.toml\ndpkg -i --force-confold /packages/next.deb"),
    (
        "configuration and record are kept",
        "grep -q mine /etc/foreread.toml\nforeread runs show last",
    ),
    ("remove", "dpkg -r foreread >/tmp/removed\ngrep -q 'kept /var/lib/foreread' /tmp/removed"),
    (
        "record is kept",
        "test ! -e /usr/bin/foreread\ntest -s /var/lib/foreread/runs.sqlite\n\
         dpkg --purge foreread\ntest -s /var/lib/foreread/runs.sqlite",
    ),
];

/// Prints a table of systems and steps; whether all steps succeed.
pub fn run_all(release: &Release) -> Result<bool> {
    let packages = tempfile::tempdir()?;
    prepare(release, packages.path())?;
    let mut well = true;
    for (system, suite) in SYSTEMS {
        let root = unpacked(release, suite)?;
        let result = steps(&root, packages.path());
        run(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&root))?;
        for (step, failure) in result? {
            well &= failure.is_none();
            let outcome = failure.map_or_else(|| "ok".to_owned(), |why| format!("FAILED: {why}"));
            println!("{system:<10} {step:<34} {outcome}");
        }
    }
    Ok(well)
}

/// The package, and the same files under a higher version.
fn prepare(release: &Release, directory: &Path) -> Result<()> {
    let of = Architecture::named(std::env::consts::ARCH)?;
    let tools = ReleaseTools::install(&target(&release.root))?;
    let stage = target(&release.root).join("dist-stage").join(of.arch());
    ensure!(stage.is_dir(), "{} does not exist: run dist first", stage.display());
    for (version, name) in [(release.version.as_str(), "first.deb"), ("999.0.0", "next.deb")] {
        let mut nfpm = release.command(tools.nfpm());
        nfpm.args(["package", "--config", "packaging/nfpm.yaml", "--packager", "deb", "--target"])
            .arg(directory.join(name))
            .env("ARCH", of.goarch())
            .env("VERSION", version)
            .env("STAGE", &stage);
        run(&mut nfpm)?;
    }
    Ok(())
}

/// A fresh system; its tar file is kept, as unpacking it is much faster than making it.
fn unpacked(release: &Release, suite: &str) -> Result<PathBuf> {
    let cache = target(&release.root).join("dist-systems");
    fs::create_dir_all(&cache)?;
    let tar = cache.join(format!("{suite}.tar"));
    if !tar.exists() {
        let made = cache.join(format!("{suite}.partial.tar"));
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=essential", suite]).arg(&made);
        command.args(std::env::var("FOREREAD_GUEST_MIRROR"));
        run(&mut command).context("making a system needs mmdebstrap and a Debian mirror")?;
        fs::rename(made, &tar)?;
    }
    let root = cache.join(suite);
    fs::create_dir_all(&root)?;
    run(Command::new("tar").arg("-xf").arg(&tar).arg("-C").arg(&root))?;
    Ok(root)
}

/// Each step that was tried, and why it failed if it did: later ones are not tried then.
fn steps(root: &Path, packages: &Path) -> Result<Vec<(&'static str, Option<String>)>> {
    let inside = root.join("packages");
    fs::create_dir_all(&inside)?;
    for name in ["first.deb", "next.deb"] {
        fs::copy(packages.join(name), inside.join(name))?;
    }
    let mut results = Vec::new();
    for (step, script) in STEPS {
        // Namespaces of its own: what it mounts is gone with it, and it has no network.
        let mut command = Command::new("unshare");
        let mounts = "mount -t proc proc \"$0/proc\" && mount -t sysfs -o ro sysfs \"$0/sys\"";
        command
            .args(["--mount", "--pid", "--fork", "--net", "/bin/sh", "-ec"])
            .arg(format!("{mounts} && exec chroot \"$0\" /bin/sh -ec \"$1\""))
            .arg(root)
            .arg(script)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C.UTF-8");
        let failure = output(&mut command).err().map(|error| format!("{error:#}"));
        let failed = failure.is_some();
        results.push((step, failure));
        if failed {
            break;
        }
    }
    Ok(results)
}
