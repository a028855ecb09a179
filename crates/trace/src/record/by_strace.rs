//! Records with strace(1).

use std::process::{Command, Stdio};

use crate::import::ImportOptions;
use rustix::process::Signal;

use super::child::{self, RecordedChild};
use super::{Caught, RecordError, RecordSubject};
use crate::{ReadOptions, TraceFileError, read};

/// System calls that the importer follows.
const CALLS: &str = "trace=read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,\
                     pwritev2,?open,openat,?openat2,?creat,close,?close_range,?dup,?dup2,dup3,\
                     fcntl,lseek,sendfile,?copy_file_range,fadvise64,readahead,truncate,\
                     ftruncate,?unlink,unlinkat,clone,?clone3,?fork,?vfork";

pub(super) fn record(
    subject: &RecordSubject,
    stop: &dyn Fn() -> bool,
) -> Result<Caught, RecordError> {
    if sys::program::find("strace").is_none() {
        let reason = "strace is not on PATH (it is in the package strace)";
        return Err(RecordError::Unavailable(reason.to_owned()));
    }
    let log = tempfile::NamedTempFile::new()
        .map_err(TraceFileError::io("write", std::env::temp_dir()))?;
    let said = tempfile::tempfile().map_err(TraceFileError::io("write", std::env::temp_dir()))?;
    let mut command = Command::new("strace");
    command.args(["-f", "-ttt", "-T", "-y", "-s", "0", "-e", CALLS, "-e", "signal=none", "-o"]);
    command.arg(log.path());
    let watched = match subject {
        RecordSubject::Command(words) => {
            command.arg("--").args(words);
            true
        }
        RecordSubject::Process(pid) => {
            command.arg("-p").arg(pid.to_string()).stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::from(
                said.try_clone().map_err(TraceFileError::io("write", std::env::temp_dir()))?,
            ));
            false
        }
    };
    // With `-o`, strace ignores fatal signals while a command runs (option `-I` in strace(1)), so
    // SIGTERM goes to the command itself. SIGINT makes strace detach from a process.
    let status = if watched {
        RecordedChild::start_tracer(&mut command)?.wait(stop, Signal::TERM)
    } else {
        RecordedChild::start(&mut command)?.wait(stop, Signal::INT)
    };
    let options = ReadOptions {
        format: Some("strace".to_owned()),
        import: ImportOptions { sort: true, ..ImportOptions::default() },
        ..ReadOptions::default()
    };
    let empty = log.as_file().metadata().is_ok_and(|it| it.len() == 0);
    if empty && !status.success() {
        let reason = format!("strace could not watch: {}", refusal(said, status));
        return Err(RecordError::Unavailable(reason));
    }
    let (trace, _) = read(log.path(), &options).map_err(|error| told(error, subject))?;
    let mut notes = Vec::new();
    if watched && !stop() {
        notes.extend(child::note(status));
    }
    notes.push("reads through mappings or io_uring are not recorded".to_owned());
    Ok(Caught { trace, notes, command: watched.then_some(status) })
}

/// Returns the last line that strace printed, or its exit status if it printed nothing.
fn refusal(mut said: std::fs::File, status: std::process::ExitStatus) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
    match text.lines().last() {
        Some(line) => line.to_owned(),
        None => format!("{status}"),
    }
}

/// Names the recorded subject instead of the log, which is a temporary file unknown to the user.
pub(super) fn told(error: TraceFileError, subject: &RecordSubject) -> RecordError {
    RecordError::Failed(match error {
        TraceFileError::Broken { error, .. } => TraceFileError::Subject {
            subject: subject.to_string(),
            problem: error.to_string().replace("the trace: ", ""),
        },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;

    /// Records a shell script until it has run for a second. Returns the process id that the script
    /// wrote to its first argument, the elapsed time and the status; `None` without strace.
    fn stopped(script: &str) -> Option<(u32, Duration, Option<std::process::ExitStatus>)> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let words = ["sh", "-c", script, "sh"].map(Into::into);
        let words = words.into_iter().chain([file.clone().into()]).collect();
        let begun = Instant::now();
        let stop = || begun.elapsed() > Duration::from_secs(1) && file.exists();
        match record(&RecordSubject::Command(words), &stop) {
            Ok(caught) => {
                let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
                Some((pid, begun.elapsed(), caught.command))
            }
            Err(RecordError::Unavailable(reason)) => {
                println!("SKIP {}: {reason}", std::thread::current().name().unwrap_or_default());
                None
            }
            Err(RecordError::Failed(error)) => panic!("{error}"),
        }
    }

    fn runs(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_command_exits_with_its_recording() {
        let script = "cat /dev/null; echo $$ > $1; exec sleep 60";
        let Some((pid, elapsed, status)) = stopped(script) else { return };
        assert!(!runs(pid), "the command stayed behind");
        assert!(elapsed < Duration::from_secs(5), "{elapsed:?}, {status:?}");
    }

    #[test]
    fn a_command_that_ignores_signals_is_killed_with_its_recording() {
        let script = "trap '' TERM; cat /dev/null; echo $$ > $1; exec sleep 60";
        let Some((pid, _, status)) = stopped(script) else { return };
        assert!(!runs(pid), "the command stayed behind: {status:?}");
    }
}
