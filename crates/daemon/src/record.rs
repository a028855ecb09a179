//! The records of `watch`, and their file format: one line of JSON for each record.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write};

use host::{BlockStat, DevNo};
use observe::{OpenFile, OpenFileId, ProbeEvent, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// The format version that this foreread writes and reads.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    pub version: u32,
    /// The size of a memory page, in bytes.
    pub page_bytes: u64,
    /// The signals of the probes; empty without probes.
    pub signals: Vec<Signal>,
}

/// The state of open files and devices at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub at: Nanos,
    /// Open files; empty if they cannot be listed.
    pub files: Vec<OpenFile>,
    /// The paths of these files, as far as they are known.
    pub paths: BTreeMap<OpenFileId, String>,
    pub devices: BTreeMap<DevNo, BlockStat>,
    pub names: BTreeMap<DevNo, String>,
    /// Number of events lost so far.
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

/// The maximum length of a line: a snapshot of several hundred thousand open files.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// Splits an input into lines, whose lengths are limited. Stops after the first error.
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

/// Reads records one by one. An invalid line is an error with its line number. An invalid last line
/// counts as cut short and is ignored, unless it is the only one.
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
