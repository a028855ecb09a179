//! Traces of declared workloads.

use std::path::PathBuf;

use sim::SimError;
use trace::{Trace, TraceBuilder, TraceFileError, TraceLocation, TraceRecord, TraceRecordKind};
use units::{Bytes, Nanos};
use workload::{Sharing, TraceOpenFile, Workload};

use crate::error::BatchError;
use crate::loaded::LoadedTrace;

impl LoadedTrace {
    /// The first `reads` reads of a declared workload, without times. The readers take turns.
    /// `declaration` is a name of the standard suite, or a declaration in TOML; files without a
    /// declared size have `file_size`.
    ///
    /// # Errors
    ///
    /// If the declaration is invalid, or its files are too small.
    pub fn of_workload(
        declaration: &str,
        file_size: Bytes,
        reads: usize,
        seed: u64,
    ) -> Result<Self, BatchError> {
        let workload = match declaration.contains('=') {
            true => Workload::from_toml(declaration),
            false => Workload::named(declaration),
        };
        let workload = workload.map_err(SimError::from)?;
        let sizes = vec![workload.file_size.unwrap_or(file_size); workload.files() as usize];
        let made = first_reads(&workload, &sizes, reads, seed)?;
        Ok(Self::new(workload.name, made))
    }
}

fn first_reads(
    workload: &Workload,
    sizes: &[Bytes],
    reads: usize,
    seed: u64,
) -> Result<Trace, BatchError> {
    let mut builder = TraceBuilder::new(false);
    for file in 0..sizes.len() {
        builder.file(&format!("{}-{file}", workload.name));
    }
    let mut readers = Vec::new();
    let mut open_files: Vec<Vec<u32>> = Vec::new();
    for reader in 0..workload.readers {
        let own: Vec<u32> =
            (0..workload.files_per_reader).map(|file| workload.file_of(reader, file)).collect();
        let own_sizes: Vec<Bytes> = own.iter().map(|file| sizes[*file as usize]).collect();
        let accesses = workload.accesses(reader, &own_sizes, seed).map_err(SimError::from)?;
        readers.push((builder.process(u64::from(reader)), accesses));
        if reader > 0 && workload.sharing == Sharing::SharedOpenFile {
            open_files.push(open_files[0].clone());
            continue;
        }
        let open = |file: u32| TraceOpenFile { file, access: workload.access, hint: workload.hint };
        open_files.push(own.iter().map(|file| builder.open_with(open(*file), 0)).collect());
    }
    let broken = |error| TraceFileError::Broken { path: PathBuf::from(&workload.name), error };
    let mut is_over = false;
    while !is_over && builder.len() < reads {
        is_over = true;
        for ((process, accesses), opens) in readers.iter_mut().zip(&open_files) {
            let Some(access) = accesses.next().filter(|_| builder.len() < reads) else { continue };
            is_over = false;
            let record = TraceRecord {
                took: Nanos::ZERO,
                time: Nanos::ZERO,
                open_file: opens[access.file as usize],
                process: *process,
                kind: TraceRecordKind::Read,
                offset: access.offset,
                length: access.length,
            };
            builder.push(TraceLocation::Whole, record).map_err(broken)?;
        }
    }
    Ok(builder.finish().map_err(broken)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimCell;

    const SIZE: Bytes = Bytes::from_mib(1);

    #[test]
    fn readers_take_turns_and_have_their_own_files() {
        let made = LoadedTrace::of_workload("seq-8", SIZE, 24, 0).unwrap();
        assert_eq!((made.trace.files().len(), made.trace.processes().len()), (8, 8));
        let places: Vec<(u32, u64)> =
            made.trace.reads().map(|read| (read.process, read.offset.get())).collect();
        let expected = (0..3).flat_map(|block| (0..8).map(move |reader| (reader, block * 4096)));
        assert_eq!(places, expected.collect::<Vec<_>>());
        let all = LoadedTrace::of_workload("seq-8", SIZE, usize::MAX, 0).unwrap();
        assert_eq!(all.requested().0, SIZE * 8);
        assert_eq!(all.simulate(&SimCell::default()).unwrap().useful(), SIZE * 8);
    }

    #[test]
    fn declarations_may_share_an_open_file_and_give_sizes() {
        let text = "name = \"two\"\npattern = \"uniform\"\nblock = \"8K\"\nreaders = 2\n\
                    sharing = \"shared-open-file\"\nfile_size = \"64K\"\naccess = \"mmap\"\n";
        let made = LoadedTrace::of_workload(text, SIZE, 100, 3).unwrap();
        assert_eq!((made.trace.files().len(), made.trace.open_files().len()), (1, 1));
        assert_eq!(made.requested().0, Bytes::from_kib(64));
        let other = LoadedTrace::of_workload(text, SIZE, 100, 4).unwrap();
        assert_ne!(made.digest, other.digest);
    }

    #[test]
    fn wrong_declarations_are_refused() {
        for (text, words) in [
            ("seq-9", "seq-8"),
            ("pattern = 3", "text in quotes"),
            ("name = \"x\"\npattern = \"stride\"\nblock = \"4K\"", "step"),
        ] {
            let error = LoadedTrace::of_workload(text, SIZE, 9, 0).expect_err("an error");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
