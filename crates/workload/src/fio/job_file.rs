//! A job file: its jobs, in groups that run one after another.

use std::fmt;

use super::error::{FioError, FioLocation};
use super::ini::{FioEnvironment, IniSection, RawOption, sections, shortened};
use super::job::{FioSetting, Job};
use super::meaning::as_range;
use super::options::{self, OptionUse};
use super::value::Size;

/// Something about an option that whoever runs the file should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    pub place: FioLocation,
    pub option: String,
    /// What is to be said.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.option, self.text)
    }
}

/// A job file that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    groups: Vec<FioGroup>,
    notes: Vec<Note>,
}

/// Jobs that run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct FioGroup {
    pub(crate) jobs: Vec<Job>,
}

/// The options of `[global]` sections so far, and what has been said about options.
#[derive(Default)]
struct Progress {
    globals: Vec<FioSetting>,
    notes: Vec<Note>,
}

impl JobFile {
    /// Reads a job file, all of it: what is wrong anywhere is an error.
    pub fn parse(text: &str, around: &FioEnvironment<'_>) -> Result<Self, FioError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut progress = Progress::default();
        let mut groups: Vec<FioGroup> = Vec::new();
        for section in sections(text, around)? {
            let Some(job) = progress.section(section)? else { continue };
            match groups.last_mut() {
                Some(group) if !job.stonewall => group.jobs.push(job),
                _ => groups.push(FioGroup { jobs: vec![job] }),
            }
        }
        if groups.is_empty() {
            return Err(FioError::NoJob);
        }
        let mut notes = progress.notes;
        notes.sort();
        notes.dedup();
        Ok(Self { groups, notes })
    }

    /// Jobs that run at the same time, in the order in which the groups of them run.
    pub fn groups(&self) -> &[FioGroup] {
        &self.groups
    }

    /// What has been left out, and why.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl Progress {
    /// A job, unless the section is global.
    fn section(&mut self, section: IniSection) -> Result<Option<Job>, FioError> {
        let global = section.is_global();
        let mut settings = if global { Vec::new() } else { self.globals.clone() };
        let mut name = section.name;
        for option in section.options {
            let Some(setting) = self.setting(option)? else { continue };
            if setting.name == "name" && !global {
                name = setting.value.clone().unwrap_or_default();
            }
            settings.push(setting);
        }
        if global {
            self.globals.extend(settings);
            // What is wrong is wrong here already, even if no job follows.
            Job::read(name, section.place, self.globals.clone())?;
            return Ok(None);
        }
        // A section may stand for nothing but its name: fio takes its defaults then.
        Job::understand(name, section.place, settings).map(Some)
    }

    /// An option that is used, unless it is left out.
    fn setting(&mut self, option: RawOption) -> Result<Option<FioSetting>, FioError> {
        let RawOption { place, name, value } = option;
        let Some(known) = options::find(&name) else {
            let near = options::nearest(&name);
            return Err(FioError::Unknown { place, option: shortened(&name), near });
        };
        match known.becomes {
            OptionUse::Refused(why) => {
                Err(FioError::Refused { place, option: name, why: why.to_owned() })
            }
            OptionUse::Left(why) => {
                let text = format!("left out: {why}");
                self.notes.push(Note { place, option: name, text });
                Ok(None)
            }
            OptionUse::Own | OptionUse::Fio | OptionUse::Both => {
                let range = value.as_deref().filter(|_| known.name == "bs").and_then(as_range);
                let name = if range.is_some() { "bsrange" } else { known.name };
                if let Some(range) = &range {
                    let text = format!("taken as bsrange={range}: fio's bs has no ranges");
                    self.notes.push(Note { place: place.clone(), option: "bs".to_owned(), text });
                }
                Ok(Some(FioSetting { place, name, value: range.or(value) }))
            }
        }
    }
}

impl FioGroup {
    /// The jobs, each once however many copies it has.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// A name for it: that of its job, or of the first of them.
    pub fn name(&self) -> &str {
        self.jobs.first().map_or("", |job| &job.name)
    }

    /// How many copies of jobs run at the same time.
    pub fn readers(&self) -> u32 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.copies))
    }

    pub fn block(&self) -> units::Bytes {
        self.jobs.iter().map(super::Job::largest_block).max().unwrap_or_default()
    }

    /// How long the jobs run at most, start and ramp included, where none may last longer than
    /// this.
    pub fn longest(&self, most: units::Nanos) -> units::Nanos {
        let beside = self.jobs.iter().map(|job| job.start_delay + job.ramp).max();
        let runtime = self.jobs.iter().map(|job| job.runtime.unwrap_or(most).min(most)).max();
        runtime.unwrap_or(most) + beside.unwrap_or_default()
    }

    /// Whether each job reads one file of its own from its beginning on, in order and through the
    /// page cache, so that what was read ahead of it can be told.
    pub fn is_streams(&self) -> bool {
        let ground = self.ground();
        let begins = |job: &super::Job| job.offset == Size::Bytes(units::Bytes::ZERO);
        let stream = |job: &super::Job| {
            job.access == super::FioAccess::Read
                && !job.random
                && job.postfix.is_none()
                && !job.direct
                && job.files == 1
                && begins(job)
                && job.offset_increment == Size::Bytes(units::Bytes::ZERO)
        };
        ground.files.len() == ground.areas.len() && self.jobs.iter().all(stream)
    }

    /// Of each copy of each job, in order, whether it is random.
    pub fn randoms(&self) -> impl Iterator<Item = bool> {
        self.jobs.iter().flat_map(|job| (0..job.copies).map(|_| job.random))
    }

    /// The jobs as a job file of their own, without includes, variables and global sections: what
    /// is read from it is the same group.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            // A job may be named what no section of a job can be called.
            let plain = !job.name.starts_with("global") && !job.name.is_empty();
            text.push_str(&match plain {
                true => format!("[{}]\n", job.name),
                false => format!("[job]\nname={}\n", job.name),
            });
            for setting in job.settings.iter().filter(|s| !["name", "stonewall"].contains(&s.name))
            {
                match &setting.value {
                    Some(value) => text.push_str(&format!("{}={value}\n", setting.name)),
                    None => text.push_str(&format!("{}\n", setting.name)),
                }
            }
        }
        text
    }

    /// How long the longest of its jobs may run, if all of them say it.
    pub fn runtime(&self) -> Option<units::Nanos> {
        let times: Option<Vec<_>> = self.jobs.iter().map(|job| job.runtime).collect();
        times?.into_iter().max()
    }

    /// Whether a job of it writes.
    pub fn writes(&self) -> bool {
        self.jobs.iter().any(|job| job.access != super::FioAccess::Read)
    }
}
