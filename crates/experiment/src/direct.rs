//! Reads files and devices with `O_DIRECT`, to measure the storage itself.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, SeekFrom, seek};
use units::Bytes;

use crate::ExperimentError;

/// Address, offset and length of a direct read must be multiples of the device's block size; this
/// is a multiple of every block size in use.
pub(crate) const ALIGNMENT_BYTES: u64 = 4096;
#[derive(Debug)]
pub(crate) struct Direct {
    path: PathBuf,
    file: File,
}

impl Direct {
    pub(crate) fn open(path: &Path) -> Result<Self, ExperimentError> {
        let flags = OFlags::DIRECT.bits().cast_signed();
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(source) if source.kind() == std::io::ErrorKind::InvalidInput => {
                let block = Bytes::new(ALIGNMENT_BYTES);
                Err(ExperimentError::NotDirect { path: path.to_owned(), block, source })
            }
            Err(source) => Err(ExperimentError::io("open", path)(source)),
        }
    }
    pub(crate) fn size(&self) -> Result<Bytes, ExperimentError> {
        seek(&self.file, SeekFrom::End(0))
            .map(Bytes::new)
            .map_err(|errno| ExperimentError::io("find the size of", &self.path)(errno.into()))
    }

    pub(crate) fn read(&self, at: Bytes, buffer: &mut [u8]) -> Result<(), ExperimentError> {
        self.file.read_exact_at(buffer, at.get()).map_err(|source| {
            if source.kind() == std::io::ErrorKind::InvalidInput {
                let block = Bytes::new(buffer.len() as u64);
                return ExperimentError::NotDirect { path: self.path.clone(), block, source };
            }
            let path = self.path.clone();
            bench::BenchError::Read { path, offset: at, source }.into()
        })
    }
}

/// A buffer whose start is aligned to [`ALIGNMENT_BYTES`].
#[derive(Debug)]
pub(crate) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(crate) fn new(length: Bytes) -> Self {
        let length = usize::try_from(length.get()).unwrap_or(0);
        let memory = vec![0; length + ALIGNMENT_BYTES as usize];
        let start =
            memory.as_ptr().align_offset(ALIGNMENT_BYTES as usize).min(ALIGNMENT_BYTES as usize);
        Self { memory, start, length }
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned() {
        for length in [1, 4096, 128 << 10] {
            let mut buffer = Aligned::new(Bytes::new(length));
            assert_eq!(buffer.as_mut().len() as u64, length);
            assert_eq!(buffer.as_mut().as_ptr() as u64 % ALIGNMENT_BYTES, 0);
        }
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let error = Direct::open(Path::new("/no/such/disk")).unwrap_err();
        assert!(error.to_string().contains("/no/such/disk"), "{error}");
    }
}
