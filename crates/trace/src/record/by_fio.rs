//! Records fio with fio's own log.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::by_strace::told;
use super::child::{self, RecordedChild};
use super::{Caught, RecordError, RecordSubject};
use crate::{ReadOptions, TraceFileError, read};

pub(super) fn record(
    subject: &RecordSubject,
    stop: &dyn Fn() -> bool,
) -> Result<Caught, RecordError> {
    let words = match subject {
        RecordSubject::Command(words) if is_fio(words) => words,
        _ => {
            let reason = "only fio itself can write fio's log".to_owned();
            return Err(RecordError::Unavailable(reason));
        }
    };
    let dir = tempfile::tempdir().map_err(TraceFileError::io("write", std::env::temp_dir()))?;
    let log = dir.path().join("log");
    let mut option = OsString::from("--write_iolog=");
    option.push(&log);
    let mut command = Command::new(&words[0]);
    // Before the job files: an option after them would apply to the last job only.
    command.arg(option).args(&words[1..]);
    let mut running = RecordedChild::start(&mut command)?;
    let status = running.wait(stop, Signal::INT);
    if !log.exists() {
        let (subject, problem) = (subject.to_string(), format!("fio wrote no log: {status}"));
        return Err(TraceFileError::Subject { subject, problem }.into());
    }
    let options = ReadOptions { format: Some("fio-iolog".to_owned()), ..ReadOptions::default() };
    let (trace, _) = read(&log, &options).map_err(|error| told(error, subject))?;
    let mut notes: Vec<String> = child::note(status).into_iter().collect();
    notes.push("of several jobs fio writes but one into its log".to_owned());
    Ok(Caught { trace, notes, command: Some(status) })
}

fn is_fio(words: &[OsString]) -> bool {
    let program = words.first().map(Path::new);
    program.and_then(Path::file_name).is_some_and(|name| name == "fio")
}
