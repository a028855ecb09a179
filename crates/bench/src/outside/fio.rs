//! Runs fio on the data files and converts its JSON output into a sample.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;
use units::{Bytes, Nanos};
use workload::Outside;
use workload::fio::{Conditions, FioError, FioGroup, ReplacementFile};

use super::problem;
use super::process::{RunOptions, failure};
use super::tool::{ExternalTool, FoundTool, numbers};
use crate::dataset::DataFile;
use crate::input::TrialInput;
use crate::parse::first_json;
use crate::{BenchError, ReaderSample, Sample, ToolReport, cold};

const FIO: ExternalTool =
    ExternalTool { program: "fio", package: "fio", version_option: "--version" };
/// First version with latencies in nanoseconds and all of them in `json+`.
const MIN_VERSION: (u32, u32) = (3, 0);
/// Time that fio may take in addition to its jobs: to start, exit and write its report.
const OVERHEAD_TIME: Nanos = Nanos::from_secs(30);

/// Finds fio; fails if it is not installed or too old.
pub(super) fn find() -> Result<FoundTool, BenchError> {
    let found = FIO.find()?;
    if numbers(&found.version).is_none_or(|version| version < MIN_VERSION) {
        let version = &found.version;
        return Err(problem("fio", format!("{version} is too old: 3.0 or later is needed")));
    }
    Ok(found)
}

/// Returns the group of jobs, which was checked when the workload was created.
fn group_of(outside: &Outside) -> Result<FioGroup, BenchError> {
    match outside.group() {
        Some(group) => Ok(group?),
        None => Err(FioError::NoJob.into()),
    }
}

pub(super) fn trial(input: &TrialInput<'_>, outside: &Outside) -> Result<Sample, BenchError> {
    let found = find()?;
    let group = group_of(outside)?;
    let files = input.dataset.files(input.workload)?;
    if group.writes() && input.dataset.directory().is_none() {
        let why = "these jobs write, but existing data is only read: use a directory";
        return Err(problem("fio", why));
    }
    let jobs = jobs_on(&group, &files, input)?;
    let cold = input.cold(&files)?;
    let mut command = Command::new(&found.path);
    command.args(["--output-format=json+", "--eta=never"]).current_dir("/");
    if !group.writes() {
        command.arg("--readonly");
    }
    command.arg("-");
    let options = input.options;
    let longest = group.longest(options.duration).scaled(options.dilation);
    let limit = longest + options.drain_limit.scaled(options.dilation) + OVERHEAD_TIME;
    let terms = RunOptions { program: "fio", limit, cancel: &options.cancel, input: Some(&jobs) };
    let data = files.iter().map(|file| file.length).sum();
    let outcome = input.run_program(command, &terms, cold, data)?;
    if let Some(failure) = failure(&outcome.ended) {
        return Err(problem("fio", failure));
    }
    let report = Report::parse(&outcome.ended.stdout)?;
    let mut sample = outcome.sample;
    report.fill(&mut sample, &group)?;
    sample.exhausted = sample.elapsed.get() < longest.scaled(0.98).get();
    sample.ahead = ahead(&group, &files, &sample)?;
    sample.settled = outcome.busy.max(sample.elapsed);
    if group.is_streams() && sample.exhausted {
        // All data was read, so the total time counts, as with foreread's own engine. The rates of
        // jobs that finished earlier cannot be added up.
        let longest = sample.elapsed;
        sample.readers.iter_mut().for_each(|reader| reader.elapsed = longest);
    }
    sample.tool = Some(ToolReport {
        program: "fio".to_owned(),
        version: found.version,
        ..Default::default()
    });
    Ok(sample)
}

fn jobs_on(
    group: &FioGroup,
    files: &[DataFile],
    input: &TrialInput<'_>,
) -> Result<String, BenchError> {
    let not_text = |file: &DataFile| {
        let path = file.path.display();
        problem("fio", format!("{path} cannot be written as a file name in a job file"))
    };
    let stands = files
        .iter()
        .map(|file| {
            let path = file.path.to_str().filter(|path| !path.contains(['#', ';', '\n', '$']));
            let path = path.ok_or_else(|| not_text(file))?;
            Ok(ReplacementFile { path, start: file.start, length: file.length })
        })
        .collect::<Result<Vec<_>, BenchError>>()?;
    let options = input.options;
    let conditions =
        Conditions { duration: options.duration, dilation: options.dilation, seed: options.seed };
    Ok(group.for_fio(&stands, &conditions)?)
}

/// Returns the data read ahead of streams, as for foreread's own engine: if each job reads its own
/// file in order, all cached data after its position.
fn ahead(group: &FioGroup, files: &[DataFile], sample: &Sample) -> Result<Bytes, BenchError> {
    if !group.is_streams() || sample.readers.len() != files.len() {
        return Ok(Bytes::ZERO);
    }
    let beyond = |(file, reader): (&DataFile, &ReaderSample)| {
        if reader.useful >= file.length {
            return Ok(Bytes::ZERO);
        }
        cold::resident_from(file, reader.useful)
    };
    files.iter().zip(&sample.readers).map(beyond).sum()
}

/// The parts of fio's report that foreread uses.
#[derive(Debug, Deserialize)]
struct Report {
    jobs: Vec<JobReport>,
}

#[derive(Debug, Deserialize)]
struct JobReport {
    #[serde(default)]
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
}

/// The reads or the writes of a job.
#[derive(Debug, Default, Deserialize)]
struct Direction {
    #[serde(default)]
    io_bytes: u64,
    #[serde(default)]
    runtime: u64,
    #[serde(default)]
    total_ios: u64,
    #[serde(default)]
    clat_ns: Latency,
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    /// Number of requests by latency in nanoseconds.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

impl Report {
    fn parse(output: &[u8]) -> Result<Self, BenchError> {
        let text = String::from_utf8_lossy(output);
        let garbage = |error: serde_json::Error| {
            problem("fio", format!("its report is not valid JSON: {error}"))
        };
        first_json(&text).ok_or_else(|| problem("fio", "printed no report"))?.map_err(garbage)
    }

    fn fill(&self, sample: &mut Sample, group: &FioGroup) -> Result<(), BenchError> {
        if self.jobs.len() != group.readers() as usize {
            let (reported, run) = (self.jobs.len(), group.readers());
            return Err(problem("fio", format!("reports {reported} jobs where {run} ran")));
        }
        let random = group.randoms();
        let mut longest = 0;
        for (job, random) in self.jobs.iter().zip(random) {
            if job.error != 0 {
                let error = std::io::Error::from_raw_os_error(job.error as i32);
                return Err(problem("fio", format!("job {}: {error}", job.jobname)));
            }
            let class = if random { &mut sample.random } else { &mut sample.stream };
            let mut reader = ReaderSample::default();
            let mut runtime = 0;
            for direction in [&job.read, &job.write] {
                reader.requests += direction.total_ios;
                reader.useful += Bytes::new(direction.io_bytes);
                class.useful += Bytes::new(direction.io_bytes);
                runtime = runtime.max(direction.runtime);
                for (latency, times) in &direction.clat_ns.bins {
                    let Ok(latency) = latency.parse() else { continue };
                    class.latency.record_times(Nanos::new(latency), *times);
                }
            }
            reader.elapsed = Nanos::from_millis(runtime);
            longest = longest.max(runtime);
            sample.readers.push(reader);
        }
        sample.elapsed = Nanos::from_millis(longest);
        match sample.useful().is_zero() {
            true => Err(problem("fio", "read nothing")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"fio: this is a warning {
{ "fio version": "fio-3.33", "jobs": [ { "jobname": "a", "error": 0,
  "read": { "io_bytes": 8192, "runtime": 2000, "total_ios": 2,
            "clat_ns": { "min": 1, "bins": { "1000": 1, "3000": 1 } } },
  "write": { "io_bytes": 0 } } ] }
and words after it"#;

    #[test]
    fn the_report_is_found_among_warnings() {
        let report = Report::parse(REPORT.as_bytes()).unwrap();
        assert_eq!(report.jobs[0].read.total_ios, 2);
        assert_eq!(report.jobs[0].read.clat_ns.bins.len(), 2);
    }

    #[test]
    fn garbage_is_told() {
        for text in ["", "no json", "{\"jobs\": 5}", "\n{\"jobs\": [{\"read\": 1}]}", "{"] {
            let message = Report::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with("fio: "), "{message}");
        }
    }
}
