//! Parses a line of strace and the call in it.

use units::Nanos;

use crate::import::lines::exact_seconds;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp<'a> {
    /// Process id; 0 if strace traced only one process.
    pub(super) process: u64,
    pub(super) time: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StraceLine<'a> {
    StraceCall(&'a str),
    /// The first part of a call that had not returned when strace printed another line.
    Begun(&'a str),
    /// The rest of such a call.
    Resumed(&'a str),
    /// A signal, an exit, or a message of strace itself.
    Nothing,
    /// Not a line of strace.
    Broken,
}

/// Splits a line into the stamp before the call and the call.
pub(super) fn split(line: &str) -> (Stamp<'_>, StraceLine<'_>) {
    let mut stamp = Stamp::default();
    let mut rest = line;
    if let Some((pid, after)) = rest.strip_prefix("[pid").and_then(|it| it.split_once(']')) {
        stamp.process = pid.trim().parse().unwrap_or(0);
        rest = after.trim_start();
    }
    while let Some((word, after)) = rest.split_once(' ') {
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        match word.parse::<u64>() {
            Ok(pid) => stamp.process = pid,
            Err(_) => stamp.time = Some(word),
        }
        rest = after.trim_start();
    }
    (stamp, line_of(rest))
}

fn line_of(text: &str) -> StraceLine<'_> {
    if text.starts_with("+++") || text.starts_with("---") || text.starts_with("strace: ") {
        return StraceLine::Nothing;
    }
    if let Some(resumed) = text.strip_prefix("<... ") {
        return match resumed.split_once(" resumed>") {
            Some((_, rest)) => StraceLine::Resumed(rest),
            None => StraceLine::Broken,
        };
    }
    let name = text.split('(').next().unwrap_or_default();
    let named = !name.is_empty()
        && name.len() < text.len()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?');
    if !named {
        return StraceLine::Broken;
    }
    if let Some(begun) = text.strip_suffix("<unfinished ...>") {
        return StraceLine::Begun(begun.trim_end());
    }
    if text.contains("<detached ...>") {
        return StraceLine::Nothing;
    }
    StraceLine::StraceCall(text)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StraceCall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// Return value; `None` if the call did not return or returned no number.
    pub(super) returned: Option<i64>,
    /// The path that strace prints for a returned descriptor.
    pub(super) returned_path: Option<&'a str>,
    /// Duration of the call (`-T`).
    pub(super) took: Option<Nanos>,
}

/// Calls that transfer data, open files or affect descriptors. Others are not parsed.
const FOLLOWED: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "fcntl64",
    "lseek",
    "_llseek",
    "sendfile",
    "sendfile64",
    "copy_file_range",
    "fadvise64",
    "fadvise64_64",
    "readahead",
    "truncate",
    "ftruncate",
    "unlink",
    "unlinkat",
    "clone",
    "clone3",
    "fork",
    "vfork",
];

impl<'a> StraceCall<'a> {
    /// Parses a call; the error says what is wrong.
    pub(super) fn of(text: &'a str) -> Result<Self, String> {
        let cut = || "the call is cut short".to_owned();
        let (name, rest) = text.split_once('(').ok_or_else(cut)?;
        if !FOLLOWED.contains(&name) {
            return Ok(Self { name, ..Self::default() });
        }
        let (arguments, rest) = arguments(rest).ok_or_else(cut)?;
        let returned = rest.trim_start().strip_prefix('=').ok_or_else(cut)?.trim_start();
        let end = returned.find(|c: char| !(c.is_ascii_digit() || c == '-'));
        let (number, after) = returned.split_at(end.unwrap_or(returned.len()));
        if number.is_empty() && !returned.starts_with('?') {
            return Err(cut());
        }
        Ok(Self {
            name,
            arguments,
            returned: number.parse().ok(),
            took: after.rsplit_once('<').and_then(|it| exact_seconds(it.1.strip_suffix('>')?)),
            returned_path: after
                .strip_prefix('<')
                .and_then(|path| path.split_once('>'))
                .map(|it| it.0),
        })
    }

    /// Returns the descriptor in this argument, with the path that strace prints for it.
    pub(super) fn descriptor(&self, at: usize) -> Option<(i64, Option<&'a str>)> {
        let word = self.arguments.get(at)?;
        let (number, path) = match word.split_once('<') {
            Some((number, path)) => (number, Some(path.strip_suffix('>').unwrap_or(path))),
            None => (*word, None),
        };
        number.parse().ok().map(|number| (number, path))
    }

    pub(super) fn number(&self, at: usize) -> Option<i64> {
        self.arguments.get(at)?.parse().ok()
    }
}

/// Splits the arguments up to the closing parenthesis, and returns them and the rest. Does not
/// split within quotes, brackets or the paths of descriptors.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let bytes = text.as_bytes();
    let (mut arguments, mut start, mut depth, mut at) = (Vec::new(), 0, 0u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = quoted_end(bytes, at)?,
            b'<' if at > 0 && (bytes[at - 1].is_ascii_alphanumeric()) => {
                at += bytes[at..].iter().position(|byte| *byte == b'>')?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[start..at].trim();
                if !last.is_empty() {
                    arguments.push(last);
                }
                return Some((arguments, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the position of the closing quote of the text that opens at `at`.
fn quoted_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}
