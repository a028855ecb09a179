//! Reads files that users name, up to a limit that depends on the kind of file.
//!
//! Reported sizes are not trusted: a pipe has none, `/dev/zero` is endless, and files in `/proc`
//! report a size of 0. `-` means standard input.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal as _, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;
use units::{Bytes, ErrorKind};

/// A kind of input, with its names and its maximum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputKind {
    one: &'static str,
    many: &'static str,
    limit: Bytes,
}

impl InputKind {
    /// A device model in TOML.
    pub const MODEL: Self = Self::new("model", "models", Bytes::from_mib(16));
    /// A workload declaration in TOML.
    pub const WORKLOAD: Self = Self::new("workload file", "workload files", Bytes::from_mib(16));
    /// A job file of fio, or a file that it includes.
    pub const JOB_FILE: Self = Self::new("job file", "job files", Bytes::from_mib(16));
    /// A compliance policy of `foreread check`.
    pub const POLICY: Self = Self::new("policy", "policies", Bytes::from_mib(16));
    pub const CONFIGURATION: Self =
        Self::new("configuration file", "configuration files", Bytes::from_mib(16));
    pub const STATUS: Self = Self::new("status file", "status files", Bytes::from_mib(16));
    pub const RESULTS: Self = Self::new("results", "results", Bytes::from_mib(64));
    pub const DECISIONS: Self =
        Self::new("recorded decisions", "recorded decisions", Bytes::from_mib(64));
    /// Recorded service times of a drive, with its seek curve and description.
    pub const SERVICE_TIMES: Self =
        Self::new("service times", "service times", Bytes::from_mib(64));
    /// A record of runs from standard input.
    pub const RECORD: Self = Self::new("record", "records", Bytes::from_mib(256));
    /// A trace of requests. The limit applies to the file and to its decompressed content.
    pub const TRACE: Self = Self::new("trace", "traces", Bytes::from_gib(1));
    /// A recording of `foreread watch`, which is read line by line.
    pub const RECORDING: Self = Self::new("recording", "recordings", Bytes::from_gib(4));

    /// Creates a kind from its name in singular and plural, and its maximum size.
    pub const fn new(one: &'static str, many: &'static str, limit: Bytes) -> Self {
        Self { one, many, limit }
    }

    /// Returns the maximum size.
    pub const fn limit(self) -> Bytes {
        self.limit
    }
}

#[derive(Debug, Error)]
pub enum InputError {
    #[error("cannot read the {kind} {source_name}: {}", plain(reason), kind = .kind.one)]
    Io { kind: InputKind, source_name: SourceName, reason: io::Error },
    /// The input is neither a file nor a pipe.
    #[error("cannot read the {kind} {source_name}: it is {found}", kind = .kind.one)]
    NoFile { kind: InputKind, source_name: SourceName, found: &'static str },
    /// The input is endless or too large.
    #[error(
        "{source_name} is larger than {limit}, which is the limit for {kind}",
        limit = .kind.limit, kind = .kind.many
    )]
    TooLarge { kind: InputKind, source_name: SourceName },
    /// The input should be text, but is not UTF-8.
    #[error("cannot read the {kind} {source_name}: it is not text (UTF-8)", kind = .kind.one)]
    NotText { kind: InputKind, source_name: SourceName },
    #[error(
        "standard input (-) cannot be the {kind} as well: it is already the {first}",
        kind = .kind.one, first = .first.one
    )]
    StdinTaken { kind: InputKind, first: InputKind },
}

impl units::Classified for InputError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { reason, .. } => ErrorKind::from_named_file(reason),
            Self::NoFile { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. }
            | Self::StdinTaken { .. } => ErrorKind::Usage,
        }
    }
}

impl InputError {
    /// Returns the error for an input that exceeds the limit, for callers that read in parts.
    pub fn too_large(path: &Path, kind: InputKind) -> Self {
        Self::TooLarge { kind, source_name: SourceName::new(path) }
    }

    /// Returns the kind of the operating system's error, if there is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { reason, .. } => Some(reason.kind()),
            _ => None,
        }
    }
}

/// Formats the operating system's error without its number, which is redundant.
fn plain(reason: &io::Error) -> String {
    let text = reason.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_lowercase().to_string() + letters.as_str())
}

/// The name of an input, as printed in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName(PathBuf);

impl SourceName {
    /// Returns the name of the input at this path.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_stdin(&self.0) {
            return f.write_str("(standard input)");
        }
        // Control characters in a name would corrupt the line or the terminal.
        let name = self.0.to_string_lossy();
        match name.is_empty() || name.chars().any(|c| c.is_control() || c == '\u{fffd}') {
            true => write!(f, "{name:?}"),
            false => f.write_str(&name),
        }
    }
}

/// Returns whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads the whole input.
///
/// The content of standard input is cached: reading it again as the same kind returns it again.
///
/// # Errors
///
/// If the input cannot be read, is a directory or device, or exceeds the limit of its kind.
pub fn read(path: &Path, kind: InputKind) -> Result<Vec<u8>, InputError> {
    if !is_stdin(path) {
        return drain(open(path, kind)?);
    }
    let mut stdin = STDIN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(read) = stdin.as_ref() {
        return match &read.content {
            Some(content) if read.kind == kind => Ok(content.to_vec()),
            _ => Err(InputError::StdinTaken { kind, first: read.kind }),
        };
    }
    *stdin = Some(ReadStdin { kind, content: None });
    let content: Arc<[u8]> = drain(of_stdin(kind)?)?.into();
    *stdin = Some(ReadStdin { kind, content: Some(Arc::clone(&content)) });
    Ok(content.to_vec())
}

/// Reads the whole input as text.
///
/// # Errors
///
/// Those of [`read`], and if the content is not UTF-8.
pub fn read_text(path: &Path, kind: InputKind) -> Result<String, InputError> {
    String::from_utf8(read(path, kind)?)
        .map_err(|_| InputError::NotText { kind, source_name: SourceName::new(path) })
}

/// Opens an input that is too large for memory, or that is read as it arrives.
///
/// # Errors
///
/// If it cannot be opened or is a directory or device, or if standard input was already used.
pub fn open(path: &Path, kind: InputKind) -> Result<Input, InputError> {
    if is_stdin(path) {
        let mut stdin = STDIN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = stdin.as_ref() {
            return Err(InputError::StdinTaken { kind, first: read.kind });
        }
        *stdin = Some(ReadStdin { kind, content: None });
        return of_stdin(kind);
    }
    let failed = |reason| InputError::Io { kind, source_name: SourceName::new(path), reason };
    // Check before opening as well: opening a device may have side effects.
    refuse(path, kind, &path.metadata().map_err(failed)?, false)?;
    let file = File::open(path).map_err(failed)?;
    let status = file.metadata().map_err(failed)?;
    refuse(path, kind, &status, false)?;
    Input::of(path, kind, file, &status)
}

struct ReadStdin {
    kind: InputKind,
    /// The cached content; `None` if standard input was opened, not read as a whole.
    content: Option<Arc<[u8]>>,
}

static STDIN: Mutex<Option<ReadStdin>> = Mutex::new(None);

fn of_stdin(kind: InputKind) -> Result<Input, InputError> {
    let path = Path::new("-");
    let failed = |reason| InputError::Io { kind, source_name: SourceName::new(path), reason };
    let stdin = io::stdin();
    let terminal = stdin.is_terminal();
    let file = File::from(stdin.as_fd().try_clone_to_owned().map_err(failed)?);
    let status = file.metadata().map_err(failed)?;
    refuse(path, kind, &status, terminal)?;
    Input::of(path, kind, file, &status)
}

/// Rejects everything but regular files and pipes; `/dev/null` counts as an empty file.
fn refuse(
    path: &Path,
    kind: InputKind,
    status: &Metadata,
    terminal: bool,
) -> Result<(), InputError> {
    let sort = status.file_type();
    let found = match () {
        () if sort.is_file() || sort.is_fifo() || terminal => return Ok(()),
        () if sort.is_char_device() && status.rdev() == NULL_DEVICE_NUMBER => return Ok(()),
        () if sort.is_dir() => "a directory",
        () if sort.is_block_device() || sort.is_char_device() => "a device",
        // inetd and some shells use sockets as standard input.
        () if is_stdin(path) => return Ok(()),
        () => "a socket",
    };
    Err(InputError::NoFile { kind, source_name: SourceName::new(path), found })
}

/// The device number of `/dev/null` (Documentation/admin-guide/devices.txt).
const NULL_DEVICE_NUMBER: u64 = (1 << 8) | 3;

fn drain(mut input: Input) -> Result<Vec<u8>, InputError> {
    let mut content = Vec::new();
    let most = input.left.saturating_add(1);
    match fill(&mut input, &mut content, most) {
        Ok(()) => Ok(content),
        Err(reason) => Err(input.error(reason)),
    }
}

/// Reads until `content` has `most` bytes or the input ends. Never reserves more than `most`.
///
/// # Errors
///
/// If reading fails or memory is insufficient.
pub fn fill(mut from: impl Read, content: &mut Vec<u8>, most: u64) -> io::Result<()> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    while content.len() < most {
        if content.len() == content.capacity() {
            let larger = content.len().saturating_mul(2).max(1 << 16).min(most);
            content
                .try_reserve_exact(larger - content.len())
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        let room = content.capacity().min(most) - content.len();
        if (&mut from).take(room as u64).read_to_end(content)? < room {
            break;
        }
    }
    Ok(())
}

/// An open input. Reading fails beyond the limit of its kind.
#[derive(Debug)]
pub struct Input {
    file: File,
    kind: InputKind,
    path: PathBuf,
    left: u64,
    exceeded: bool,
}

impl Input {
    fn of(path: &Path, kind: InputKind, file: File, status: &Metadata) -> Result<Self, InputError> {
        let path = path.to_owned();
        if status.is_file() && status.len() > kind.limit.get() {
            return Err(InputError::TooLarge { kind, source_name: SourceName::new(&path) });
        }
        Ok(Self { file, kind, path, left: kind.limit.get(), exceeded: false })
    }

    /// Returns whether the limit was exceeded.
    pub fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    pub fn error(&self, reason: io::Error) -> InputError {
        let (kind, source_name) = (self.kind, SourceName::new(&self.path));
        match reason.kind() {
            io::ErrorKind::FileTooLarge => InputError::TooLarge { kind, source_name },
            _ => InputError::Io { kind, source_name, reason },
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        // Allow one extra byte to detect excess: an input may end exactly at its limit.
        let most = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let got = self.file.read(&mut buffer[..most])?;
        match self.left.checked_sub(got as u64) {
            Some(left) => self.left = left,
            None => {
                self.exceeded = true;
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const SMALL: InputKind = InputKind::new("note", "notes", Bytes::from_kib(1));

    fn why(path: &Path) -> String {
        read(path, SMALL).unwrap_err().to_string()
    }

    #[test]
    fn an_input_may_be_as_large_as_its_limit_and_no_larger() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[b'x'; 1024]).unwrap();
        assert_eq!(read(file.path(), SMALL).unwrap().len(), 1024);
        file.write_all(b"x").unwrap();
        let path = file.path().display();
        let said = format!("{path} is larger than 1 KiB, which is the limit for notes");
        assert_eq!(why(file.path()), said);
        // Simulate an unknown size, as for a pipe.
        let mut input = open(file.path(), InputKind::TRACE).unwrap();
        input.left = 1000;
        let reason = input.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(matches!(input.error(reason), InputError::TooLarge { .. }));
    }

    #[test]
    fn a_pipe_without_end_stops_at_the_limit() {
        let (reader, mut writer) = io::pipe().unwrap();
        let endless = std::thread::spawn(move || while writer.write_all(&[0; 4096]).is_ok() {});
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert!(why(Path::new(&path)).ends_with("1 KiB, which is the limit for notes"));
        drop(reader);
        endless.join().unwrap();
    }

    #[test]
    fn devices_directories_and_sockets_are_refused_but_not_dev_null() {
        assert_eq!(why(Path::new("/dev/zero")), "cannot read the note /dev/zero: it is a device");
        assert_eq!(why(Path::new("/")), "cannot read the note /: it is a directory");
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(why(&socket).ends_with("it is a socket"));
        assert_eq!(read(Path::new("/dev/null"), SMALL).unwrap(), b"");
        assert!(why(Path::new("/no/such")).starts_with("cannot read the note /no/such: no such"));
        assert!(why(Path::new("/no\nsuch")).starts_with("cannot read the note \"/no\\nsuch\""));
    }

    #[test]
    fn files_without_a_size_are_read_and_text_is_text() {
        assert!(!read(Path::new("/proc/self/stat"), SMALL).unwrap().is_empty());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0xff]).unwrap();
        let error = read_text(file.path(), SMALL).unwrap_err();
        assert!(error.to_string().ends_with("it is not text (UTF-8)"), "{error}");
    }
}
