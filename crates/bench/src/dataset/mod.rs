//! The data that trials read: foreread's own files, or existing data.

mod existing;
pub(crate) mod home;
mod lay_out;
mod manifest;
mod tool_directory;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use units::Bytes;
use workload::Workload;

use crate::{BenchError, Cancel};
use existing::Existing;
use home::Home;
use manifest::FileSet;
pub(crate) use tool_directory::ToolDirectory;

#[derive(Clone, Debug)]
pub struct LayOutOptions {
    /// File size for workloads that do not specify one.
    pub file_size: Bytes,
    pub seed: u64,
    /// Stops the work early and removes the files written so far.
    pub cancel: Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayOutProgress {
    pub written: Bytes,
    /// Total size to write; 0 if the existing files suffice.
    pub total: Bytes,
}

#[derive(Debug)]
pub struct Dataset(Kind);

#[derive(Debug)]
enum Kind {
    Own { home: Home, sets: Vec<FileSet>, file_size: Bytes },
    Existing(Existing),
}

/// A part of a file or device that a workload uses as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) start: Bytes,
    pub(crate) length: Bytes,
}

impl Dataset {
    /// Returns the space that the files for these workloads need.
    pub fn room_needed(workloads: &[Workload], file_size: Bytes) -> Bytes {
        manifest::sets_for(workloads, file_size).iter().map(FileSet::size).sum()
    }

    /// Creates the files that these workloads need, in foreread's directory inside `dir`. Their
    /// content is incompressible. Reuses matching files of an earlier run and deletes the others.
    pub fn lay_out(
        dir: &Path,
        workloads: &[Workload],
        options: &LayOutOptions,
        progress: &mut dyn FnMut(LayOutProgress),
    ) -> Result<Self, BenchError> {
        for workload in workloads {
            workload.validate()?;
        }
        let largest = workloads.iter().map(|workload| workload.block).max().unwrap_or_default();
        if options.file_size < largest || options.file_size.is_zero() {
            return Err(BenchError::BadOption {
                option: "file size",
                value: options.file_size.to_string(),
                wanted: "at least as large as the largest block",
            });
        }
        let sets = manifest::sets_for(workloads, options.file_size);
        let home = lay_out::lay_out(dir, &sets, options, progress)?;
        Ok(Self(Kind::Own { home, sets, file_size: options.file_size }))
    }

    /// Opens an existing file or block device, read-only; each reader gets its own part.
    pub fn existing(path: &Path) -> Result<Self, BenchError> {
        Existing::open(path).map(|existing| Self(Kind::Existing(existing)))
    }

    /// Returns the directory of the created files; `None` for existing data.
    pub fn directory(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Own { home, .. } => Some(home.path()),
            Kind::Existing(_) => None,
        }
    }

    /// Returns the size of a workload's created files; 0 for existing data, where it is irrelevant.
    pub(crate) fn size_of(&self, workload: &Workload) -> Bytes {
        match &self.0 {
            Kind::Own { file_size, .. } => workload.file_size.unwrap_or(*file_size),
            Kind::Existing(_) => Bytes::ZERO,
        }
    }

    /// Returns the total size of a workload's files; for existing data, the size of all data.
    pub fn data_of(&self, workload: &Workload) -> Bytes {
        match &self.0 {
            Kind::Own { file_size, .. } => workload.data_files(*file_size).into_iter().sum(),
            Kind::Existing(existing) => existing.size(),
        }
    }

    /// Deletes the created files; does not touch existing data.
    pub fn remove(self) -> Result<(), BenchError> {
        match self.0 {
            Kind::Own { home, .. } => home.remove(),
            Kind::Existing(_) => Ok(()),
        }
    }

    /// Returns whether `dir` contains unlocked files of an earlier run.
    pub fn is_in(dir: &Path) -> bool {
        matches!(Home::find(dir), Ok(Some(_)))
    }

    /// Deletes the files of an earlier run in `dir`; returns whether there were any.
    pub fn remove_from(dir: &Path) -> Result<bool, BenchError> {
        let Some(home) = Home::find(dir)? else { return Ok(false) };
        home.remove()?;
        Ok(true)
    }

    /// Returns the data files of the workload, in the order of [`Workload::file_of`].
    pub(crate) fn files(&self, workload: &Workload) -> Result<Vec<DataFile>, BenchError> {
        match &self.0 {
            Kind::Own { home, sets, file_size } => {
                let data = own_files(home.path(), sets, workload, *file_size)?;
                let file = |file| data.get(workload.data_file_of(file) as usize).cloned();
                Ok((0..workload.files()).filter_map(file).collect())
            }
            Kind::Existing(existing) if workload.replay.is_some() => {
                let data = existing.parts_of_sizes(&workload.data_files(Bytes::ZERO))?;
                let file = |file| data.get(workload.data_file_of(file) as usize).cloned();
                Ok((0..workload.files()).filter_map(file).collect())
            }
            Kind::Existing(existing) => existing.parts(workload),
        }
    }

    /// Returns all existing data as one part; empty for created files.
    pub(crate) fn whole(&self) -> Result<Vec<DataFile>, BenchError> {
        match &self.0 {
            Kind::Own { .. } => Ok(Vec::new()),
            Kind::Existing(existing) => Ok(vec![existing.whole()]),
        }
    }

    /// Returns whether all data is on the device, so that cold reads cause I/O: false for an
    /// existing file with holes or compression.
    pub(crate) fn is_dense(&self) -> bool {
        match &self.0 {
            Kind::Own { .. } => true,
            Kind::Existing(existing) => existing.is_dense(),
        }
    }

    /// Returns how much data may be in the cache at a cold start: 0 for created files, 0.1 % of
    /// existing data, because other processes may keep some of its pages.
    pub(crate) fn tolerated_resident(&self, data: Bytes) -> Bytes {
        match &self.0 {
            Kind::Own { .. } => Bytes::ZERO,
            Kind::Existing(_) => Bytes::new(data.get() / 1000),
        }
    }
}

/// Returns a workload's data files in its order: the first of each size, then the second, …
fn own_files(
    home: &Path,
    sets: &[FileSet],
    workload: &Workload,
    file_size: Bytes,
) -> Result<Vec<DataFile>, BenchError> {
    let wanted = FileSet::all_of(workload, file_size);
    let mut next: HashMap<Bytes, u32> = HashMap::new();
    let file = |length: Bytes| {
        let wanted = wanted.iter().find(|set| set.file_size == length);
        let set = wanted.and_then(|wanted| sets.iter().find(|set| set.holds(wanted)));
        let set = set.ok_or_else(|| BenchError::NotLaidOut { workload: workload.name.clone() })?;
        let index = next.entry(length).or_default();
        *index += 1;
        Ok(DataFile { path: home.join(set.file_name(*index - 1)), start: Bytes::ZERO, length })
    };
    workload.data_files(file_size).into_iter().map(file).collect()
}
