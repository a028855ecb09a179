//! The data that is read: files of foreread's own, or existing data.

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
    /// The file size of workloads that do not state one.
    pub file_size: Bytes,
    pub seed: u64,
    /// Stops the work early; files written so far are removed.
    pub cancel: Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayOutProgress {
    pub written: Bytes,
    /// Total size to write; 0 if existing files fit.
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
    /// The space that the files for these workloads need.
    pub fn room_needed(workloads: &[Workload], file_size: Bytes) -> Bytes {
        manifest::sets_for(workloads, file_size).iter().map(FileSet::size).sum()
    }

    /// Creates the files that these workloads need, in our own directory inside `dir`. Their
    /// content is incompressible. Matching files of an earlier run are used; others are removed.
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

    /// An existing file or block device. It is only read, and each reader gets its own part.
    pub fn existing(path: &Path) -> Result<Self, BenchError> {
        Existing::open(path).map(|existing| Self(Kind::Existing(existing)))
    }

    /// The directory of the created files; `None` if there are none.
    pub fn directory(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Own { home, .. } => Some(home.path()),
            Kind::Existing(_) => None,
        }
    }

    /// The size of a workload's new files; for existing data the size is irrelevant.
    pub(crate) fn size_of(&self, workload: &Workload) -> Bytes {
        match &self.0 {
            Kind::Own { file_size, .. } => workload.file_size.unwrap_or(*file_size),
            Kind::Existing(_) => Bytes::ZERO,
        }
    }

    /// The total amount of data of a workload's files.
    pub fn data_of(&self, workload: &Workload) -> Bytes {
        match &self.0 {
            Kind::Own { file_size, .. } => workload.data_files(*file_size).into_iter().sum(),
            Kind::Existing(existing) => existing.size(),
        }
    }

    /// Deletes the created files; existing data is not touched.
    pub fn remove(self) -> Result<(), BenchError> {
        match self.0 {
            Kind::Own { home, .. } => home.remove(),
            Kind::Existing(_) => Ok(()),
        }
    }

    /// Whether `dir` contains unused files of an earlier run.
    pub fn is_in(dir: &Path) -> bool {
        matches!(Home::find(dir), Ok(Some(_)))
    }

    /// Deletes files of an earlier run in `dir`; returns whether there were any.
    pub fn remove_from(dir: &Path) -> Result<bool, BenchError> {
        let Some(home) = Home::find(dir)? else { return Ok(false) };
        home.remove()?;
        Ok(true)
    }

    /// The data files of the workload, in the order of [`Workload::file_of`].
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

    /// All existing data as one part; empty for created files.
    pub(crate) fn whole(&self) -> Result<Vec<DataFile>, BenchError> {
        match &self.0 {
            Kind::Own { .. } => Ok(Vec::new()),
            Kind::Existing(existing) => Ok(vec![existing.whole()]),
        }
    }

    /// Whether all data is on the device, so that reading it cold causes I/O: false for an existing
    /// file with holes or compression.
    pub(crate) fn is_dense(&self) -> bool {
        match &self.0 {
            Kind::Own { .. } => true,
            Kind::Existing(existing) => existing.is_dense(),
        }
    }

    /// How much data may be in the cache at a cold start: none of our own files, but other
    /// processes may keep pages of theirs.
    pub(crate) fn tolerated_resident(&self, data: Bytes) -> Bytes {
        match &self.0 {
            Kind::Own { .. } => Bytes::ZERO,
            Kind::Existing(_) => Bytes::new(data.get() / 1000),
        }
    }
}

/// The data files of a workload in its order: the first of each size, then the second, and so on.
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
