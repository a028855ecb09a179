//! A program that is none of ours, under watch: in a process group (and, where that can be had, a
//! control group) of its own, for a limited time, with limited output. When it is over, nothing of
//! it is left.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use sys::realtime;
use units::{Bytes, Nanos};

use super::cgroup::ControlGroup;
use crate::{BenchError, Cancel, CpuTime};

/// How often a program is asked whether it has ended, and its device whether it is at work.
const POLL: Duration = Duration::from_millis(2);
/// How long one that was killed may hang in the kernel.
const STUCK: Nanos = Nanos::from_secs(30);
/// More output than this is no report.
const OUTPUT_MAX: usize = 64 << 20;
/// How long is waited for output when the program has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the kernel accounts to a process and the children that it has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Data got by `read(2)` and its like, from wherever.
    pub(crate) asked: Bytes,
    /// Data that devices read for it.
    pub(crate) read: Bytes,
    /// Data that it had written to devices.
    pub(crate) written: Bytes,
    pub(crate) cpu: CpuTime,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Wall time from its start to its end.
    pub(crate) elapsed: Nanos,
    /// Nothing where the kernel does not account.
    pub(crate) account: Option<Account>,
}

/// How a program is to be run.
pub(crate) struct Terms<'a> {
    /// The name for messages.
    pub(crate) program: &'a str,
    /// How long it may take on the wall.
    pub(crate) limit: Nanos,
    pub(crate) cancel: &'a Cancel,
    /// What it reads from its standard input.
    pub(crate) input: Option<&'a str>,
}

/// Runs a program to its end; `look` is called every few milliseconds meanwhile.
pub(crate) fn run(
    mut command: Command,
    terms: &Terms<'_>,
    look: &mut dyn FnMut(),
) -> Result<Ended, BenchError> {
    let tool = |problem: String| BenchError::Tool { program: terms.program.to_owned(), problem };
    let input = if terms.input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    let group = ControlGroup::make();
    let start = realtime::now();
    let mut child = command.spawn().map_err(|error| tool(format!("cannot be started: {error}")))?;
    let guard = Running { pid: pid_of(&child), group };
    if let Some(group) = &guard.group {
        group.take_in(child.id());
    }
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    if let (Some(text), Some(mut stdin)) = (terms.input, child.stdin.take()) {
        // One that does not read it says itself what is wrong.
        let _ = std::io::Write::write_all(&mut stdin, text.as_bytes());
    }
    let watched = watch(&child, terms, &stdout, start, look);
    let elapsed = realtime::now().saturating_sub(start);
    let account = watched.is_ok().then(|| account_of(child.id())).flatten();
    let account = account.map(|account| guard.widened(account));
    // Whatever it has left behind goes now, and so its pipes are closed.
    guard.kill();
    let status = reap(&mut child, terms)?;
    watched?;
    let (out, err) = (stdout.words(), stderr.words());
    match (out, err) {
        (Some(stdout), Some(stderr)) => Ok(Ended { status, stdout, stderr, elapsed, account }),
        _ => Err(tool("has left a process behind that holds on to its output".to_owned())),
    }
}

/// Waits for the end of a program without reaping it, so that its account can still be read.
fn watch(
    child: &Child,
    terms: &Terms<'_>,
    output: &Output,
    start: Nanos,
    look: &mut dyn FnMut(),
) -> Result<(), BenchError> {
    let tool = |problem: String| BenchError::Tool { program: terms.program.to_owned(), problem };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = pid_of(child) else { return Ok(()) };
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(()),
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(BenchError::io("wait for", terms.program)(errno.into())),
        }
        look();
        if terms.cancel.is_cancelled() {
            return Err(BenchError::Cancelled);
        }
        if realtime::now().saturating_sub(start) >= terms.limit {
            let limit = terms.limit;
            return Err(tool(format!("has not ended after {limit}, and was killed")));
        }
        if output.is_too_much() {
            let most = Bytes::new(OUTPUT_MAX as u64);
            return Err(tool(format!("printed more than {most}, and was killed")));
        }
        std::thread::sleep(POLL);
    }
}

/// Takes the status of a program that was killed or has ended.
fn reap(child: &mut Child, terms: &Terms<'_>) -> Result<ExitStatus, BenchError> {
    let start = realtime::now();
    loop {
        let status = child.try_wait().map_err(BenchError::io("wait for", terms.program))?;
        if let Some(status) = status {
            return Ok(status);
        }
        let waited = realtime::now().saturating_sub(start);
        if waited >= STUCK {
            return Err(BenchError::Stuck { readers: 1, waited });
        }
        std::thread::sleep(POLL);
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

/// Kills the whole process group when it goes, whatever happens.
struct Running {
    pid: Option<Pid>,
    group: Option<ControlGroup>,
}

impl Running {
    fn kill(&self) {
        if let Some(pid) = self.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    /// With what processes did that nobody waited for, where the control group counts.
    fn widened(&self, account: Account) -> Account {
        match self.group.as_ref().and_then(ControlGroup::read_and_written) {
            Some((read, written)) => Account {
                read: account.read.max(read),
                written: account.written.max(written),
                ..account
            },
            None => account,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a pipe brings, up to a limit, read by a thread of its own.
struct Output {
    words: Receiver<Vec<u8>>,
    size: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Output {
    use std::sync::atomic::Ordering;
    let (send, words) = channel();
    let size = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&size);
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        let Some(mut pipe) = pipe else { return };
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => {
                    count.fetch_add(got, Ordering::Relaxed);
                    let room = OUTPUT_MAX.saturating_sub(all.len());
                    all.extend_from_slice(&buffer[..got.min(room)]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody may be waiting any more.
        let _ = send.send(all);
    });
    Output { words, size }
}

impl Output {
    fn is_too_much(&self) -> bool {
        self.size.load(std::sync::atomic::Ordering::Relaxed) > OUTPUT_MAX
    }

    /// All of it, when the pipe is closed; nothing if somebody keeps it open.
    fn words(self) -> Option<Vec<u8>> {
        match self.words.recv_timeout(LAST_WORDS) {
            Ok(words) => Some(words),
            Err(RecvTimeoutError::Disconnected) => Some(Vec::new()),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

/// The account of a process that has ended and was not waited for yet: it holds that of the
/// children that it has waited for itself (`wait_task_zombie` in kernel/exit.c).
fn account_of(pid: u32) -> Option<Account> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_account(&io, &String::from_utf8_lossy(&stat))
}

fn parse_account(io: &str, stat: &str) -> Option<Account> {
    let bytes = |key: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').trim().parse().ok().map(Bytes::new)
    };
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<u64> =
        rest.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    // utime, stime, cutime, cstime: fields 14 to 17, in ticks of which each second has 100.
    let ticks = |own: usize| {
        let sum = fields.get(own).copied()? + fields.get(own + 2).copied()?;
        Some(Nanos::from_millis(sum.saturating_mul(10)))
    };
    Some(Account {
        asked: bytes("rchar")?,
        read: bytes("read_bytes")?,
        written: bytes("write_bytes")?,
        cpu: CpuTime { user: ticks(10)?, system: ticks(11)? },
    })
}

/// Why a program that has ended did not do its work; nothing if it did.
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

/// The last line that speaks of an error: after it some programs still tell how far they came.
fn complaint(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let complains = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "failed", "cannot", "no space"].iter().any(|word| line.contains(word))
    };
    last_line(text.lines().rfind(complains)?.as_bytes())
}

/// The last line that is not empty, as much of it as a message has room for.
pub(crate) fn last_line(text: &[u8]) -> Option<String> {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Nanos) -> Result<Ended, BenchError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cancel = Cancel::new();
        let terms = Terms { program: "sh", limit, cancel: &cancel, input: None };
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
        let told = "failed with exit code 1: x: Error writing: No space left";
        assert_eq!(failure(&full).unwrap(), told);
        let asked = ended.account.unwrap().asked;
        assert!(asked >= Bytes::new(100_000), "{asked}");
    }

    #[test]
    fn what_hangs_is_killed_with_all_its_children() {
        let limit = Nanos::from_millis(300);
        let problem = shell("sleep 1000 & sleep 1000; true", limit).unwrap_err().to_string();
        assert!(problem.contains("has not ended after 300 ms"), "{problem}");
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
        let terms = Terms { program: "sh", limit: Nanos::MAX, cancel: &cancel, input: None };
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
