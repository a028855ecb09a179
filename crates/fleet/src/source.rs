//! Finds the input of an import: surveys, captured hosts, and their records of runs.

use std::fs;
use std::path::{Path, PathBuf};

use doctor::{HostSnapshot, Windows, diagnose};
use host::{Dirs, Root};

use crate::error::FleetError;
use crate::survey::HostSurvey;

/// Name of a survey that has a record of runs next to it, as Ansible collects them.
const SURVEY_FILE: &str = "survey.json";
const RECORD_FILE: &str = "runs.sqlite";
/// Path of the record in a captured host.
const RECORD_IN_TREE: &str = "/var/lib/foreread/runs.sqlite";
/// Maximum depth of directories: SITE/RACK/HOST/survey.json.
const MAX_DEPTH_LEVELS: usize = 4;

/// A host to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Survey(PathBuf),
    /// A captured host: a tree with its sys, proc and etc directories.
    Tree(PathBuf),
    /// A record of runs without a survey.
    Orphan(PathBuf),
}

/// Returns every host below these paths, in a fixed order.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<Source>, FleetError> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        let metadata =
            fs::metadata(path).map_err(|source| FleetError::Io { path: path.clone(), source })?;
        if metadata.is_dir() {
            walk(path, MAX_DEPTH_LEVELS, &mut found)?;
        } else {
            found.push(Source::Survey(path.clone()));
        }
        if found.len() == before {
            return Err(FleetError::Nothing { path: path.clone() });
        }
    }
    Ok(found)
}

fn walk(directory: &Path, depth: usize, found: &mut Vec<Source>) -> Result<(), FleetError> {
    if directory.join("sys/class/bdi").is_dir() {
        found.push(Source::Tree(directory.to_owned()));
        return Ok(());
    }
    let failed = |source| FleetError::Io { path: directory.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    let has_survey = paths.iter().any(|path| path.ends_with(SURVEY_FILE));
    for path in paths {
        if path.is_dir() && depth > 0 {
            walk(&path, depth - 1, found)?;
        } else if path.extension().is_some_and(|ending| ending == "json") && path.is_file() {
            found.push(Source::Survey(path));
        } else if path.ends_with(RECORD_FILE) && !has_survey {
            found.push(Source::Orphan(path));
        }
    }
    Ok(())
}

impl Source {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Survey(path) | Self::Tree(path) | Self::Orphan(path) => path,
        }
    }

    /// Returns the survey, and the path of the record of runs that may belong to it.
    pub(crate) fn read(&self) -> Result<(HostSurvey, PathBuf), FleetError> {
        match self {
            Self::Survey(path) => Ok((HostSurvey::read(path)?, path.with_file_name(RECORD_FILE))),
            Self::Tree(path) => {
                let root = Root::at(path);
                let dirs = Dirs {
                    state: root.path("/var/lib/foreread"),
                    runtime: root.path("/run/foreread"),
                };
                let snapshot = HostSnapshot::look(&root, &dirs, None, Windows::not_asked())?;
                let survey = HostSurvey::of(&snapshot, &diagnose(&snapshot), None)?;
                Ok((survey, root.path(RECORD_IN_TREE)))
            }
            Self::Orphan(path) => Err(FleetError::NoHost { path: path.clone() }),
        }
    }

    /// True if a record of runs can belong to this source: only `survey.json` and trees have one.
    pub(crate) fn has_record(&self) -> bool {
        match self {
            Self::Survey(path) => path.ends_with(SURVEY_FILE),
            Self::Tree(_) => true,
            Self::Orphan(_) => false,
        }
    }
}
