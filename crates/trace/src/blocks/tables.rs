//! Tables of files, open files and threads, in the order of their first use.

use units::Bytes;
use workload::{AccessMethod, Hint, TraceOpenFile};

use crate::builder::FILES_MAX;
use crate::error::TraceError;
use crate::model::{TraceFile, TraceThread};
use crate::varint::{ByteReader, put};

const FILE_ENTRY: u8 = 0;
const OPEN_FILE_ENTRY: u8 = 1;
const THREAD_ENTRY: u8 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct TraceTables {
    pub(super) files: Vec<TraceFile>,
    pub(super) open_files: Vec<TraceOpenFile>,
    pub(super) open_flags: Vec<u32>,
    pub(super) threads: Vec<TraceThread>,
}

pub(super) fn put_file(out: &mut Vec<u8>, name: &str) {
    out.push(FILE_ENTRY);
    put(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

pub(super) fn put_open_file(out: &mut Vec<u8>, open: TraceOpenFile, flags: u32) {
    out.push(OPEN_FILE_ENTRY);
    put(out, u64::from(open.file));
    let hint = match open.hint {
        Hint::None => 0,
        Hint::Sequential => 2,
        Hint::Random => 4,
    };
    out.push(u8::from(open.access == AccessMethod::Mmap) | hint);
    put(out, u64::from(flags));
}

/// Decodes how a file was opened.
pub(crate) fn open_file(file: u32, flags: u8) -> TraceOpenFile {
    let access = if flags & 1 == 1 { AccessMethod::Mmap } else { AccessMethod::Read };
    let hint = match flags & 6 {
        2 => Hint::Sequential,
        4 => Hint::Random,
        _ => Hint::None,
    };
    TraceOpenFile { file, access, hint }
}

pub(super) fn put_thread(out: &mut Vec<u8>, TraceThread { thread, process }: TraceThread) {
    out.push(THREAD_ENTRY);
    put(out, thread);
    put(out, process.wrapping_sub(thread));
}

impl TraceTables {
    /// Adds the entries of a block.
    pub(super) fn extend(&mut self, payload: &[u8], origin: u64) -> Result<(), TraceError> {
        let mut bytes = ByteReader::new(payload, origin);
        while !bytes.is_at_end() {
            if self.open_files.len().max(self.files.len()) > FILES_MAX {
                return Err(bytes.wrong("it has more than 1,048,576 open files"));
            }
            match bytes.byte()? {
                FILE_ENTRY => {
                    let length = bytes.count()?;
                    let name = String::from_utf8_lossy(bytes.take(length)?).into_owned();
                    self.files.push(TraceFile { name, size: Bytes::ZERO });
                }
                OPEN_FILE_ENTRY => self.open_file(&mut bytes)?,
                THREAD_ENTRY => {
                    let thread = bytes.number()?;
                    let process = thread.wrapping_add(bytes.number()?);
                    self.threads.push(TraceThread { thread, process });
                }
                _ => return Err(bytes.wrong("an entry is of a sort that this version lacks")),
            }
        }
        Ok(())
    }

    fn open_file(&mut self, bytes: &mut ByteReader<'_>) -> Result<(), TraceError> {
        let file = bytes.small()?;
        if file as usize >= self.files.len() {
            return Err(bytes.wrong("an open file is of a file that is not there"));
        }
        self.open_files.push(open_file(file, bytes.byte()?));
        self.open_flags.push(bytes.small()?);
        Ok(())
    }
}
