//! Traces of declared workloads.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sim::SimError;
use trace::{
    ReadOptions, Trace, TraceFileError, TraceRecord, TraceRecordKind, TraceThread, TraceWriter,
};
use units::{Bytes, Nanos};
use workload::{Accesses, Sharing, TraceOpenFile, Workload};

use crate::error::BatchError;
use crate::loaded::LoadedTrace;

/// The first `reads` reads of a declared workload, without times. The readers take turns.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadReads<'a> {
    /// A name of the standard suite, or a declaration in TOML.
    pub declaration: &'a str,
    /// Size of the files if the workload declares none.
    pub file_size: Bytes,
    pub reads: u64,
    pub seed: u64,
}

impl WorkloadReads<'_> {
    /// Returns the trace, in memory.
    ///
    /// # Errors
    ///
    /// If the declaration is invalid, or its files are too small.
    pub fn trace(&self) -> Result<LoadedTrace, BatchError> {
        let workload = self.workload()?;
        let mut bytes = Vec::new();
        let write = |source| BatchError::Write { path: PathBuf::from(&workload.name), source };
        self.write(&workload, &mut bytes)?.map_err(write)?;
        let path = PathBuf::from(&workload.name);
        let broken = |error| TraceFileError::Broken { path, error };
        let trace = Trace::decode_blocks(&bytes).map_err(broken)?;
        Ok(LoadedTrace::new(workload.name, trace))
    }

    /// Writes the trace into a file, record by record, and opens it.
    ///
    /// # Errors
    ///
    /// As [`Self::trace`], or if the file cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<LoadedTrace, BatchError> {
        let workload = self.workload()?;
        let failed = |source| BatchError::Write { path: path.to_owned(), source };
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        let written = self.write(&workload, &mut out)?;
        written.and_then(|()| out.flush()).map_err(failed)?;
        LoadedTrace::open(path, &ReadOptions::default())
    }

    fn workload(&self) -> Result<Workload, BatchError> {
        let workload = match self.declaration.contains('=') {
            true => Workload::from_toml(self.declaration),
            false => Workload::named(self.declaration),
        };
        Ok(workload.map_err(SimError::from)?)
    }

    /// Writes the trace. The outer error is an invalid workload, the inner one a failed write.
    fn write(&self, workload: &Workload, out: impl Write) -> Result<io::Result<()>, BatchError> {
        let size = workload.file_size.unwrap_or(self.file_size);
        let sizes = vec![size; workload.files() as usize];
        let mut readers = Vec::new();
        for reader in 0..workload.readers {
            let own = files_of(workload, reader);
            let own: Vec<Bytes> = own.iter().map(|file| sizes[*file as usize]).collect();
            readers.push(workload.accesses(reader, &own, self.seed).map_err(SimError::from)?);
        }
        Ok(self.write_reads(workload, readers, out))
    }

    fn write_reads(
        &self,
        workload: &Workload,
        mut readers: Vec<Accesses>,
        out: impl Write,
    ) -> io::Result<()> {
        let mut writer = TraceWriter::new(out, false)?;
        for file in 0..workload.files() {
            writer.file(&format!("{}-{file}", workload.name), Bytes::ZERO);
        }
        let mut open_files: Vec<Vec<u32>> = Vec::new();
        for reader in 0..workload.readers {
            let thread = u64::from(reader);
            writer.thread(TraceThread { thread, process: thread });
            if reader > 0 && workload.sharing == Sharing::SharedOpenFile {
                open_files.push(open_files[0].clone());
                continue;
            }
            let (access, hint) = (workload.access, workload.hint);
            let own = files_of(workload, reader).into_iter();
            let opens = own.map(|file| writer.open_file(TraceOpenFile { file, access, hint }, 0));
            open_files.push(opens.collect::<io::Result<_>>()?);
        }
        let (mut left, mut is_over) = (self.reads, false);
        while !is_over {
            is_over = true;
            for ((process, accesses), opens) in (0..).zip(&mut readers).zip(&open_files) {
                let Some(access) = accesses.next().filter(|_| left > 0) else { continue };
                (left, is_over) = (left - 1, false);
                writer.push(TraceRecord {
                    took: Nanos::ZERO,
                    time: Nanos::ZERO,
                    open_file: opens[access.file as usize],
                    process,
                    kind: TraceRecordKind::Read,
                    offset: access.offset,
                    length: access.length,
                })?;
            }
        }
        writer.finish().map(drop)
    }
}

fn files_of(workload: &Workload, reader: u32) -> Vec<u32> {
    (0..workload.files_per_reader).map(|file| workload.file_of(reader, file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimCell;

    const SIZE: Bytes = Bytes::from_mib(1);

    fn of_workload(declaration: &str, reads: u64, seed: u64) -> Result<LoadedTrace, BatchError> {
        WorkloadReads { declaration, file_size: SIZE, reads, seed }.trace()
    }

    #[test]
    fn readers_take_turns_and_have_their_own_files() {
        let made = of_workload("seq-8", 24, 0).unwrap();
        assert_eq!(made.content().files().len(), 8);
        let chunk = made.content().chunk(0).unwrap().unwrap();
        let places: Vec<(u32, u64)> =
            chunk.iter().map(|read| (read.process, read.offset.get())).collect();
        let expected = (0..3).flat_map(|block| (0..8).map(move |reader| (reader, block * 4096)));
        assert_eq!(places, expected.collect::<Vec<_>>());
        let all = of_workload("seq-8", u64::MAX, 0).unwrap();
        assert_eq!(all.facts().unwrap().requested, SIZE * 8);
        assert_eq!(all.simulate(&SimCell::default()).unwrap().useful(), SIZE * 8);
    }

    #[test]
    fn declarations_may_share_an_open_file_and_give_sizes() {
        let text = "name = \"two\"\npattern = \"uniform\"\nblock = \"8K\"\nreaders = 2\n\
                    sharing = \"shared-open-file\"\nfile_size = \"64K\"\naccess = \"mmap\"\n";
        let made = of_workload(text, 100, 3).unwrap();
        assert_eq!((made.content().files().len(), made.content().open_files().len()), (1, 1));
        assert_eq!(made.facts().unwrap().requested, Bytes::from_kib(64));
        let other = of_workload(text, 100, 4).unwrap();
        assert_ne!(made.facts().unwrap().digest, other.facts().unwrap().digest);
    }

    #[test]
    fn wrong_declarations_are_refused() {
        for (text, words) in [
            ("seq-9", "seq-8"),
            ("pattern = 3", "text in quotes"),
            ("name = \"x\"\npattern = \"stride\"\nblock = \"4K\"", "step"),
        ] {
            let error = of_workload(text, 9, 0).expect_err("an error");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn a_file_has_what_memory_has() {
        let dir = tempfile::tempdir().unwrap();
        let reads =
            WorkloadReads { declaration: "mixed", file_size: SIZE * 64, reads: 40_000, seed: 5 };
        let written = reads.write_file(&dir.path().join("mixed.frtrace")).unwrap();
        assert_eq!(written.facts().unwrap(), reads.trace().unwrap().facts().unwrap());
        let error = reads.write_file(Path::new("/no/such/folder")).unwrap_err().to_string();
        assert!(error.contains("cannot write /no/such/folder"), "{error}");
    }
}
