//! `foreread doctor`.

use std::path::{Path, PathBuf};

use clap::Args;
use diagnose::{Diagnosis, Missing, Scene, Windows, diagnose};
use host::{Root, resolve};
use report::Doctor as View;

use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;

/// Say what read-ahead is here, where each value came from, and what is wrong with it
///
/// Looks at all storage, or at what PATH is on. Changes nothing and needs no rights; with those of
/// root it also sees which open files still have an older window, and whose large files are mapped.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Directories, files, block devices or MAJ:MIN; all storage if none is named
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

/// Where the machine is read from.
#[derive(Clone, Debug, Args)]
pub struct Tree {
    /// Look at a captured tree of /sys, /proc and /etc instead of this machine
    #[arg(long, value_name = "DIR", env = "FOREREAD_ROOT", hide = true)]
    root: Option<PathBuf>,
}

impl Tree {
    /// The tree that is meant.
    pub fn root(&self, context: &Context) -> Root {
        self.root.as_ref().map_or_else(|| context.root.clone(), Root::at)
    }
}

/// All that was looked at.
pub struct Examination {
    /// One scene for all storage, or one for each path.
    pub scenes: Vec<Scene>,
    /// What came of it.
    pub diagnoses: Vec<Diagnosis>,
    /// What could not be seen.
    pub missing: Vec<Missing>,
}

/// Looks at the storage that the paths are on, or at all.
pub fn examine(
    root: &Root,
    context: &Context,
    paths: &[PathBuf],
    windows: Windows,
) -> anyhow::Result<Examination> {
    let mut examination =
        Examination { scenes: Vec::new(), diagnoses: Vec::new(), missing: Vec::new() };
    if paths.is_empty() {
        examination.add(Scene::look(root, &context.dirs, None, windows)?);
        return Ok(examination);
    }
    for path in paths {
        let storage = resolve(root, Path::new(path))?;
        examination.add(Scene::look(root, &context.dirs, Some(&storage), windows.clone())?);
    }
    Ok(examination)
}

impl Examination {
    fn add(&mut self, scene: Scene) {
        for diagnosis in diagnose(&scene) {
            if !self.diagnoses.contains(&diagnosis) {
                self.diagnoses.push(diagnosis);
            }
        }
        for missing in &scene.missing {
            if !self.missing.contains(missing) {
                self.missing.push(missing.clone());
            }
        }
        self.scenes.push(scene);
    }
}

impl Doctor {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let root = self.tree.root(context);
        let windows = if root.is_system() { Windows::of_kernel() } else { Windows::not_asked() };
        let examination = examine(&root, context, &self.paths, windows)?;
        let kernel = root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let view = View {
            diagnoses: &examination.diagnoses,
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
