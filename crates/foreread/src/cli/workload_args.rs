//! The values of `--workload`: names of the suite, files, and external programs.

use std::path::Path;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use study::PlannedWorkload;
use sys::input::{self, InputKind};
use units::{Bytes, Nanos};
use workload::ReplayPace;
use workload::fio::{FioEnvironment, FioGroup, Included, JobFile};
use workload::{Metric, Outside, Pattern, Workload, WorkloadError};

use super::{Context, dd};
use crate::exit::{Usage, bail_usage, usage};

/// The engine that runs a job file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Run it with fio
    #[default]
    Fio,
    /// Run it with foreread's own engine, if that supports the job
    Native,
    /// Run it with both, and show in a table whether they agree
    Both,
}

/// Options of workloads that external programs run.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkloadOptions {
    /// Engine that runs job files of fio (--workload fio:FILE); simulations always use foreread's
    /// own
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Command to run before each trial of cmd:…, before the cache is emptied
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// The figure of cmd:… to measure: wall (the data of its processes per second of its run time),
    /// json:PATH (a number in the JSON that it prints, as in json:jobs.0.read.bw) or a regular
    /// expression whose first group is the number, as in 'tps = ([0-9.]+)'; higher is better
    #[arg(long, value_name = "REGEX|json:PATH|wall")]
    pub metric: Option<String>,
    /// Wall time after which cmd:… and bonnie++ are killed; default: 1h
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Nanos>,
}

/// Default of `--timeout`.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(3600);

/// Chosen workloads, and the trial length that a job file sets.
#[derive(Debug, Default)]
pub struct ChosenWorkloads {
    pub workloads: Vec<PlannedWorkload>,
    /// Trial length from a job file; used unless `--duration` is given.
    pub runtime: Option<Nanos>,
}

/// Context in which workloads are chosen.
pub struct WorkloadContext<'a> {
    pub context: &'a Context,
    pub options: &'a WorkloadOptions,
    /// Whether the target is simulated, so that only foreread's own engine is possible.
    pub simulated: bool,
    /// Size of each file, if given.
    pub size: Option<Bytes>,
}

/// Chooses workloads and their roles. Read-ahead serves streams, so random reads named together
/// with streams only show a cost.
pub fn planned(words: &[String], choice: &WorkloadContext<'_>) -> anyhow::Result<ChosenWorkloads> {
    let mut chosen = ChosenWorkloads::default();
    let mut all: Vec<(Workload, bool)> = Vec::new();
    for (argument, word) in words
        .iter()
        .flat_map(|argument| split(argument).into_iter().map(move |word| (argument, word)))
    {
        if word.trim().is_empty() {
            bail_usage!("--workload {argument:?}: a name is missing, or a comma too many");
        }
        let (workloads, runtime) = choice.of_word(word.trim())?;
        chosen.runtime = chosen.runtime.max(runtime);
        for (workload, shrinks) in workloads {
            if all.iter().any(|(other, _)| other.name == workload.name) {
                bail_usage!("workload {:?} is named twice", workload.name);
            }
            all.push((workload, shrinks));
        }
    }
    choice.check_used(&all)?;
    let random =
        |workload: &Workload| matches!(workload.pattern, Pattern::Uniform | Pattern::Zipf { .. });
    let streams = all.iter().any(|(workload, _)| !random(workload));
    let plan = |(workload, shrinks): (Workload, bool)| {
        let planned = match streams && random(&workload) {
            true => PlannedWorkload::cost(workload),
            false => PlannedWorkload::goal(workload),
        };
        PlannedWorkload { shrinks, ..planned }
    };
    chosen.workloads = all.into_iter().map(plan).collect();
    Ok(chosen)
}

/// Splits an argument at commas, except those within a command, the options of a trace
/// (`pace=recorded`) and those of dd.
fn split(argument: &str) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut rest = argument;
    loop {
        if rest.starts_with("cmd:") {
            joined.push(rest.to_owned());
            return joined;
        }
        let (word, behind) = match rest.split_once(',') {
            Some((word, behind)) => (word, Some(behind)),
            None => (rest, None),
        };
        let option = word.contains('=') && !word.contains(':') || word == "compact";
        let takes = |last: &&mut String| {
            last.starts_with("trace:") || last.starts_with("dd:") || last.starts_with("bonnie++:")
        };
        match joined.last_mut().filter(takes) {
            Some(last) if option => {
                last.push(',');
                last.push_str(word);
            }
            _ => joined.push(word.to_owned()),
        }
        match behind {
            Some(behind) => rest = behind,
            None => return joined,
        }
    }
}

type Words = (Vec<(Workload, bool)>, Option<Nanos>);

impl WorkloadContext<'_> {
    fn of_word(&self, word: &str) -> anyhow::Result<Words> {
        let exact = |workloads: Vec<Workload>| {
            Ok((workloads.into_iter().map(|workload| (workload, false)).collect(), None))
        };
        if let Some(file) = word.strip_prefix("fio:") {
            return self.of_fio(file);
        }
        if let Some(words) = word.strip_prefix("dd:") {
            return exact(dd::workloads(words)?);
        }
        if word == "dd" {
            return exact(dd::plain()?);
        }
        if let Some(command) = word.strip_prefix("cmd:") {
            return exact(vec![self.of_command(command)?]);
        }
        match word.strip_prefix("bonnie++") {
            Some("") => exact(vec![self.of_bonnie("")?]),
            Some(words) if words.starts_with(':') => exact(vec![self.of_bonnie(&words[1..])?]),
            _ => exact(vec![workload(word)?]),
        }
    }

    /// Rejects options for external programs that no workload runs.
    fn check_used(&self, all: &[(Workload, bool)]) -> anyhow::Result<()> {
        let options = self.options;
        let runs = |program: &str| {
            let outside = all.iter().filter_map(|(workload, _)| workload.outside.as_ref());
            outside.into_iter().any(|outside| outside.program() == program)
        };
        let unused = [
            (options.metric.is_some() && !runs("sh"), "--metric", "cmd:'…'"),
            (options.prepare.is_some() && !runs("sh"), "--prepare", "cmd:'…'"),
            (
                options.timeout.is_some() && !runs("sh") && !runs("bonnie++"),
                "--timeout",
                "cmd:'…' or bonnie++",
            ),
        ];
        if let Some((_, option, needed)) = unused.into_iter().find(|(unused, ..)| *unused) {
            bail_usage!("{option} needs --workload {needed}");
        }
        Ok(())
    }

    fn of_fio(&self, path: &str) -> anyhow::Result<Words> {
        if path.is_empty() {
            bail_usage!("fio: needs a job file: write fio:FILE");
        }
        let file = job_file(path)?;
        for note in file.notes() {
            self.context.note(&format!("{path}: {note}"));
        }
        let engine = match (self.simulated, self.options.engine) {
            (true, Some(Engine::Fio | Engine::Both)) => {
                bail_usage!("a simulation cannot run fio: use --engine native");
            }
            (true, _) => Engine::Native,
            (false, engine) => engine.unwrap_or_default(),
        };
        let mut workloads = Vec::new();
        for group in file.groups() {
            for note in group.pitfalls() {
                self.context.note(&format!("{path}: {note}"));
            }
            let name = name_of(path, group, file.groups().len() == 1);
            for workload in
                of_group(group, &name, engine).with_context(|| format!("in {path:?}"))?
            {
                workloads.push((workload, true));
            }
        }
        let runtimes = file.groups().iter().filter_map(FioGroup::runtime);
        Ok((workloads, runtimes.max()))
    }

    fn of_command(&self, command: &str) -> anyhow::Result<Workload> {
        let metric = match self.options.metric.as_deref() {
            None | Some("wall") => Metric::Wall,
            Some(metric) => match metric.strip_prefix("json:") {
                Some(path) => Metric::Json(path.to_owned()),
                None => Metric::Regex(metric.to_owned()),
            },
        };
        let outside = Outside::Command {
            command: command.to_owned(),
            prepare: self.options.prepare.clone(),
            metric,
            limit_seconds: self.limit_seconds(),
        };
        bench::find_program(&outside)?;
        let first = command.split_whitespace().find(|word| !word.contains('=')).unwrap_or("");
        Ok(Workload::from_program(named("cmd", first), outside)?)
    }

    fn of_bonnie(&self, words: &str) -> anyhow::Result<Workload> {
        let (mut chunk, mut files) = (None, 0);
        for word in words.split(',').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("chunk", size)) => chunk = Some(size.parse()?),
                Some(("files", count)) => {
                    let wrong = || Usage(format!("bonnie++:{word}: must be a number"));
                    files = count.parse().map_err(|_| wrong())?;
                }
                _ => {
                    bail_usage!("bonnie++:{word}: supported are chunk=SIZE and files=N");
                }
            }
        }
        let limit_seconds = self.limit_seconds();
        let outside = Outside::Bonnie { size: self.size, chunk, files, limit_seconds };
        Ok(Workload::from_program("bonnie", outside)?)
    }

    fn limit_seconds(&self) -> u64 {
        (self.options.timeout.unwrap_or(DEFAULT_TIMEOUT).as_secs_f64().ceil() as u64).max(1)
    }
}

/// Reads a job file and the files that it includes.
pub fn job_file(path: &str) -> anyhow::Result<JobFile> {
    let text = input::read(Path::new(path), InputKind::JOB_FILE)?;
    let text = String::from_utf8_lossy(&text);
    let include = |name: &str, from: Option<&str>| included(name, from.unwrap_or(path));
    let around = FioEnvironment { variable: &|name| std::env::var(name).ok(), include: &include };
    let parsed = JobFile::parse(&text, &around);
    let shown = if path == "-" { "(standard input)" } else { path };
    parsed.map_err(|problem| usage!("{shown}: {problem}"))
}

/// Finds an included file as fio does: relative to the current directory, otherwise to the
/// directory of the including file.
fn included(name: &str, from: &str) -> Result<Included, String> {
    let here = Path::new(name);
    let beside = Path::new(from).parent().map(|dir| dir.join(name));
    let path = match beside {
        Some(beside) if !here.exists() && beside.exists() => beside,
        _ => here.to_owned(),
    };
    let text = input::read(&path, InputKind::JOB_FILE).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Included { file: path.to_string_lossy().into_owned(), text })
}

/// Returns the workloads of a group of jobs for this engine.
fn of_group(group: &FioGroup, name: &str, engine: Engine) -> anyhow::Result<Vec<Workload>> {
    let native = |name: String| {
        group.native(&name).map_err(|problem| anyhow::Error::from(Usage(problem.to_string())))
    };
    let fio = |name: String| Workload::from_program(name, Outside::Fio { jobs: group.to_text() });
    Ok(match engine {
        Engine::Native => vec![native(name.to_owned())?],
        Engine::Fio => vec![fio(name.to_owned())?],
        Engine::Both => vec![native(format!("{name}.native"))?, fio(format!("{name}.fio"))?],
    })
}

/// Returns the name of a group: that of the file and, if there are several groups, that of its job.
fn name_of(path: &str, group: &FioGroup, only: bool) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
    let stem = if path == "-" { "stdin".into() } else { stem };
    match only {
        true => plain(&stem),
        false => plain(&format!("{stem}-{}", group.name())),
    }
}

/// Replaces characters that are not allowed in names, and limits the text to 50 characters.
fn plain(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = text.chars().map(letter).take(50).collect();
    if name.is_empty() { "jobs".to_owned() } else { name }
}

fn named(kind: &str, first: &str) -> String {
    let program = Path::new(first).file_name().unwrap_or_default().to_string_lossy();
    format!("{kind}-{}", plain(&program))
}

/// Returns the workload with this name, or the one declared in this file.
pub fn workload(word: &str) -> anyhow::Result<Workload> {
    if let Some(words) = word.strip_prefix("trace:") {
        return Ok(trace::workload(words)?);
    }
    let file = word == "-" || word.contains('/') || word.ends_with(".toml");
    if !file {
        if word.ends_with(".fio") {
            bail_usage!("write fio:{word} for a job file of fio");
        }
        let unknown = |error: WorkloadError| match meant_by(word) {
            Some(meant) => {
                usage!("no workload is called {word:?}: did you mean {meant}?")
            }
            None => anyhow::Error::from(error),
        };
        return Workload::named(word).map_err(unknown);
    }
    let text = input::read_text(Path::new(word), InputKind::WORKLOAD)?;
    let within = || format!("in {}", if word == "-" { "(standard input)" } else { word });
    let declared = Workload::from_toml(&text).with_context(within)?;
    with_trace(declared).with_context(within)
}

/// Suggests a correction for an unknown workload: a file name without its kind, or a misspelt kind
/// or option.
fn meant_by(word: &str) -> Option<String> {
    if Path::new(word).is_file() {
        return Some(format!("trace:{word}, or fio:{word} for a job file of fio"));
    }
    match word.split_once(':') {
        Some((kind, rest)) => {
            let kind = units::text::nearest(kind, ["trace", "fio", "dd", "cmd", "bonnie++"])?;
            Some(format!("{kind}:{rest}"))
        }
        None => units::text::nearest(word, ["bonnie++", "compact"]).map(str::to_owned),
    }
}

/// Reads the trace that a declaration names by its file.
fn with_trace(mut workload: Workload) -> anyhow::Result<Workload> {
    let Some(replay) = &workload.replay else { return Ok(workload) };
    let pace = match replay.pace {
        ReplayPace::Asap => "",
        ReplayPace::Recorded => ",pace=recorded",
        ReplayPace::Think => ",pace=think",
    };
    let compact = if replay.compact { ",compact" } else { "" };
    let loaded = trace::workload(&format!("{}{pace}{compact}", replay.trace))?;
    workload.adopt_trace(&loaded);
    if workload.replay.as_ref().is_some_and(|replay| replay.is_loaded()) {
        return Ok(workload);
    }
    // The digest differs or is missing: the trace is used as it is now.
    Ok(Workload { name: workload.name, ..loaded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_commas_that_are_not_their_own() {
        let words = |text: &str| split(text).join(" | ");
        assert_eq!(words("seq-1,seq-8"), "seq-1 | seq-8");
        assert_eq!(
            words("trace:a.csv,pace=recorded,compact,seq-1"),
            "trace:a.csv,pace=recorded,compact | seq-1"
        );
        assert_eq!(words("dd:bs=64k,at=end,fio:a=b.fio"), "dd:bs=64k,at=end | fio:a=b.fio");
        assert_eq!(words("seq-1,cmd:echo a,b,c=d"), "seq-1 | cmd:echo a,b,c=d");
        assert_eq!(words("bonnie++:chunk=64K,files=1"), "bonnie++:chunk=64K,files=1");
    }

    #[test]
    fn names_are_what_a_name_may_be() {
        assert_eq!(named("cmd", "/usr/bin/pg_dump"), "cmd-pg_dump");
        assert_eq!(plain("a b/c"), "a-b-c");
        assert_eq!(plain(""), "jobs");
    }
}
