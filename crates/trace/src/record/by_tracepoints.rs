//! Records with the kernel's tracepoints.

use std::process::Command;

use crate::import::{ImportOptions, format};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::by_strace::told;
use super::child::{self, POLL_INTERVAL, RecordedChild};
use super::names::Names;
use super::tracefs::{Instance, TracePipe};
use super::{Caught, RecordError, RecordSubject};
use crate::{Trace, TraceFileError};

/// Reads through the page cache, and faults on mapped files.
const EVENTS: [&str; 2] = ["filemap/mm_filemap_get_pages", "filemap/mm_filemap_fault"];
/// Stops the shell before it executes the program, so that the tracepoints can be enabled for it.
const STOPPED: &str = "kill -STOP $$; exec \"$@\"";

pub(super) fn record(
    subject: &RecordSubject,
    stop: &dyn Fn() -> bool,
) -> Result<Caught, RecordError> {
    let instance = Instance::make().map_err(RecordError::Unavailable)?;
    let (mut running, threads) = begin(subject)?;
    instance.arm(&threads, &EVENTS).map_err(RecordError::Unavailable)?;
    let mut pipe = instance.pipe().map_err(RecordError::Unavailable)?;
    if let Some(running) = &running {
        running.signal(Signal::CONT);
    }
    let (text, names) = follow(subject, running.as_mut(), &threads, &mut pipe, stop)?;
    let mut notes = Vec::new();
    let command = running.as_mut().and_then(RecordedChild::ended);
    notes.extend(command.filter(|_| !stop()).and_then(child::note));
    let lost = lost(&text);
    if lost > 0 {
        notes.push(format!("{lost} events were lost: the trace has holes"));
    }
    let options = ImportOptions { sort: true, ..ImportOptions::default() };
    let parsed = format("ftrace").and_then(|format| format.parse(&text, options));
    let path = "trace_pipe".into();
    let trace = parsed.map_err(|error| told(TraceFileError::Broken { path, error }, subject))?;
    notes.extend(note_on_faults(&trace));
    Ok(Caught { trace: names.apply(trace), notes, command })
}

/// Explains what the trace lacks if mappings were read; `None` if there are no faults.
fn note_on_faults(trace: &Trace) -> Option<String> {
    let of = match trace.summary().faults {
        0 => return None,
        1 => "1 of the requests is a fault of a mapping".to_owned(),
        faults => format!("{faults} of the requests are faults of mappings"),
    };
    Some(format!("{of}; accesses to mapped pages that do not fault are not recorded"))
}

/// Starts the command in a stopped state, or lists the threads of the process.
fn begin(subject: &RecordSubject) -> Result<(Option<RecordedChild>, Vec<u32>), RecordError> {
    match subject {
        RecordSubject::Command(words) => {
            let mut command = Command::new("sh");
            command.args(["-c", STOPPED, "sh"]).args(words);
            let running = RecordedChild::start(&mut command)?;
            let pid = running.pid();
            let waited = Pid::from_raw(pid.cast_signed())
                .and_then(|pid| waitpid(Some(pid), WaitOptions::UNTRACED).ok().flatten());
            match waited {
                Some((_, status)) if status.stopped() => Ok((Some(running), vec![pid])),
                _ => Err(RecordError::Unavailable(
                    "the command did not wait for its start".to_owned(),
                )),
            }
        }
        RecordSubject::Process(pid) => {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
            let tasks = tasks.map_err(TraceFileError::io("read", format!("/proc/{pid}/task")))?;
            let number = |task: std::fs::DirEntry| task.file_name().to_str()?.parse().ok();
            Ok((None, tasks.flatten().filter_map(number).collect()))
        }
    }
}

/// Collects events and file names until the subject exits or `stop` returns true.
fn follow(
    subject: &RecordSubject,
    mut running: Option<&mut RecordedChild>,
    threads: &[u32],
    pipe: &mut TracePipe,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<u8>, Names), RecordError> {
    let (mut text, mut names) = (Vec::new(), Names::default());
    let mut drain =
        |text: &mut Vec<u8>| pipe.drain(text).map_err(TraceFileError::io("read", "trace_pipe"));
    let mut asked = false;
    loop {
        names.look_at_family(threads);
        drain(&mut text)?;
        let ended = match (&mut running, subject) {
            (Some(running), _) => {
                if stop() && !asked {
                    running.signal(Signal::TERM);
                    asked = true;
                }
                running.ended().is_some()
            }
            (None, RecordSubject::Process(pid)) => stop() || is_over(*pid),
            (None, RecordSubject::Command(_)) => true,
        };
        if ended {
            while drain(&mut text)? {}
            return Ok((text, names));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns whether a process has exited, including zombies that are not reaped yet.
fn is_over(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The state follows the process name, which may contain anything.
    stat.is_err() || stat.is_ok_and(|s| s.rsplit(") ").next().is_some_and(|s| s.starts_with('Z')))
}

/// Returns the number of lost events, from lines such as `CPU:1 [LOST 12 EVENTS]`.
fn lost(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    let counts = text.lines().filter_map(|line| {
        let rest = line.split_once("[LOST ")?.1;
        rest.split_once(' ')?.0.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_noted_and_reads_are_not() {
        let noted = |event: &str| {
            let text = format!("x-9 [000] ..... 1.5: mm_filemap_{event}\n");
            let format = format("ftrace").expect("a format");
            let trace = format.parse(text.as_bytes(), ImportOptions::default()).expect("a trace");
            note_on_faults(&trace)
        };
        assert!(
            noted("fault: dev=8:1 ino=2a ofs=8192")
                .is_some_and(|note| note.starts_with("1 of the requests is a fault"))
        );
        assert_eq!(noted("get_pages: dev=8:1 ino=2a ofs=0-4095"), None);
    }

    #[test]
    fn lost_events_are_counted() {
        assert_eq!(lost(b"CPU:1 [LOST 12 EVENTS]\nx\nCPU:0 [LOST 3 EVENTS]\n"), 15);
        assert_eq!(lost(b"nothing was lost"), 0);
    }
}
