//! Checks the exit and the output of a command against the documentation.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::line::Line;

/// The documentation of exit codes, which is authoritative.
const DOCUMENT: &str = include_str!("../../../../docs/exit-codes.md");
/// Texts of a panic, and internal texts that no user should see.
const TRACES: &[&str] =
    &["panicked at", "RUST_BACKTRACE", "stack backtrace", "thread '", "fatal runtime"];
/// Verbs that print binary data if their output is `-`.
const BINARY: &[&str] = &["trace import", "report"];
/// Exit codes of the commands that foreread runs here: their own codes, and that of SIGKILL.
const OF_COMMANDS: &[i32] = &[1, 7, 137];

pub struct Ending {
    /// Exit code as a shell reports it.
    pub code: i32,
    /// Whether the command was sent SIGTERM.
    stopped: bool,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Returns the documented exit codes.
pub fn documented() -> BTreeSet<i32> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| "));
    let codes = rows.filter_map(|row| row.split(' ').next()?.parse().ok());
    codes.collect()
}

impl Ending {
    pub fn of(status: ExitStatus, stopped: bool, stdout: Vec<u8>, stderr: Vec<u8>) -> Self {
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(-1);
        Self { code, stopped, stdout, stderr }
    }

    /// Returns the error, or else the first line of stderr.
    pub fn said(&self) -> String {
        let stderr = String::from_utf8_lossy(&self.stderr);
        let error = stderr.lines().find(|line| line.contains("error:"));
        beginning(error.or(stderr.lines().next()).unwrap_or_default())
    }

    /// Lists what is wrong; the text before the first colon is the kind of problem.
    pub fn problems(&self, line: &Line) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.wrong_code(line));
        let (stdout, stderr) =
            (String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr));
        let stderr = without_colours(&stderr);
        for trace in TRACES {
            if stderr.contains(trace) || stdout.contains(trace) {
                problems.push(format!("panic: {}", beginning(&stderr)));
                break;
            }
        }
        // The output of a command that foreread runs is not checked.
        if !line.runs_command {
            if !(self.code == 0 && BINARY.contains(&line.verb.as_str())) {
                problems.extend(unclean("stdout", &self.stdout));
            }
            problems.extend(unclean("stderr", &self.stderr));
        }
        problems.extend(self.wrong_message(line, &stderr));
        problems
    }

    fn wrong_code(&self, line: &Line) -> Option<String> {
        let code = self.code;
        let of_command = line.runs_command && OF_COMMANDS.contains(&code);
        let of_signal = match code {
            143 => self.stopped,
            129 | 130 => false,
            126 | 127 => line.runs_command,
            _ => true,
        };
        let fits = (documented().contains(&code) && of_signal) || of_command;
        // On a busy machine, a command may be stopped before it has parsed its arguments.
        let must = self.stopped || line.must.is_none_or(|must| must == code);
        let said = String::from_utf8_lossy(&self.stderr);
        (!fits || !must).then(|| format!("exit code {code}: {}", beginning(&said)))
    }

    /// Checks that a failure prints an error line, and that a success prints none.
    fn wrong_message(&self, line: &Line, stderr: &str) -> Option<String> {
        let says_error = stderr.lines().any(|line| line.starts_with("error: "));
        let helps = stderr.contains("Usage: ");
        match self.code {
            1 | 2 | 4 | 6 if !says_error && !helps && !line.runs_command => {
                Some(format!("silent: exit code {}, stderr {:?}", self.code, beginning(stderr)))
            }
            0 if says_error && !line.runs_command => {
                Some(format!("contradiction: exit code 0 and {:?}", beginning(stderr)))
            }
            _ => None,
        }
    }
}

/// Finds bytes that are not UTF-8, and control characters that a terminal would obey.
fn unclean(stream: &str, bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if error.error_len().is_none() => "",
        Err(error) => {
            return Some(format!("no UTF-8 on {stream}: from byte {}", error.valid_up_to()));
        }
    };
    let text = without_colours(text);
    let obeyed = |one: char| one.is_control() && !matches!(one, '\n' | '\t') || one == '\u{202e}';
    let at = text.find(obeyed)?;
    let line = text[..at].lines().last().unwrap_or_default();
    Some(format!("control character on {stream}: behind {line:?}"))
}

/// Removes colour sequences, as in `ESC [ 1 ; 31 m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
        match part[length..].strip_prefix('m') {
            Some(rest) => clean.push_str(rest),
            None => clean.push_str(&format!("\u{1b}[{part}")),
        }
    }
    clean
}

fn beginning(text: &str) -> String {
    text.chars().take(600).collect()
}
