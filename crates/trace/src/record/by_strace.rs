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
    let mut running = RecordedChild::start(&mut command)?;
    // SIGTERM asks a command to exit through strace; SIGINT makes strace detach from a process.
    let status = running.wait(stop, if watched { Signal::TERM } else { Signal::INT });
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
