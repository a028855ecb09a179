//! Workloads that external programs run: fio, bonnie++, any command.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::error::WorkloadError;
use crate::fio::{FioEnvironment, FioError, FioGroup, JobFile};

/// The source of a command's figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Data that the command's processes read, divided by the elapsed time.
    Wall,
    /// The first group of a regular expression in its output; higher is better.
    Regex(String),
    /// The number at this path (`jobs.0.read.bw`) in its JSON output; higher is better.
    Json(String),
}

/// The name of a command's own figure, and its unit if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// As in the command's output: `tps`, `jobs.0.read.bw`.
    pub name: String,
    /// As in the command's output after the number: `MB/s`.
    pub unit: Option<String>,
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{} ({unit})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Metric {
    /// Returns the figure; `None` for data per time in MiB/s.
    pub fn figure(&self) -> Option<Figure> {
        match self {
            Self::Wall => None,
            Self::Json(path) => Some(Figure { name: path.clone(), unit: None }),
            Self::Regex(pattern) => Some(figure_of(pattern)),
        }
    }
}

/// Parses a figure from a pattern: the words before its first group name it; a unit may follow.
fn figure_of(pattern: &str) -> Figure {
    let (before, group) = pattern.split_once('(').unwrap_or((pattern, ""));
    // `(?P<tps>…)` and `(?<tps>…)` contain the name.
    let named = group.strip_prefix("?P<").or_else(|| group.strip_prefix("?<"));
    let named = named.and_then(|rest| rest.split_once('>')).map(|(name, _)| name.to_owned());
    let words = |text: &str| -> Vec<String> {
        let plain = text.replace("\\s", "\u{0}").replace("\\d", "\u{0}").replace("\\b", "");
        let meta = |c: char| "\u{0}\\.*+?[]{}|^$\"'=:,;\t".contains(c);
        plain.split(meta).map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect()
    };
    let name = named.or_else(|| words(before).pop()).unwrap_or_else(|| "metric".to_owned());
    let after = group.split_once(')').map_or("", |(_, after)| after);
    let unit = after.split_whitespace().next().map(|word| word.replace('\\', ""));
    Figure { name, unit: unit.filter(|word| is_unit(word)) }
}

/// Returns whether a word after a number is its unit.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 18] = [
        "%", "s", "sec", "seconds", "ms", "us", "µs", "ns", "KB", "kB", "KiB", "MB", "MiB", "GB",
        "GiB", "iops", "IOPS", "tps",
    ];
    let rate = word.split_once('/').is_some_and(|(what, time)| {
        let letters = |text: &str| !text.is_empty() && text.chars().all(char::is_alphanumeric);
        letters(what) && letters(time)
    });
    rate || UNITS.contains(&word)
}

/// An external program and its job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "program", rename_all = "kebab-case")]
pub enum Outside {
    Fio {
        /// A job file with one group of jobs, without includes or variables.
        jobs: String,
    },
    Command {
        command: String,
        /// A command before each trial, before the cache is emptied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prepare: Option<String>,
        metric: Metric,
        /// Wall-time limit in seconds.
        limit_seconds: u64,
    },
    #[serde(rename = "bonnie++")]
    Bonnie {
        /// Amount to write and read; by default twice the memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Bytes>,
        /// Block size of block input and output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunk: Option<Bytes>,
        /// Number of files to create and delete, in units of 1024; by default none.
        #[serde(default)]
        files: u32,
        /// Wall-time limit in seconds.
        limit_seconds: u64,
    },
}

impl Outside {
    pub fn program(&self) -> &'static str {
        match self {
            Self::Fio { .. } => "fio",
            Self::Command { .. } => "sh",
            Self::Bonnie { .. } => "bonnie++",
        }
    }

    pub fn group(&self) -> Option<Result<FioGroup, FioError>> {
        let Self::Fio { jobs } = self else { return None };
        let parsed = JobFile::parse(jobs, &FioEnvironment::none());
        Some(parsed.and_then(|file| file.groups().first().cloned().ok_or(FioError::NoJob)))
    }

    /// Returns the sizes of the files that the program reads, each at most `most`; empty if the
    /// program creates its own files.
    pub(crate) fn data_files(&self, most: Bytes) -> Vec<Bytes> {
        let Some(Ok(group)) = self.group() else { return Vec::new() };
        let size = |size: Option<Bytes>| size.map_or(most, |size| size.min(most));
        group.ground().files.iter().map(|file| size(file.size)).collect()
    }

    /// Returns whether the program may write to the created files.
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

/// Checks the limit. Without one, a program that never exits would block the study.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_name_and_unit_that_its_command_gives_it() {
        let figure =
            |pattern: &str| Metric::Regex(pattern.to_owned()).figure().unwrap().to_string();
        assert_eq!(figure("tps = ([0-9.]+)"), "tps");
        assert_eq!(figure("tps = ([0-9.]+) \\(excluding"), "tps");
        assert_eq!(figure("^latency average = ([0-9.]+) ms"), "latency average (ms)");
        assert_eq!(figure(r#""bw"\s*:\s*([0-9]+)"#), "bw");
        assert_eq!(figure("copied, .* s, ([0-9.]+) MB/s"), "s (MB/s)");
        assert_eq!(figure("(?P<queries>[0-9]+) of"), "queries");
        assert_eq!(figure("([0-9]+)"), "metric");
        let json = Metric::Json("jobs.0.read.bw".to_owned()).figure().unwrap();
        assert_eq!(json.to_string(), "jobs.0.read.bw");
        assert_eq!(Metric::Wall.figure(), None);
    }
}
