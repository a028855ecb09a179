//! Converts fio jobs to a workload of our own engine, if possible.

use units::{Bytes, Nanos};

use crate::declaration::Workload;
use crate::fio::error::FioError;
use crate::fio::job::{FioAccess, Job};
use crate::fio::job_file::FioGroup;
use crate::fio::meaning::{Distribution, FioAdvice, FioEngine};
use crate::fio::options::{self, OptionUse};
use crate::fio::value::Size;
use crate::parameters::{AccessMethod, Hint, Pattern, Sharing};

impl FioGroup {
    /// Returns the equivalent workload of our own engine, or the line and option that it lacks.
    pub fn native(&self, name: &str) -> Result<Workload, FioError> {
        let Some(job) = self.jobs.first() else { return Err(FioError::NoJob) };
        for other in &self.jobs {
            other.plain()?;
        }
        self.alike()?;
        let (sharing, file_size) = self.sharing(job)?;
        let workload = Workload {
            readers: self.readers(),
            sharing,
            files_per_reader: if sharing == Sharing::OwnFile { job.files } else { 1 },
            think: job.think,
            access: match job.engine {
                FioEngine::Mmap => AccessMethod::Mmap,
                FioEngine::Sync | FioEngine::Async => AccessMethod::Read,
            },
            hint: job.hint(),
            file_size,
            block_min: (job.block.0 < job.block.1).then_some(job.block.0),
            ..Workload::new(name, job.pattern()?, job.block.1)
        };
        workload.validate().map_err(|problem| job.unlike("rw", problem.to_string()))?;
        Ok(workload)
    }

    /// Checks that all jobs are alike, as the readers of a workload must be.
    fn alike(&self) -> Result<(), FioError> {
        let Some((first, rest)) = self.jobs.split_first() else { return Ok(()) };
        let key = |job: &Job| Job {
            name: String::new(),
            place: first.place.clone(),
            settings: Vec::new(),
            stonewall: false,
            copies: 1,
            file_names: None,
            name_format: None,
            // The name of fio's engine is irrelevant for ours.
            iodepth: 1,
            ..job.clone()
        };
        match rest.iter().find(|job| key(job) != key(first)) {
            Some(other) => {
                let why = format!(
                    "runs concurrently with the different job [{}], which the native engine does \
                     not support: put a stonewall between them, or use --engine fio",
                    first.name
                );
                let option = format!("[{}]", other.name);
                Err(FioError::Refused { place: other.place.clone(), option, why })
            }
            None => Ok(()),
        }
    }

    /// Returns whether readers have their own files, and the size of the files.
    fn sharing(&self, job: &Job) -> Result<(Sharing, Option<Bytes>), FioError> {
        let ground = self.ground();
        let (copies, files) = (ground.areas.len(), ground.files.len());
        let size = ground.files.first().and_then(|file| file.size);
        if ground.files.iter().any(|file| file.size != size) {
            let why = "the native engine needs files of equal size".to_owned();
            return Err(job.unlike("size", why));
        }
        let whole = job.offset == Size::Bytes(Bytes::ZERO);
        let steps = job.offset_increment;
        if files == copies * job.files as usize && whole && steps == Size::Bytes(Bytes::ZERO) {
            return match job.size {
                None | Some(Size::Bytes(_) | Size::Percent(100)) => Ok((Sharing::OwnFile, size)),
                Some(_) => {
                    Err(job.unlike("size", "the native engine reads whole files".to_owned()))
                }
            };
        }
        // Each reads its own part of one file.
        let stepped = steps != Size::Bytes(Bytes::ZERO);
        if files == 1 && stepped && whole && job.size == Some(steps) {
            return Ok((Sharing::SharedFile, size));
        }
        let (option, why) = match files < copies {
            true => (
                "filename",
                "all copies read the same data, which the native engine does not \
                      support",
            ),
            false => ("offset", "the native engine starts at the start of a file"),
        };
        Err(job.unlike(option, why.to_owned()))
    }
}

impl Job {
    fn unlike(&self, option: &str, why: String) -> FioError {
        self.refused(option, format!("{why}: use --engine fio"))
    }

    /// Rejects options that only fio supports.
    fn plain(&self) -> Result<(), FioError> {
        let only_fio = |setting: &&crate::fio::job::FioSetting| {
            options::find(setting.name).is_some_and(|known| known.handling == OptionUse::Fio)
        };
        if let Some(setting) = self.settings.iter().find(only_fio) {
            return Err(self.unlike(
                setting.name,
                "the native engine does not support \
                                                  it"
                .to_owned(),
            ));
        }
        let no = |option: &str, why: &str| Err(self.unlike(option, why.to_owned()));
        if self.access != FioAccess::Read {
            return no("rw", "the native engine only reads");
        }
        if self.direct {
            return no("direct", "the native engine reads through the page cache");
        }
        if self.engine == FioEngine::Async && self.iodepth > 1 {
            return no("iodepth", "the native engine has one request of each reader in flight");
        }
        let option = self.option_of_block();
        if !self.block.1.get().is_multiple_of(self.block.0.get().max(1)) {
            return no(
                option,
                "the native engine supports only ranges whose end is a multiple of their start",
            );
        }
        if self.block.0 != self.block.1 && self.postfix.is_some_and(|skip| skip != 0) {
            return no(
                option,
                "the native engine supports only one block size if blocks are \
                               skipped",
            );
        }
        if self.files > 1 && !self.files_in_order {
            return no(
                "nrfiles",
                "the native engine reads one file after another (file_service_type=sequential)",
            );
        }
        if self.percentage_random != 100 && self.random {
            return no("percentage_random", "the native engine does not support this mixture");
        }
        if self.pre_read || !self.invalidate {
            let option = if self.pre_read { "pre_read" } else { "invalidate" };
            return no(option, "the native engine starts with a cold cache");
        }
        if self.start_delay > Nanos::ZERO || self.ramp > Nanos::ZERO {
            let option = if self.ramp > Nanos::ZERO { "ramp_time" } else { "startdelay" };
            return no(option, "the native engine starts all readers together");
        }
        if self.advice == FioAdvice::NoReuse {
            return no("fadvise_hint", "the native engine does not support this hint");
        }
        Ok(())
    }

    /// Returns the option that sets the block size.
    fn option_of_block(&self) -> &'static str {
        let said = self.settings.iter().rev().map(|setting| setting.name);
        let mut said = said.filter(|name| matches!(*name, "bs" | "bsrange"));
        said.next().unwrap_or("bs")
    }

    fn hint(&self) -> Hint {
        match self.advice {
            FioAdvice::None | FioAdvice::NoReuse => Hint::None,
            FioAdvice::Random => Hint::Random,
            FioAdvice::Sequential => Hint::Sequential,
            FioAdvice::Pattern if self.random => Hint::Random,
            FioAdvice::Pattern => Hint::Sequential,
        }
    }

    fn pattern(&self) -> Result<Pattern, FioError> {
        let no = |option: &str, why: &str| Err(self.unlike(option, why.to_owned()));
        let block = self.block.1.get();
        let once = self.io_size.is_none() || self.io_size == self.size;
        if self.random {
            return match (self.distribution, self.postfix) {
                _ if !once => no("io_size", "the native engine reads all of the data"),
                (Distribution::Zipf(theta), None) => Ok(Pattern::Zipf { theta }),
                (Distribution::Uniform, Some(run)) => match u32::try_from(run) {
                    Ok(blocks) => Ok(Pattern::SeekAndRead { blocks }),
                    Err(_) => no("rw", "too many blocks in a row"),
                },
                (Distribution::Uniform, None) if self.random_map => Ok(Pattern::Uniform),
                (Distribution::Uniform, None) => {
                    no("norandommap", "the native engine reads no block twice")
                }
                _ => no(
                    "random_distribution",
                    "the native engine does not support this \
                         distribution",
                ),
            };
        }
        let backward = i64::try_from(2 * block).ok().map(|twice| -twice);
        match self.postfix {
            None | Some(0) if once => Ok(Pattern::Sequential),
            None | Some(0) => no("io_size", "the native engine reads all of the data"),
            postfix if postfix == backward => Ok(Pattern::Backward),
            Some(skip) if skip > 0 => {
                Ok(Pattern::Stride { step: Bytes::new(block.saturating_add(skip.unsigned_abs())) })
            }
            Some(_) => no("rw", "the native engine goes backward only block by block"),
        }
    }
}
