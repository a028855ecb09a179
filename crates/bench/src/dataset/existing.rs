//! An existing file or block device, which is only read.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use units::Bytes;
use workload::Workload;

use super::DataFile;
use crate::BenchError;

/// Parts start at multiples of this, so that pages of every size can be mapped and two readers
/// never share a block of an array.
const PART_ALIGNMENT: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Existing {
    path: PathBuf,
    size: Bytes,
    dense: bool,
}

impl Existing {
    pub(crate) fn open(path: &Path) -> Result<Self, BenchError> {
        // Checked before opening, because opening a pipe would block.
        let metadata = std::fs::metadata(path).map_err(BenchError::io("look at", path))?;
        let device = metadata.file_type().is_block_device();
        if !device && !metadata.is_file() {
            return Err(BenchError::NotReadable { path: path.to_owned() });
        }
        let mut file = File::open(path).map_err(BenchError::io("open", path))?;
        let size = file.seek(SeekFrom::End(0)).map_err(BenchError::io("find the end of", path))?;
        if size == 0 {
            return Err(BenchError::Empty { path: path.to_owned() });
        }
        // st_blocks counts sectors of 512 bytes; a device has none.
        let dense = device || metadata.blocks() * 512 >= size;
        Ok(Self { path: path.to_owned(), size: Bytes::new(size), dense })
    }

    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    pub(crate) fn whole(&self) -> DataFile {
        DataFile { path: self.path.clone(), start: Bytes::ZERO, length: self.size }
    }

    pub(crate) fn is_dense(&self) -> bool {
        self.dense
    }

    /// Returns adjacent parts of these sizes, for traces.
    pub(crate) fn parts_of_sizes(&self, sizes: &[Bytes]) -> Result<Vec<DataFile>, BenchError> {
        let mut start = Bytes::ZERO;
        let mut parts = Vec::with_capacity(sizes.len());
        for length in sizes {
            parts.push(DataFile { path: self.path.clone(), start, length: *length });
            start = Bytes::new(start.get().saturating_add(length.get()));
        }
        if start > self.size {
            let (path, size) = (self.path.clone(), self.size);
            return Err(BenchError::TooSmall { path, size, needed: start });
        }
        Ok(parts)
    }

    /// Returns one part per file of the workload, of the requested size or as large as possible.
    pub(crate) fn parts(&self, workload: &Workload) -> Result<Vec<DataFile>, BenchError> {
        let parts = u64::from(workload.files());
        let share = self.size.get() / parts;
        // Even in a file that is too small for aligned parts, each reader gets whole pages.
        let page = sys::page_size().bytes().get();
        let alignment = if share >= PART_ALIGNMENT { PART_ALIGNMENT } else { page };
        let whole = share - share % alignment;
        // A single part may include the unaligned end.
        let longest = if parts == 1 { share } else { whole };
        let length = workload.file_size.map_or(longest, |size| size.get().min(longest));
        if length < workload.block.get() {
            return Err(BenchError::TooSmall {
                path: self.path.clone(),
                size: self.size,
                needed: Bytes::new(workload.block.get().saturating_mul(parts)),
            });
        }
        let part = |index| DataFile {
            path: self.path.clone(),
            start: Bytes::new(index * whole),
            length: Bytes::new(length),
        };
        Ok((0..parts).map(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(size: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; size]).unwrap();
        file
    }

    #[test]
    fn readers_get_parts_that_do_not_overlap() {
        let file = file((10 << 20) + 77);
        let existing = Existing::open(file.path()).unwrap();
        let workload = Workload { readers: 3, ..Workload::named("seq-1").unwrap() };
        let parts = existing.parts(&workload).unwrap();
        assert_eq!(parts.len(), 3);
        for (index, part) in (0..).zip(&parts) {
            assert_eq!(part.start, Bytes::from_mib(3 * index));
            assert_eq!(part.length, Bytes::from_mib(3));
        }
        let whole = existing.parts(&Workload::named("seq-1").unwrap()).unwrap();
        assert_eq!(whole[0].length, Bytes::new((10 << 20) + 77));
    }

    #[test]
    fn a_workload_may_ask_for_less() {
        let file = file(8 << 20);
        let existing = Existing::open(file.path()).unwrap();
        let smaller = Workload {
            file_size: Some(Bytes::from_mib(1)),
            readers: 2,
            ..Workload::named("seq-1").unwrap()
        };
        let parts = existing.parts(&smaller).unwrap();
        assert_eq!((parts[1].start, parts[1].length), (Bytes::from_mib(4), Bytes::from_mib(1)));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let message = |path: &Path| Existing::open(path).unwrap_err().to_string();
        assert!(message(Path::new("/dev/null")).contains("neither a file nor a block device"));
        assert!(message(Path::new("/no/such/file")).contains("/no/such/file"));
        assert!(message(file(0).path()).contains("empty"));
        let small = file(20_000);
        let existing = Existing::open(small.path()).unwrap();
        let problem = existing.parts(&Workload::named("seq-8").unwrap()).unwrap_err();
        assert!(matches!(problem, BenchError::TooSmall { .. }), "{problem}");
    }

    #[test]
    fn holes_are_noticed() {
        let sparse = file(10);
        sparse.as_file().set_len(1 << 20).unwrap();
        assert!(!Existing::open(sparse.path()).unwrap().is_dense());
    }
}
