//! The source archive with all crates, which can be built without a network.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Release, packages::archive};
use crate::command::{cargo, output, run};

pub fn write(release: &Release) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let name = format!("foreread-{}", release.version);
    let top = directory.path().join(&name);
    fs::create_dir(&top)?;
    let tar = directory.path().join("source.tar");
    run(release.command("git").args(["archive", "--format=tar", "HEAD", "-o"]).arg(&tar))?;
    run(release.command("tar").arg("-xf").arg(&tar).arg("-C").arg(&top))?;
    let configuration = vendor(release, &top)?;
    fs::create_dir_all(top.join(".cargo"))?;
    fs::write(top.join(".cargo/config.toml"), configuration)?;
    archive(release, directory.path(), &name, &format!("{name}-vendored.tar.gz"))
}

/// Copies all crates; returns the configuration that makes cargo use them, and the commit, which an
/// archive does not contain otherwise.
fn vendor(release: &Release, top: &Path) -> Result<String> {
    let mut command = release.command(cargo());
    command.current_dir(top).args(["vendor", "--locked", "vendor"]);
    let printed = output(&mut command).context("copying the crates")?;
    ensure!(printed.contains("[source.crates-io]"), "cargo vendor prints no configuration");
    Ok(format!("{printed}\n\n[env]\nFOREREAD_COMMIT = \"{}\"\n", release.commit))
}
