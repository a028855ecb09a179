//! A job file: its jobs, in groups that run one after another.

use std::fmt;

use super::error::{FioError, FioLocation};
use super::ini::{FioEnvironment, IniSection, RawOption, sections, shortened};
use super::job::{FioSetting, Job};
use super::meaning::as_range;
use super::options::{self, OptionUse};
use super::value::Size;

/// A note about an option for the user of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    pub place: FioLocation,
    pub option: String,
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

/// Jobs that run concurrently.
#[derive(Clone, Debug, PartialEq)]
pub struct FioGroup {
    pub(crate) jobs: Vec<Job>,
}

/// The options of `[global]` sections so far, and the notes.
#[derive(Default)]
struct Progress {
    globals: Vec<FioSetting>,
    notes: Vec<Note>,
}

impl JobFile {
    /// Parses a whole job file; any error makes it invalid.
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

    /// Returns the groups of concurrent jobs, in order.
    pub fn groups(&self) -> &[FioGroup] {
        &self.groups
    }

    /// Returns notes on ignored and reinterpreted options, with reasons.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl Progress {
    /// Parses a section. Returns its job, unless the section is global.
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
            // Errors are reported even if no job follows.
            Job::read(name, section.place, self.globals.clone())?;
            return Ok(None);
        }
        // A section may be empty: fio then uses its defaults.
        Job::understand(name, section.place, settings).map(Some)
    }

    /// Parses an option. Returns `None` if it is ignored.
    fn setting(&mut self, option: RawOption) -> Result<Option<FioSetting>, FioError> {
        let RawOption { place, name, value } = option;
        let Some(known) = options::find(&name) else {
            let near = options::nearest(&name);
            return Err(FioError::Unknown { place, option: shortened(&name), near });
        };
        match known.handling {
            OptionUse::Refused(why) => {
                Err(FioError::Refused { place, option: name, why: why.to_owned() })
            }
            OptionUse::Ignored(why) => {
                let text = format!("ignored: {why}");
                self.notes.push(Note { place, option: name, text });
                Ok(None)
            }
            OptionUse::Own | OptionUse::Fio | OptionUse::Both => {
                let range = value.as_deref().filter(|_| known.name == "bs").and_then(as_range);
                let name = if range.is_some() { "bsrange" } else { known.name };
                if let Some(range) = &range {
                    let text = format!("interpreted as bsrange={range}: fio's bs has no ranges");
                    self.notes.push(Note { place: place.clone(), option: "bs".to_owned(), text });
                }
                Ok(Some(FioSetting { place, name, value: range.or(value) }))
            }
        }
    }
}

impl FioGroup {
    /// Returns the jobs, without their copies.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Returns the name of the first job.
    pub fn name(&self) -> &str {
        self.jobs.first().map_or("", |job| &job.name)
    }

    /// Returns the number of concurrent copies of jobs.
    pub fn readers(&self) -> u32 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.copies))
    }

    pub fn block(&self) -> units::Bytes {
        self.jobs.iter().map(super::Job::largest_block).max().unwrap_or_default()
    }

    /// Returns the maximum duration of all jobs with start and ramp; `most` limits their runtimes.
    pub fn longest(&self, most: units::Nanos) -> units::Nanos {
        let beside = self.jobs.iter().map(|job| job.start_delay + job.ramp).max();
        let runtime = self.jobs.iter().map(|job| job.runtime.unwrap_or(most).min(most)).max();
        runtime.unwrap_or(most) + beside.unwrap_or_default()
    }

    /// Returns whether each job reads one file of its own from the start, in order and through the
    /// page cache, so that its read-ahead can be determined.
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

    /// Returns, for each copy of each job, in order, whether it is random.
    pub fn randoms(&self) -> impl Iterator<Item = bool> {
        self.jobs.iter().flat_map(|job| (0..job.copies).map(|_| job.random))
    }

    /// Returns the jobs as a job file without includes, variables and global sections. Parsing it
    /// gives the same group.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            // The job's name may be impossible as the name of a job's section.
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

    /// Returns the longest runtime of the jobs, if all of them state one.
    pub fn runtime(&self) -> Option<units::Nanos> {
        let times: Option<Vec<_>> = self.jobs.iter().map(|job| job.runtime).collect();
        times?.into_iter().max()
    }

    /// Returns whether any job writes.
    pub fn writes(&self) -> bool {
        self.jobs.iter().any(|job| job.access != super::FioAccess::Read)
    }
}
