//! Recording files: one line of JSON for each entry, compressed with gzip.

use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::entry::SessionEntry;
use crate::record::read_lines;

/// Maximum size of a recording, so that a forgotten one does not fill a disk: enough for days of a
/// server under constant load.
const SESSION_BYTES_MAX: u64 = 1 << 30;
/// Number of steps that a killed process may lose: about one second.
const STEPS_PER_FLUSH: u32 = 10;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Counts the bytes written.
struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a recording.
pub struct SessionWriter {
    file: GzEncoder<Counted<Box<dyn Write>>>,
    steps: u32,
}

impl SessionWriter {
    pub fn new(to: Box<dyn Write>) -> Self {
        let to = Counted { to, bytes: 0 };
        Self { file: GzEncoder::new(to, Compression::fast()), steps: 0 }
    }

    /// Appends an entry.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or the recording has become too large (`FileTooLarge`).
    pub fn write(&mut self, entry: &SessionEntry) -> io::Result<()> {
        if self.file.get_ref().bytes > SESSION_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        serde_json::to_writer(&mut self.file, entry)?;
        self.file.write_all(b"\n")?;
        if matches!(entry, SessionEntry::Poll { .. }) {
            self.steps += 1;
            if self.steps.is_multiple_of(STEPS_PER_FLUSH) {
                self.file.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the end of the compressed data.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.file.finish()?.flush()
    }
}

/// Reads a recording entry by entry, compressed or not. A recording that was cut short ends there;
/// any other invalid line is an error with its line number (`InvalidData`).
///
/// # Errors
///
/// If nothing can be read.
pub fn read_session(
    from: impl Read + 'static,
) -> io::Result<impl Iterator<Item = io::Result<SessionEntry>>> {
    let mut from = BufReader::new(from);
    let is_compressed = from.fill_buf()?.starts_with(&GZIP_MAGIC);
    let from: Box<dyn Read> = match is_compressed {
        true => Box::new(UntilCut(MultiGzDecoder::new(from))),
        false => Box::new(from),
    };
    Ok(read_lines(BufReader::new(from)))
}

/// Treats the missing end of a compressed file, whose writer was killed, as its end.
struct UntilCut<R>(R);

impl<R: Read> Read for UntilCut<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}
