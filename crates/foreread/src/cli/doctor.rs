//! `foreread doctor`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use doctor::plan::plan;
use doctor::{Diagnosis, HostSnapshot, Missing, Windows, diagnose};
use host::{Dirs, Root, resolve};
use report::{DoctorReport, clean};

use super::{Context, ResultFile};
use crate::exit::{Exit, Usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread doctor                              all devices, their problems, and one plan
  foreread doctor /srv/data                    one device in full: stack, evidence, related settings
  foreread doctor --json | jq '.plan[].steps[].command'
  foreread doctor --root captures/web17        another host, from a captured tree

A tree holds sys, proc and etc as a host has them. Of /sys it needs class/bdi, block, class/block,
dev/block, devices and fs/btrfs, of /proc self/mountinfo, meminfo and sys/kernel/osrelease;
/run/udev, /usr/lib/udev and /etc add who sets read-ahead. docs/book/doctor.md shows how to capture
one.";

/// Explain this host's read-ahead: values, origins, problems, plan
///
/// Inspects all storage, or that of PATH. Changes nothing and needs no privileges; root also sees
/// open files with an outdated window and processes that map large files. The plan has one value
/// for each device; `foreread apply -n` and `foreread persist -n` accept its steps.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// Directories, files, block devices or MAJ:MIN; default: all storage
    #[arg(value_name = "PATH|DEVICE")]
    paths: Vec<PathBuf>,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tree: Tree,
    #[command(flatten)]
    file: ResultFile,
}

/// The host to examine.
#[derive(Clone, Debug, Args)]
pub struct Tree {
    /// Examine the host captured in this directory (a tree with its sys, proc and etc) instead of
    /// this machine
    #[arg(long, value_name = "DIR", env = "FOREREAD_ROOT")]
    root: Option<OsString>,
}

impl Tree {
    /// This machine, or the host captured in a directory, with that host's journals.
    pub fn host(&self, context: &Context) -> anyhow::Result<Host> {
        // An empty variable counts as unset.
        let given = self.root.as_ref().filter(|root| !root.is_empty()).map(Path::new);
        let Some(given) = given else { return Ok(Host::machine(context)) };
        let name = given.display();
        let tree = given
            .canonicalize()
            .map_err(|error| Usage(format!("--root: cannot open {name}: {error}")))?;
        if tree == Path::new("/") {
            return Ok(Host::machine(context));
        }
        let root = Root::at(&tree);
        let (name, mounts) = (clean::plain(&name.to_string()), "/proc/self/mountinfo");
        if root.read(mounts).is_err() {
            let usage =
                format!("--root: {name} is not a captured host: cannot read {name}{mounts}");
            return Err(Usage(usage).into());
        }
        if !root.exists("/sys/class/bdi") {
            let usage = format!(
                "--root: {name} is not a captured host: it has no sys/class/bdi; `foreread doctor \
                 --help` lists what a tree needs"
            );
            return Err(Usage(usage).into());
        }
        let dirs =
            Dirs { state: root.path("/var/lib/foreread"), runtime: root.path("/run/foreread") };
        Ok(Host { root, dirs, tree: Some(tree.display().to_string()) })
    }
}

/// The host that is examined.
pub struct Host {
    /// Its file tree.
    pub root: Root,
    /// Where foreread keeps journals on it.
    pub dirs: Dirs,
    /// The captured directory, if it is not this machine.
    pub tree: Option<String>,
}

impl Host {
    fn machine(context: &Context) -> Self {
        Self { root: context.root.clone(), dirs: context.dirs.clone(), tree: None }
    }
}

/// The result of an examination.
pub struct Examination {
    /// One snapshot for all storage, or one for each path.
    pub snapshots: Vec<HostSnapshot>,
    pub diagnoses: Vec<Diagnosis>,
    /// What could not be examined.
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

impl DoctorArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let host = self.tree.host(context)?;
        let root = &host.root;
        let windows = if root.is_system() { Windows::of_kernel() } else { Windows::not_asked() };
        let examination = examine(&host, &self.paths, windows)?;
        let kernel = root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let plan = match examination.snapshots.first() {
            Some(snapshot) => plan(snapshot, &examination.diagnoses),
            None => Vec::new(),
        };
        let view = DoctorReport {
            diagnoses: &examination.diagnoses,
            plan: &plan,
            tree: host.tree.as_deref(),
            missing: &examination.missing,
            kernel: &kernel,
            detail: !self.paths.is_empty() || context.global.verbose > 0,
        };
        if self.json {
            output::print_json(&report::doctor_json(&view))?;
        } else {
            output::print(&report::doctor(&view, output::look()))?;
        }
        Ok(Exit::Fine)
    }
}
