//! Builds packages from a staged tree: .deb, .rpm, .apk, a tarball and a wheel.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::Release;
use super::architecture::Architecture;
use super::tools::ReleaseTools;
use crate::command::run;

/// Formats that nfpm writes.
const PACKAGERS: [&str; 3] = ["deb", "rpm", "apk"];

/// Writes the packages of one architecture.
pub fn write(
    release: &Release,
    of: Architecture,
    tools: &ReleaseTools,
    stage: &Path,
) -> Result<()> {
    // An .apk contains the modification times of its scripts.
    let time = format!("@{}", release.epoch);
    let mut touch = release.command("find");
    run(touch.args(["packaging/scripts", "-exec", "touch", "-d", &time, "{}", "+"]))?;
    for packager in PACKAGERS {
        let mut nfpm = release.command(tools.nfpm());
        nfpm.args(["package", "--config", "packaging/nfpm.yaml", "--packager", packager])
            .arg("--target")
            .arg(&release.directory)
            .env("ARCH", of.goarch())
            .env("VERSION", &release.version)
            .env("STAGE", stage);
        run(&mut nfpm)?;
    }
    tarball(release, of, stage)?;
    let mut wheel = release.command(tools.python());
    wheel
        .arg("packaging/wheel.py")
        .arg(stage.join("usr/bin/foreread"))
        .args([&release.version, of.arch(), "README.md"])
        .arg(&release.directory);
    run(&mut wheel)
}

/// Archives the same files below one directory, to be unpacked anywhere.
fn tarball(release: &Release, of: Architecture, stage: &Path) -> Result<()> {
    let name = format!("foreread-{}-{}-linux", release.version, of.arch());
    let directory = tempfile::tempdir()?;
    let top = directory.path().join(&name);
    run(release.command("cp").arg("-a").arg(stage.join("usr")).arg(&top))?;
    fs::create_dir(top.join("etc"))?;
    for (from, to) in [
        ("foreread.toml", "foreread.toml"),
        ("foreread-auto.default", "foreread-auto"),
        ("foreread-metrics.default", "foreread-metrics"),
    ] {
        fs::copy(release.root.join("packaging").join(from), top.join("etc").join(to))?;
    }
    archive(release, directory.path(), &name, &format!("{name}.tar.gz"))
}

/// Archives a directory as a compressed tar file that is reproducible.
pub fn archive(release: &Release, directory: &Path, name: &str, file: &str) -> Result<()> {
    let mut tar = release.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .args(["--mode=go=u,go-w", &format!("--mtime=@{}", release.epoch)])
        .args(["--use-compress-program=gzip -9 -n", "-cf"])
        .arg(release.directory.join(file))
        .arg("-C")
        .arg(directory)
        .arg(name);
    run(&mut tar)
}
