//! Creates the data files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::fs::{Advice, FallocateFlags, OFlags, fadvise, fallocate};
use rustix::io::Errno;
use units::Bytes;

use super::home::{Home, room_in};
use super::manifest::{FileSet, Manifest};
use super::{LayOutOptions, LayOutProgress};
use crate::error::{BenchError, write_error};

const WRITE_BYTES: u64 = 1 << 20;
/// Size of the pieces of interleaved files: file systems that allocate at write-back give
/// concurrent writers extents of about this size.
const INTERLEAVE_BYTES: u64 = 4 << 20;
/// Amount of data to write between two syncs and evictions, so that progress is accurate and memory
/// stays free.
const SYNC_INTERVAL_BYTES: u64 = 64 << 20;
/// Space that a file system needs besides the data: extents, a journal, its reserve.
const FILESYSTEM_OVERHEAD: Bytes = Bytes::from_mib(16);

/// Ensures that these sets of files exist in foreread's directory inside `dir`.
pub(crate) fn lay_out(
    dir: &Path,
    sets: &[FileSet],
    options: &LayOutOptions,
    progress: &mut dyn FnMut(LayOutProgress),
) -> Result<Home, BenchError> {
    let home = Home::find_or_make(dir).map_err(|problem| no_space(dir, need(sets), problem))?;
    let mut manifest = Manifest::read(home.path());
    manifest.sets.retain(|set| is_intact(&home, set) && sets.iter().any(|want| set.holds(want)));
    let missing: Vec<FileSet> = sets
        .iter()
        .copied()
        .filter(|want| !manifest.sets.iter().any(|set| set.holds(want)))
        .collect();
    if missing.is_empty() {
        progress(LayOutProgress { written: Bytes::ZERO, total: Bytes::ZERO });
        return Ok(home);
    }
    let result = fill(dir, &home, &mut manifest, &missing, options, progress);
    match result {
        Ok(()) => Ok(home),
        Err(problem) => {
            let problem = no_space(dir, need(&missing), problem);
            if let Err(problem) = home.remove() {
                tracing::warn!(%problem, "could not remove incomplete files");
            }
            Err(problem)
        }
    }
}

/// Returns the space that these sets of files need, including the file system's overhead.
fn need(sets: &[FileSet]) -> Bytes {
    let total: Bytes = sets.iter().map(FileSet::size).sum();
    total + Bytes::new(total.get() / 100) + FILESYSTEM_OVERHEAD
}

/// Converts I/O errors caused by lack of space to `NoSpace`: another process has used the space,
/// the overhead is larger than expected, a quota applies, or no inode is free.
fn no_space(dir: &Path, needed: Bytes, problem: BenchError) -> BenchError {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    match problem {
        BenchError::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded) => {
            let available = room_in(dir).unwrap_or_default();
            BenchError::NoSpace { path: dir.to_owned(), needed, available, source: Some(source) }
        }
        other => other,
    }
}

/// Returns whether all files of a set exist in full size and without holes.
fn is_intact(home: &Home, set: &FileSet) -> bool {
    let size = set.file_size.get();
    (0..set.count).all(|index| {
        let path = home.path().join(set.file_name(index));
        let metadata = std::fs::symlink_metadata(path);
        metadata.is_ok_and(|it| it.is_file() && it.len() == size && it.blocks() * 512 >= size)
    })
}

fn is_file_of(sets: &[FileSet], name: &str) -> bool {
    sets.iter().any(|set| (0..set.count).any(|index| set.file_name(index) == name))
}

fn fill(
    dir: &Path,
    home: &Home,
    manifest: &mut Manifest,
    missing: &[FileSet],
    options: &LayOutOptions,
    progress: &mut dyn FnMut(LayOutProgress),
) -> Result<(), BenchError> {
    // Unused files are deleted first, so that their space is available.
    manifest.write(home.path())?;
    home.remove_files(&|name| is_file_of(&manifest.sets, name))?;
    let total: Bytes = missing.iter().map(FileSet::size).sum();
    let (needed, available) = (need(missing), home.room()?);
    if needed > available {
        return Err(BenchError::NoSpace { path: dir.to_owned(), needed, available, source: None });
    }
    let mut writer = Writer { dir, options, progress, written: Bytes::ZERO, total };
    for set in missing {
        writer.write_set(home, set)?;
        home.sync()?;
        manifest.sets.push(*set);
        manifest.write(home.path())?;
    }
    Ok(())
}

struct Writer<'a> {
    dir: &'a Path,
    options: &'a LayOutOptions,
    progress: &'a mut dyn FnMut(LayOutProgress),
    written: Bytes,
    total: Bytes,
}

/// A file that is being written, and the generator of its content.
struct Target {
    file: File,
    content: Pcg64Mcg,
    at: u64,
    unsynced: u64,
}

impl Writer<'_> {
    fn write_set(&mut self, home: &Home, set: &FileSet) -> Result<(), BenchError> {
        let create = |index| self.create(home, set, index);
        let mut targets: Vec<Target> = (0..set.count).map(create).collect::<Result<_, _>>()?;
        let reserved = self.reserve(&targets, set).map_err(|error| write_error(self.dir, error))?;
        // If space cannot be reserved, the order of synced writes determines the layout.
        let piece =
            if set.interleaved && !reserved { INTERLEAVE_BYTES } else { set.file_size.get() };
        let written = self.write_pieces(&mut targets, set.file_size.get(), piece);
        written.map_err(|error| match self.options.cancel.is_cancelled() {
            true => BenchError::Cancelled,
            false => write_error(self.dir, error),
        })
    }

    fn create(&self, home: &Home, set: &FileSet, index: u32) -> Result<Target, BenchError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(home.path().join(set.file_name(index)))
            .map_err(|error| write_error(self.dir, error))?;
        let mut seeds = Pcg64Mcg::seed_from_u64(self.options.seed ^ set.file_size.get());
        seeds.advance(u128::from(index));
        let content = Pcg64Mcg::seed_from_u64(seeds.next_u64());
        Ok(Target { file, content, at: 0, unsynced: 0 })
    }

    /// Reserves space in the order in which the files should be laid out on the disk; returns
    /// whether the file system supports that.
    fn reserve(&self, targets: &[Target], set: &FileSet) -> io::Result<bool> {
        let size = set.file_size.get();
        let piece = if set.interleaved { INTERLEAVE_BYTES } else { size };
        let pieces = size.div_ceil(piece);
        let rounds = if set.interleaved { pieces } else { 1 };
        for round in 0..rounds {
            for target in targets {
                let start = round * piece;
                let length = piece.min(size - start);
                match fallocate(&target.file, FallocateFlags::empty(), start, length) {
                    Ok(()) => {}
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                    Err(errno) => return Err(errno.into()),
                }
                self.stop_if_cancelled()?;
            }
        }
        Ok(true)
    }

    /// Fills all targets, one piece of each in turn.
    fn write_pieces(&mut self, targets: &mut [Target], size: u64, piece: u64) -> io::Result<()> {
        let mut buffer = vec![0; WRITE_BYTES as usize];
        for round in 0..size.div_ceil(piece) {
            let end = ((round + 1) * piece).min(size);
            for target in targets.iter_mut() {
                while target.at < end {
                    self.stop_if_cancelled()?;
                    let length = (end - target.at).min(WRITE_BYTES);
                    target.write(&mut buffer[..length as usize])?;
                    self.written += Bytes::new(length);
                    let (written, total) = (self.written, self.total);
                    (self.progress)(LayOutProgress { written, total });
                }
                target.settle()?;
            }
        }
        Ok(())
    }

    fn stop_if_cancelled(&self) -> io::Result<()> {
        match self.options.cancel.is_cancelled() {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

impl Target {
    fn write(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.content.fill_bytes(buffer);
        self.file.write_all_at(buffer, self.at)?;
        self.at += buffer.len() as u64;
        self.unsynced += buffer.len() as u64;
        if self.unsynced >= SYNC_INTERVAL_BYTES { self.settle() } else { Ok(()) }
    }

    /// Syncs the file and evicts it from the page cache.
    fn settle(&mut self) -> io::Result<()> {
        if self.unsynced > 0 {
            self.file.sync_all()?;
            fadvise(&self.file, 0, None, Advice::DontNeed)?;
            self.unsynced = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_room_is_told_wherever_it_shows() {
        let message = |errno: Errno| {
            let problem = BenchError::io("write", "/tmp/x")(errno.into());
            no_space(Path::new("/tmp"), Bytes::from_mib(1), problem)
        };
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            let BenchError::NoSpace { path, needed, source, .. } = message(errno) else {
                panic!("{errno}")
            };
            assert_eq!((path.as_path(), needed), (Path::new("/tmp"), Bytes::from_mib(1)));
            let source = source.and_then(|source| source.raw_os_error());
            assert_eq!(source, Some(errno.raw_os_error()));
        }
        assert!(matches!(message(Errno::IO), BenchError::Io { .. }));
    }
}
