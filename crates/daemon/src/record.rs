//! What was seen, in the form in which it is kept in a file: one line of JSON for each record.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write};

use host::{BlockStat, DevNo};
use observe::{OpenFile, OpenFileId, ProbeEvent, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// The form of record that this foreread writes and reads.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    pub version: u32,
    /// The size of a memory page.
    pub page_bytes: u64,
    /// The probes that were at work.
    pub signals: Vec<Signal>,
}

/// What there was at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub at: Nanos,
    /// What is open, where it may be seen.
    pub files: Vec<OpenFile>,
    /// The paths of these, as far as they are known.
    pub paths: BTreeMap<OpenFileId, String>,
    pub devices: BTreeMap<DevNo, BlockStat>,
    pub names: BTreeMap<DevNo, String>,
    /// Events that were lost so far.
    pub lost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Begin(Begin),
    Event(ProbeEvent),
    Snapshot(Snapshot),
}

/// Writes a record as a line.
pub fn write_record(to: &mut dyn Write, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_string(record)?;
    line.push('\n');
    to.write_all(line.as_bytes())
}

/// The longest line: a snapshot of several hundred thousand open files.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// The lines of an input that may have no end, or no end of a line. Nothing follows an error.
fn lines(mut from: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut failed = false;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = match failed {
            true => Ok(0),
            false => (&mut from).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line),
        };
        let ends = line.pop_if(|last| *last == b'\n').is_some();
        let line = match read {
            Ok(0) => return None,
            Ok(read) if !ends && read as u64 > LINE_BYTES_MAX => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            read => read.map(|_| line),
        };
        failed = line.is_err();
        Some(line)
    })
}

/// Reads records one by one. A line that is none is an error that says which; a last line that was
/// cut short is not.
///
/// A line longer than [`LINE_BYTES_MAX`] is an error of the kind `FileTooLarge`.
pub fn read_records(from: impl BufRead) -> impl Iterator<Item = io::Result<Record>> {
    read_lines(from)
}

/// Reads lines of JSON, as [`read_records`] does.
pub(crate) fn read_lines<T: DeserializeOwned>(
    from: impl BufRead,
) -> impl Iterator<Item = io::Result<T>> {
    let mut lines = lines(from).enumerate().peekable();
    std::iter::from_fn(move || {
        let (number, line) = lines.next()?;
        let record = line.and_then(|line| {
            serde_json::from_slice(&line).map_err(|error| {
                let problem = format!("line {}: {error}", number + 1);
                io::Error::new(io::ErrorKind::InvalidData, problem)
            })
        });
        match record {
            Err(error) if error.kind() == io::ErrorKind::InvalidData && number > 0 => {
                lines.peek().is_some().then_some(Err(error))
            }
            record => Some(record),
        }
    })
}
