//! Which file each copy of each job reads, and which part of it; and the job file that makes fio do
//! just that on files of foreread's.

use std::collections::BTreeMap;
use std::fmt::Write;

use units::{Bytes, Nanos};

use super::error::FioError;
use super::job::Job;
use super::job_file::FioGroup;
use super::value::Size;

/// A file that jobs use, as far as the job file says what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FioFile {
    /// The name that it has in the job file, or that fio would give it.
    pub name: String,
    /// How large it is, where that is said.
    pub size: Option<Bytes>,
}

/// What a copy of a job does where.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// The job, by its place in the group.
    pub job: usize,
    /// Its files, by their places in [`FioGroup::files`].
    pub files: Vec<usize>,
    /// Where it begins in each of them.
    offset: Size,
    /// How much of each of them it uses; all the rest if nothing is said.
    length: Option<Size>,
    /// How much later than that this copy begins.
    shift: Size,
}

/// A file or a part of one that foreread has for a [`FioFile`].
#[derive(Clone, Debug, PartialEq)]
pub struct Stand<'a> {
    pub path: &'a str,
    /// Where in it the part begins.
    pub start: Bytes,
    pub length: Bytes,
}

/// What the trial gives to a run of fio.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// How long it lasts at most, in the storage's own time.
    pub duration: Nanos,
    /// How many times slower than its model the storage runs.
    pub dilation: f64,
    /// The seed of what is random.
    pub seed: u64,
}

/// Options that have another meaning on storage that runs slower than its model.
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

/// Options whose place is taken by what foreread says.
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
    /// In bytes, of a file of this size; of what was said of a larger file as much as is its share.
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
    /// The names of the files of one copy.
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

    /// How much of each file it uses.
    fn length(&self, files: usize) -> Option<Size> {
        match self.size? {
            Size::Bytes(size) => Some(Size::Bytes(Bytes::new(size.get() / files.max(1) as u64))),
            percent => Some(percent),
        }
    }

    /// How large each of its files has to be, as far as it says that.
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

/// The files of a group and what each copy of each job does with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    pub files: Vec<FioFile>,
    /// One for each copy of each job, in the order in which fio reports them.
    pub areas: Vec<Area>,
}

impl FioGroup {
    /// Which files there are, and who uses them.
    pub fn ground(&self) -> Ground {
        let mut ground = Ground::default();
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
                            // The largest of those that say it; whoever says nothing takes it.
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

    /// The job file that makes fio do this group's work on these files, one for each of
    /// [`Ground::files`]. It says of a job all that the file says, but for sizes, places and times.
    pub fn for_fio(
        &self,
        stands: &[Stand<'_>],
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

    /// The lines that stand in the place of those of the job file.
    fn place_and_time(
        &self,
        area: &Area,
        ground: &Ground,
        stands: &[Stand<'_>],
        conditions: &Conditions,
    ) -> Result<String, FioError> {
        let used: Vec<(&Stand<'_>, &FioFile)> = area
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
            // Of a smaller file as much less is read.
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

/// A path as a name in a list with colons.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}
