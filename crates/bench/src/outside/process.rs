//! Runs an external program in its own process group (and, if available, its own control group),
//! with limits on time and output. None of its processes remain afterwards.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use sys::child::{CapturedOutput, ChildProcess};
use sys::realtime;
use units::{Bytes, Nanos};

use super::cgroup::ControlGroup;
use crate::{BenchError, Cancel, CpuTime};

/// Interval of the checks whether a program has exited and whether its device is active.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum time that a killed program may hang in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum output of a program; more than this is not a report.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// The kernel's accounting of a process and of the children that it has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// Data received by `read(2)` and similar calls, from anywhere.
    pub(crate) asked: Bytes,
    /// Data that devices read for the process.
    pub(crate) read: Bytes,
    /// Data that the process wrote to devices.
    pub(crate) written: Bytes,
    pub(crate) cpu: CpuTime,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Wall time from start to exit.
    pub(crate) elapsed: Nanos,
    /// `None` if the kernel has no I/O accounting.
    pub(crate) account: Option<ProcessUsage>,
}

pub(crate) struct RunOptions<'a> {
    pub(crate) program: &'a str,
    /// Limit on wall time.
    pub(crate) limit: Nanos,
    pub(crate) cancel: &'a Cancel,
    pub(crate) input: Option<&'a str>,
}

/// Runs a program until it exits; calls `look` every few milliseconds.
pub(crate) fn run(
    mut command: Command,
    terms: &RunOptions<'_>,
    look: &mut dyn FnMut(),
) -> Result<Ended, BenchError> {
    let tool = |problem: String| BenchError::Tool { program: terms.program.to_owned(), problem };
    let stdin = if terms.input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Dropped after the process.
    let group = ControlGroup::make();
    let start = realtime::now();
    let child =
        ChildProcess::start(&mut command, terms.input.unwrap_or_default(), MAX_OUTPUT_BYTES);
    let mut child = child.map_err(|error| tool(format!("cannot be started: {error}")))?;
    if let Some(group) = &group {
        group.take_in(child.id());
    }
    watch(&child, terms, start, look)?;
    let elapsed = realtime::now().saturating_sub(start);
    let account = account_of(child.id()).map(|account| widened(account, group.as_ref()));
    // Kills the remaining processes of the group, which closes its pipes.
    child.kill_group();
    if let Some(group) = &group {
        group.kill();
    }
    let status =
        child.wait_timeout(KILL_TIMEOUT).map_err(BenchError::io("wait for", terms.program))?;
    let waited = realtime::now().saturating_sub(start);
    let status = status.ok_or(BenchError::Stuck { readers: 1, waited })?;
    match child.take_output() {
        Some(CapturedOutput { stdout, stderr }) => {
            Ok(Ended { status, stdout, stderr, elapsed, account })
        }
        None => Err(tool("left a process behind that keeps its output open".to_owned())),
    }
}

/// Waits until a program has exited, without reaping it, so that its accounting can be read.
fn watch(
    child: &ChildProcess,
    terms: &RunOptions<'_>,
    start: Nanos,
    look: &mut dyn FnMut(),
) -> Result<(), BenchError> {
    let tool = |problem: String| BenchError::Tool { program: terms.program.to_owned(), problem };
    while !child.has_exited().map_err(BenchError::io("wait for", terms.program))? {
        look();
        if terms.cancel.is_cancelled() {
            return Err(BenchError::Cancelled);
        }
        if realtime::now().saturating_sub(start) >= terms.limit {
            let limit = terms.limit;
            return Err(tool(format!("did not exit within {limit} and was killed")));
        }
        if child.exceeds_output() {
            let most = Bytes::new(MAX_OUTPUT_BYTES as u64);
            return Err(tool(format!("printed more than {most}, and was killed")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Adds the I/O of processes that their parent did not wait for, if the control group counts it.
fn widened(account: ProcessUsage, group: Option<&ControlGroup>) -> ProcessUsage {
    match group.and_then(ControlGroup::read_and_written) {
        Some((read, written)) => ProcessUsage {
            read: account.read.max(read),
            written: account.written.max(written),
            ..account
        },
        None => account,
    }
}

/// Returns the accounting of a process that has exited but is not reaped yet. It includes the
/// children that the process has waited for (`wait_task_zombie` in kernel/exit.c).
fn account_of(pid: u32) -> Option<ProcessUsage> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_account(&io, &String::from_utf8_lossy(&stat))
}

fn parse_account(io: &str, stat: &str) -> Option<ProcessUsage> {
    let bytes = |key: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').trim().parse().ok().map(Bytes::new)
    };
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<u64> =
        rest.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    // utime, stime, cutime, cstime: fields 14 to 17, in ticks of 10 ms.
    let ticks = |own: usize| {
        let sum = fields.get(own).copied()? + fields.get(own + 2).copied()?;
        Some(Nanos::from_millis(sum.saturating_mul(10)))
    };
    Some(ProcessUsage {
        asked: bytes("rchar")?,
        read: bytes("read_bytes")?,
        written: bytes("write_bytes")?,
        cpu: CpuTime { user: ticks(10)?, system: ticks(11)? },
    })
}

/// Returns why a program failed; `None` if it succeeded.
pub(crate) fn failure(ended: &Ended) -> Option<String> {
    if ended.status.success() {
        return None;
    }
    let how = match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    };
    let said = complaint(&ended.stderr).or_else(|| last_line(&ended.stderr));
    let said = said.or_else(|| last_line(&ended.stdout));
    Some(match said {
        Some(said) => format!("{how}: {said}"),
        None => how,
    })
}

/// Returns the last line that reports an error; some programs print their progress after it.
fn complaint(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let complains = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "failed", "cannot", "no space"].iter().any(|word| line.contains(word))
    };
    last_line(text.lines().rfind(complains)?.as_bytes())
}

/// Returns the last line that is not empty, shortened for a message.
pub(crate) fn last_line(text: &[u8]) -> Option<String> {
    const MAX_MESSAGE_CHARS: usize = 200;
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Nanos) -> Result<Ended, BenchError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cancel = Cancel::new();
        let terms = RunOptions { program: "sh", limit, cancel: &cancel, input: None };
        run(command, &terms, &mut || ())
    }

    #[test]
    fn output_status_and_account_are_told() {
        let ended = shell("echo out; echo err >&2; head -c 100000 /dev/zero; exit 3", Nanos::MAX);
        let ended = ended.unwrap();
        assert!(ended.stdout.starts_with(b"out\n") && ended.stdout.len() == 100_004);
        assert_eq!(failure(&ended).unwrap(), "failed with exit code 3: err");
        let script = "echo \"x: Error writing: No space left\" >&2; echo 5 bytes >&2; exit 1";
        let full = shell(script, Nanos::from_secs(10)).unwrap();
        let message = "failed with exit code 1: x: Error writing: No space left";
        assert_eq!(failure(&full).unwrap(), message);
        let asked = ended.account.unwrap().asked;
        assert!(asked >= Bytes::new(100_000), "{asked}");
    }

    #[test]
    fn what_hangs_is_killed_with_all_its_children() {
        let limit = Nanos::from_millis(300);
        let problem = shell("sleep 1000 & sleep 1000; true", limit).unwrap_err().to_string();
        assert!(problem.contains("did not exit within 300 ms"), "{problem}");
    }

    #[test]
    fn what_is_left_in_the_background_goes() {
        let ended = shell("sleep 1000 & echo $!", Nanos::MAX).unwrap();
        let pid: u32 = String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap();
        let gone = |_: &u32| {
            std::thread::sleep(Duration::from_millis(20));
            sys::process::start_time(pid).unwrap().is_none()
        };
        assert!((0..200u32).any(|turn| gone(&turn)), "{pid} lives on");
    }

    #[test]
    fn what_is_cancelled_ends_at_once() {
        let cancel = Cancel::new();
        cancel.cancel();
        let terms = RunOptions { program: "sh", limit: Nanos::MAX, cancel: &cancel, input: None };
        let mut command = Command::new("sleep");
        command.arg("1000");
        assert!(matches!(run(command, &terms, &mut || ()), Err(BenchError::Cancelled)));
    }

    #[test]
    fn accounts_are_read() {
        let io = "rchar: 10\nwchar: 2\nsyscr: 1\nsyscw: 1\nread_bytes: 20\nwrite_bytes: 30\n";
        let stat = "7 (a) b) Z 1 2 3 4 -1 0 9 9 9 9 100 200 5 7 20 0 1 0 9 9";
        let account = parse_account(io, stat).unwrap();
        assert_eq!((account.asked, account.read), (Bytes::new(10), Bytes::new(20)));
        assert_eq!(account.cpu.user, Nanos::from_millis(1050));
        assert_eq!(account.cpu.system, Nanos::from_millis(2070));
        assert_eq!(parse_account("", stat), None);
        assert_eq!(parse_account(io, "x"), None);
    }
}
