//! An open file that readers read with `pread(2)` or through a mapping.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;
use sys::mapping::{FileMapping, MappingAdvice};
use units::Bytes;
use workload::{AccessMethod, Hint, RangeAdvice};

use crate::BenchError;
use crate::dataset::DataFile;

/// Maximum number of retries of a read that fails for lack of memory, at intervals of 1 ms.
const OUT_OF_MEMORY_MOST: u32 = 30_000;

/// A part of a file, opened for a trial. All its readers share the open file, whose window is the
/// device's setting at the time of opening.
#[derive(Debug)]
pub(crate) struct DataSource {
    part: DataFile,
    file: File,
    mapping: Option<FileMapping>,
}

impl DataSource {
    pub(crate) fn open(
        part: &DataFile,
        access: AccessMethod,
        hint: Hint,
    ) -> Result<Self, BenchError> {
        let mut file = open(part).map_err(BenchError::io("open", &part.path))?;
        let size = file.seek(SeekFrom::End(0)).map_err(BenchError::io("seek in", &part.path))?;
        if size < (part.start + part.length).get() {
            let offset = Bytes::new(size);
            return Err(BenchError::Shrank { path: part.path.clone(), offset });
        }
        let mapping = match access {
            AccessMethod::Read => None,
            AccessMethod::Mmap => Some(
                FileMapping::new(file.as_fd(), part.start, part.length)
                    .map_err(BenchError::io("map", &part.path))?,
            ),
        };
        let source = Self { part: part.clone(), file, mapping };
        source.advise(hint).map_err(BenchError::io("advise on", &part.path))?;
        Ok(source)
    }

    /// Applies the hint to the file or the mapping. Without a hint it makes no system call: even
    /// "normal" would reset the window.
    fn advise(&self, hint: Hint) -> io::Result<()> {
        let (of_file, of_mapping) = match hint {
            Hint::None => return Ok(()),
            Hint::Sequential => (Advice::Sequential, MappingAdvice::Sequential),
            Hint::Random => (Advice::Random, MappingAdvice::Random),
        };
        match &self.mapping {
            Some(mapping) => mapping.advise(of_mapping),
            None => Ok(fadvise(&self.file, 0, None, of_file)?),
        }
    }

    /// Advises the kernel about a range as a recorded program did; length 0 means to the end. In a
    /// mapping, sequential and random advice covers all of it; normal and dontneed do nothing.
    pub(crate) fn advise_range(
        &self,
        advice: RangeAdvice,
        offset: Bytes,
        length: Bytes,
    ) -> Result<(), BenchError> {
        let done = match (&self.mapping, advice) {
            (Some(mapping), RangeAdvice::Sequential) => mapping.advise(MappingAdvice::Sequential),
            (Some(mapping), RangeAdvice::Random) => mapping.advise(MappingAdvice::Random),
            (Some(_), RangeAdvice::Normal | RangeAdvice::DontNeed) => Ok(()),
            _ => {
                let advice = match advice {
                    RangeAdvice::Normal => Advice::Normal,
                    RangeAdvice::Sequential => Advice::Sequential,
                    RangeAdvice::Random => Advice::Random,
                    RangeAdvice::WillNeed => Advice::WillNeed,
                    RangeAdvice::DontNeed => Advice::DontNeed,
                };
                let start = self.part.start + offset;
                fadvise(&self.file, start.get(), NonZeroU64::new(length.get()), advice)
                    .map_err(io::Error::from)
            }
        };
        done.map_err(BenchError::io("advise on", &self.part.path))
    }

    /// Reads at `offset` of this part until the buffer is full.
    #[inline]
    pub(crate) fn read(&self, offset: Bytes, buffer: &mut [u8]) -> Result<(), BenchError> {
        match &self.mapping {
            None => self.pread(offset, buffer),
            Some(mapping) => {
                mapping.copy_to(offset.get() as usize, buffer).map_err(|torn| self.torn(torn.at))
            }
        }
    }

    #[inline]
    fn pread(&self, offset: Bytes, buffer: &mut [u8]) -> Result<(), BenchError> {
        let place = self.part.start + offset;
        match rustix::io::pread(&self.file, &mut *buffer, place.get()) {
            Ok(read) if read == buffer.len() => Ok(()),
            Ok(read) => self.pread_rest(place, buffer, read),
            Err(Errno::INTR | Errno::NOMEM) => self.pread_rest(place, buffer, 0),
            Err(errno) => Err(self.read_error(place, errno.into())),
        }
    }

    /// Continues after a short read: after a signal, at the end of the file, before a bad block.
    #[cold]
    fn pread_rest(
        &self,
        place: Bytes,
        buffer: &mut [u8],
        mut done: usize,
    ) -> Result<(), BenchError> {
        let mut patience = OUT_OF_MEMORY_MOST;
        while done < buffer.len() {
            let at = place + Bytes::new(done as u64);
            match rustix::io::pread(&self.file, &mut buffer[done..], at.get()) {
                Ok(0) => {
                    return Err(BenchError::Shrank { path: self.part.path.clone(), offset: at });
                }
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                // Reads in flight may use all of a limited memory until some complete.
                Err(Errno::NOMEM) if patience > 0 => {
                    patience -= 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(errno) => return Err(self.read_error(at, errno.into())),
            }
        }
        Ok(())
    }

    /// Returns the error for a page that could not be mapped: the file is shorter, or unreadable.
    #[cold]
    fn torn(&self, at: Bytes) -> BenchError {
        let place = self.part.start + at;
        match (&self.file).seek(SeekFrom::End(0)) {
            Ok(size) if size <= place.get() => {
                BenchError::Shrank { path: self.part.path.clone(), offset: Bytes::new(size) }
            }
            Ok(_) => self.read_error(place, Errno::IO.into()),
            Err(error) => self.read_error(place, error),
        }
    }

    #[cold]
    fn read_error(&self, offset: Bytes, source: io::Error) -> BenchError {
        BenchError::Read { path: self.part.path.clone(), offset, source }
    }
}

/// Opens a file without updating its access time, if permitted: the update would be a write.
fn open(part: &DataFile) -> io::Result<File> {
    let quiet =
        OpenOptions::new().read(true).custom_flags(OFlags::NOATIME.bits() as i32).open(&part.path);
    match quiet {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&part.path),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const HALF: Bytes = Bytes::from_kib(64);

    fn written() -> (tempfile::NamedTempFile, DataFile) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; HALF.get() as usize]).unwrap();
        file.write_all(&vec![2; HALF.get() as usize]).unwrap();
        let part = DataFile { path: file.path().to_owned(), start: HALF, length: HALF };
        (file, part)
    }

    #[test]
    fn a_part_is_read_from_its_start_on() {
        let (_file, part) = written();
        for access in [AccessMethod::Read, AccessMethod::Mmap] {
            for hint in [Hint::None, Hint::Sequential, Hint::Random] {
                let source = DataSource::open(&part, access, hint).unwrap();
                let mut buffer = [0; 100];
                source.read(Bytes::new(65_000), &mut buffer).unwrap();
                assert_eq!(buffer, [2; 100]);
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_either_way() {
        for access in [AccessMethod::Read, AccessMethod::Mmap] {
            let (file, part) = written();
            let source = DataSource::open(&part, access, Hint::None).unwrap();
            file.as_file().set_len(HALF.get() + 8192).unwrap();
            let mut buffer = [0; 4096];
            source.read(Bytes::new(4096), &mut buffer).unwrap();
            let problem = source.read(Bytes::new(12_288), &mut buffer).unwrap_err();
            assert!(matches!(problem, BenchError::Shrank { .. }), "{access:?}: {problem}");
            // A buffer that extends beyond the end is not filled.
            let problem = source.read(Bytes::new(6_000), &mut buffer).unwrap_err();
            let BenchError::Shrank { offset, .. } = problem else { panic!("{problem}") };
            assert_eq!(offset, HALF + Bytes::new(8192));
            // A file that is already too short cannot be opened.
            let problem = DataSource::open(&part, access, Hint::None).unwrap_err();
            assert!(matches!(problem, BenchError::Shrank { .. }), "{problem}");
        }
    }
}
