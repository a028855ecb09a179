//! The files and areas that each copy of each job reads, and a job file that makes fio read the
//! same in foreread's files.

use std::collections::BTreeMap;
use std::fmt::Write;

use units::{Bytes, Nanos};

use super::error::FioError;
use super::job::Job;
use super::job_file::FioGroup;
use super::value::Size;

/// A file of jobs, as described by the job file.
#[derive(Clone, Debug, PartialEq)]
pub struct FioFile {
    /// Its name in the job file, or the one that fio would choose.
    pub name: String,
    /// Its size, if stated.
    pub size: Option<Bytes>,
}

/// The area that a copy of a job uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// The index of the job in the group.
    pub job: usize,
    /// The indices of its files in [`FioGroup::files`].
    pub files: Vec<usize>,
    /// The start in each file.
    offset: Size,
    /// The length in each file; `None` for the rest of the file.
    length: Option<Size>,
    /// Additional offset of this copy.
    shift: Size,
}

/// The file, or the part of one, that replaces a [`FioFile`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacementFile<'a> {
    pub path: &'a str,
    /// The start of the part.
    pub start: Bytes,
    pub length: Bytes,
}

/// Parameters of the trial for a run of fio.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Maximum length in the storage's own time.
    pub duration: Nanos,
    /// How many times slower than its model the storage runs.
    pub dilation: f64,
    /// The seed of random choices.
    pub seed: u64,
}

/// Options whose meaning depends on real time.
const TIMED: &[&str] = &[
    "thinktime_spin",
    "thinktime_iotime",
    "rate",
    "rate_min",
    "rate_iops",
    "rate_iops_min",
    "max_latency",
    "latency_target",
    "latency_window",
];

/// Options that foreread replaces.
const REPLACED: &[&str] = &[
    "name",
    "size",
    "filesize",
    "offset",
    "offset_increment",
    "nrfiles",
    "filename",
    "filename_format",
    "directory",
    "numjobs",
    "runtime",
    "thinktime",
    "startdelay",
    "ramp_time",
    "stonewall",
    "io_size",
];

impl Size {
    /// Returns the bytes for a file of this size; scaled down if a larger size was stated.
    fn of(self, file: Bytes, said: Option<Bytes>) -> Bytes {
        match self {
            Self::Percent(percent) => {
                Bytes::new((u128::from(file.get()) * u128::from(percent) / 100) as u64)
            }
            Self::Bytes(bytes) => match said.filter(|said| *said > file && !said.is_zero()) {
                Some(said) => {
                    let share = u128::from(bytes.get()) * u128::from(file.get());
                    Bytes::new((share / u128::from(said.get())) as u64)
                }
                None => bytes,
            },
        }
    }
}

impl Job {
    /// Returns the names of the files of one copy.
    fn names(&self, copy: u32) -> Vec<String> {
        let format = |name: &str, file: u32| {
            let numbers = [("$jobname", self.name.clone()), ("$jobnum", copy.to_string())];
            let name = numbers.iter().fold(name.to_owned(), |name, (key, v)| name.replace(key, v));
            name.replace("$filenum", &file.to_string())
        };
        match (&self.file_names, &self.name_format) {
            (Some(names), _) => names.clone(),
            (None, Some(name)) => (0..self.files).map(|file| format(name, file)).collect(),
            (None, None) => {
                (0..self.files).map(|file| format("$jobname.$jobnum.$filenum", file)).collect()
            }
        }
    }

    /// Returns how much of each file the job uses.
    fn length(&self, files: usize) -> Option<Size> {
        match self.size? {
            Size::Bytes(size) => Some(Size::Bytes(Bytes::new(size.get() / files.max(1) as u64))),
            percent => Some(percent),
        }
    }

    /// Returns the required size of each file, if stated.
    fn file_size(&self, files: usize) -> Option<Bytes> {
        if let Some(size) = self.file_size {
            return Some(size);
        }
        let (Some(Size::Bytes(length)), Size::Bytes(offset)) = (self.length(files), self.offset)
        else {
            return None;
        };
        let Size::Bytes(shift) = self.offset_increment else { return None };
        let shift = shift.get().checked_mul(u64::from(self.copies) - 1)?;
        Some(Bytes::new(length.get().checked_add(offset.get())?.checked_add(shift)?))
    }
}

/// The files of a group, and the areas of each copy of each job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileUse {
    pub files: Vec<FioFile>,
    /// One for each copy of each job, in the order of fio's report.
    pub areas: Vec<Area>,
}

impl FioGroup {
    /// Returns the files, and the areas of each copy of each job.
    pub fn ground(&self) -> FileUse {
        let mut ground = FileUse::default();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (index, job) in self.jobs.iter().enumerate() {
            for copy in 0..job.copies {
                let names = job.names(copy);
                let count = names.len();
                let files: Vec<usize> = names
                    .into_iter()
                    .map(|name| {
                        let size = job.file_size(count);
                        let at = *known.entry(name.clone()).or_insert(ground.files.len());
                        match ground.files.get_mut(at) {
                            // The largest stated size; jobs without a size use it.
                            Some(file) => file.size = file.size.max(size),
                            None => ground.files.push(FioFile { name, size }),
                        }
                        at
                    })
                    .collect();
                let shift = match job.offset_increment {
                    Size::Bytes(bytes) => {
                        Size::Bytes(Bytes::new(bytes.get().saturating_mul(u64::from(copy))))
                    }
                    Size::Percent(percent) => Size::Percent(percent.saturating_mul(copy)),
                };
                let length = job.length(count);
                ground.areas.push(Area { job: index, files, offset: job.offset, length, shift });
            }
        }
        ground
    }

    /// Returns the job file that makes fio run this group on these files, one for each of
    /// [`FileUse::files`]. It has all of a job's options, except sizes, paths and times.
    pub fn for_fio(
        &self,
        stands: &[ReplacementFile<'_>],
        conditions: &Conditions,
    ) -> Result<String, FioError> {
        let ground = self.ground();
        let mut text = String::new();
        for area in &ground.areas {
            let job = &self.jobs[area.job];
            if conditions.dilation != 1.0 {
                job.refuse_timed()?;
            }
            let _ = writeln!(text, "[{}]", job.name);
            for setting in job.settings.iter().filter(|s| !REPLACED.contains(&s.name)) {
                match &setting.value {
                    Some(value) => drop(writeln!(text, "{}={value}", setting.name)),
                    None => drop(writeln!(text, "{}", setting.name)),
                }
            }
            text.push_str(&job.place_and_time(area, &ground, stands, conditions)?);
        }
        Ok(text)
    }
}

impl Job {
    fn refuse_timed(&self) -> Result<(), FioError> {
        match self.settings.iter().find(|setting| TIMED.contains(&setting.name)) {
            Some(setting) => Err(self.refused(
                setting.name,
                "it counts in real time, and this virtual disk runs slower than its model"
                    .to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// Returns the lines that replace those of the job file.
    fn place_and_time(
        &self,
        area: &Area,
        ground: &FileUse,
        stands: &[ReplacementFile<'_>],
        conditions: &Conditions,
    ) -> Result<String, FioError> {
        let used: Vec<(&ReplacementFile<'_>, &FioFile)> = area
            .files
            .iter()
            .filter_map(|file| Some((stands.get(*file)?, &ground.files[*file])))
            .collect();
        let Some((stand, file)) = used.first() else {
            return Err(self.refused("filename", "there is no file for it".to_owned()));
        };
        if used.len() > 1 && used.iter().any(|(other, _)| !other.start.is_zero()) {
            let why = "several files of a job need a directory as the target".to_owned();
            return Err(self.refused("nrfiles", why));
        }
        let block = self.block.0.get().max(1);
        let aligned = |bytes: Bytes| bytes.get() - bytes.get() % block;
        let offset = aligned(area.offset.of(stand.length, file.size))
            .saturating_add(aligned(area.shift.of(stand.length, file.size)));
        let rest = stand.length.get().saturating_sub(offset);
        let length = area.length.map_or(rest, |it| it.of(stand.length, file.size).get().min(rest));
        if length < self.block.1.get() {
            let why = format!("no block of it lies in the file, which has {}", stand.length);
            return Err(self.refused("offset", why));
        }
        let mut text = String::new();
        let paths: Vec<String> = used.iter().map(|(stand, _)| escaped(stand.path)).collect();
        let _ = writeln!(text, "filename={}", paths.join(":"));
        let _ = writeln!(text, "offset={}", stand.start.get().saturating_add(offset));
        let size = length.saturating_mul(paths.len() as u64);
        let _ = writeln!(text, "size={size}");
        if let Some(Size::Bytes(amount)) = self.io_size {
            // In a smaller file, proportionally less is read.
            let amount = Size::Bytes(amount).of(stand.length, file.size);
            let _ = writeln!(text, "io_size={}", amount.get().max(block));
        }
        self.write_times(&mut text, conditions);
        let _ = writeln!(text, "allow_file_create=0\nrandseed={}\n", conditions.seed >> 1);
        Ok(text)
    }

    fn write_times(&self, text: &mut String, conditions: &Conditions) {
        let scaled = |time: Nanos| time.scaled(conditions.dilation).get() / 1000;
        let runtime = self.runtime.map_or(conditions.duration, |own| own.min(conditions.duration));
        let _ = writeln!(text, "runtime={}us", scaled(runtime).max(1));
        for (name, time) in
            [("thinktime", self.think), ("startdelay", self.start_delay), ("ramp_time", self.ramp)]
        {
            if time > Nanos::ZERO {
                let _ = writeln!(text, "{name}={}us", scaled(time));
            }
        }
    }
}

/// Escapes a path for a list separated by colons.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}
