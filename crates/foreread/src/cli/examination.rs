//! The host that `doctor`, `check` and `presets` examine: this machine or a captured one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use doctor::{Diagnosis, HostSnapshot, Missing, Windows, diagnose};
use host::{Dirs, Root, resolve};
use report::clean;

use super::Context;
use crate::exit::{Usage, bail_usage};

/// The host to examine.
#[derive(Clone, Debug, Args)]
pub struct Tree {
    /// Examine the host captured in this directory (a tree with its sys, proc and etc) instead of
    /// this machine
    #[arg(long, value_name = "DIR", env = "FOREREAD_ROOT")]
    root: Option<OsString>,
}

impl Tree {
    /// Selects the host that another option names; `None` is this machine.
    pub fn from_option(root: Option<OsString>) -> Self {
        Self { root }
    }

    /// Opens this machine, or the host captured in a directory, with that host's journals.
    pub fn host(&self, context: &Context) -> anyhow::Result<Host> {
        // An empty variable counts as unset.
        let given = self.root.as_ref().filter(|root| !root.is_empty()).map(Path::new);
        let Some(given) = given else { return Host::machine(context) };
        let name = given.display();
        let tree = given
            .canonicalize()
            .map_err(|error| Usage(format!("--root: cannot open {name}: {error}")))?;
        if tree == Path::new("/") {
            return Host::machine(context);
        }
        let root = Root::at(&tree);
        let (name, mounts) = (clean::plain(&name.to_string()), "/proc/self/mountinfo");
        if root.read(mounts).is_err() {
            bail_usage!("--root: {name} is not a captured host: cannot read {name}{mounts}");
        }
        if !root.exists("/sys/class/bdi") {
            bail_usage!(
                "--root: {name} is not a captured host: it has no sys/class/bdi; `foreread doctor \
                 --help` lists what a tree needs"
            );
        }
        let dirs =
            Dirs { state: root.path("/var/lib/foreread"), runtime: root.path("/run/foreread") };
        Ok(Host { root, dirs, tree: Some(tree.display().to_string()) })
    }
}

/// The host to examine.
pub struct Host {
    /// File tree of the host.
    pub root: Root,
    /// Directories of foreread's journals on the host.
    pub dirs: Dirs,
    /// Captured directory; `None` for this machine.
    pub tree: Option<String>,
}

impl Host {
    fn machine(context: &Context) -> anyhow::Result<Self> {
        context.root.ensure_mounted()?;
        Ok(Self { root: context.root.clone(), dirs: context.dirs.clone(), tree: None })
    }
}

/// The result of an examination.
pub struct Examination {
    /// One snapshot for all storage, or one for each path.
    pub snapshots: Vec<HostSnapshot>,
    pub diagnoses: Vec<Diagnosis>,
    /// Items that could not be examined.
    pub missing: Vec<Missing>,
}

/// Examines the storage of the paths, or all storage.
pub fn examine(host: &Host, paths: &[PathBuf], windows: Windows) -> anyhow::Result<Examination> {
    let mut examination =
        Examination { snapshots: Vec::new(), diagnoses: Vec::new(), missing: Vec::new() };
    if paths.is_empty() {
        examination.add(HostSnapshot::look(&host.root, &host.dirs, None, windows)?);
        return Ok(examination);
    }
    for path in paths {
        let storage = resolve(&host.root, Path::new(path))?;
        let snapshot = HostSnapshot::look(&host.root, &host.dirs, Some(&storage), windows.clone())?;
        examination.add(snapshot);
    }
    Ok(examination)
}

/// Like [`examine`], with the open files of this machine; also returns the kernel release.
pub fn examine_all(host: &Host, paths: &[PathBuf]) -> anyhow::Result<(Examination, String)> {
    let is_system = host.root.is_system();
    let windows = if is_system { Windows::of_kernel() } else { Windows::not_asked() };
    let kernel = host.root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok((examine(host, paths, windows)?, kernel))
}

impl Examination {
    fn add(&mut self, snapshot: HostSnapshot) {
        for diagnosis in diagnose(&snapshot) {
            if !self.diagnoses.contains(&diagnosis) {
                self.diagnoses.push(diagnosis);
            }
        }
        for missing in &snapshot.missing {
            if !self.missing.contains(missing) {
                self.missing.push(missing.clone());
            }
        }
        self.snapshots.push(snapshot);
    }
}
