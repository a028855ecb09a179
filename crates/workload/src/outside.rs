//! Workloads that programs of other people run: fio, bonnie++, any command.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::fio::{FioError, Group, JobFile, Surroundings};
use crate::{AccessMethod, Hint, Layout, Pattern, Sharing, Workload, WorkloadError};

/// Where the figure of a command comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// How long it takes: the data that its processes read, by the time.
    Wall,
    /// What the first group of a regular expression matches in what it prints; more is better.
    Regex(String),
    /// A number at this path (`jobs.0.read.bw`) of the JSON that it prints; more is better.
    Json(String),
}

/// A program that is none of ours, and what it is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "program", rename_all = "kebab-case")]
pub enum Outside {
    /// fio.
    Fio {
        /// A job file with one group of jobs, without includes or variables.
        jobs: String,
    },
    /// A command of the shell's.
    Command {
        /// What is measured.
        command: String,
        /// What runs before each trial, before the cache is emptied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prepare: Option<String>,
        /// What its figure is.
        metric: Metric,
        /// It is ended when it has run for so long on the wall.
        limit_seconds: u64,
    },
    /// bonnie++.
    #[serde(rename = "bonnie++")]
    Bonnie {
        /// How much it writes and reads; as much as twice the memory where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Bytes>,
        /// The block of its block input and output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunk: Option<Bytes>,
        /// Files that it creates and deletes, in units of 1024; none where nothing is said.
        #[serde(default)]
        files: u32,
        /// It is ended when it has run for so long on the wall.
        limit_seconds: u64,
    },
}

impl Outside {
    /// The word for the program.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Fio { .. } => "fio",
            Self::Command { .. } => "sh",
            Self::Bonnie { .. } => "bonnie++",
        }
    }

    /// The jobs, of fio.
    pub fn group(&self) -> Option<Result<Group, FioError>> {
        let Self::Fio { jobs } = self else { return None };
        let parsed = JobFile::parse(jobs, &Surroundings::none());
        Some(parsed.and_then(|file| file.groups().first().cloned().ok_or(FioError::NoJob)))
    }

    /// The sizes of the files that it reads, each of which is no larger than `most`; none of those
    /// that it makes itself.
    pub(crate) fn data_files(&self, most: Bytes) -> Vec<Bytes> {
        let Some(Ok(group)) = self.group() else { return Vec::new() };
        let size = |size: Option<Bytes>| size.map_or(most, |size| size.min(most));
        group.ground().files.iter().map(|file| size(file.size)).collect()
    }

    /// Whether it may write to the files that are laid out for it.
    pub fn writes(&self) -> bool {
        match self {
            Self::Fio { .. } => {
                self.group().and_then(Result::ok).is_some_and(|group| group.writes())
            }
            Self::Command { .. } | Self::Bonnie { .. } => true,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), WorkloadError> {
        let wrong = |problem: String| WorkloadError::Syntax { problem };
        match self {
            Self::Fio { .. } => match self.group() {
                Some(Err(problem)) => Err(wrong(format!("jobs: {problem}"))),
                _ => Ok(()),
            },
            Self::Command { command, limit_seconds, .. } => {
                if command.trim().is_empty() {
                    return Err(wrong("command: there is nothing to run".to_owned()));
                }
                limited(*limit_seconds)
            }
            Self::Bonnie { limit_seconds, .. } => limited(*limit_seconds),
        }
    }
}

/// A program that never ends would hold up the study for ever.
fn limited(seconds: u64) -> Result<(), WorkloadError> {
    match seconds {
        1..=604_800 => Ok(()),
        _ => Err(WorkloadError::out_of_range(
            "limit_seconds",
            seconds,
            "1 to 604800 (a week)".to_owned(),
        )),
    }
}

impl Workload {
    /// What a program of somebody else's does.
    pub fn of_program(name: impl Into<String>, outside: Outside) -> Result<Self, WorkloadError> {
        let group = outside.group().and_then(Result::ok);
        let files = outside.data_files(Bytes::new(1)).len();
        let readers = group.as_ref().map_or(1, Group::readers);
        let block = group.as_ref().map(Group::block).unwrap_or(Bytes::from_kib(4));
        let workload = Self {
            readers,
            sharing: Sharing::SharedFile,
            files_per_reader: u32::try_from(files).unwrap_or(u32::MAX).max(1),
            think: Nanos::ZERO,
            access: AccessMethod::Read,
            hint: Hint::None,
            layout: Layout::Contiguous,
            outside: Some(outside),
            ..Self::new(name, Pattern::Outside, block)
        };
        workload.validate()?;
        Ok(workload)
    }
}
