//! A parsed job.

use units::{Bytes, Nanos};

use super::error::{FioError, FioLocation};
use super::meaning::{
    Distribution, FioAdvice, FioEngine, advice, block, distribution, engine, file_names, file_size,
    first,
};
use super::value::{Given, Size};

/// Whether a job reads, writes, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioAccess {
    /// The job only reads.
    Read,
    /// The job only writes.
    Write,
    Mixed,
}

/// An option of a job, with its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FioSetting {
    pub(crate) place: FioLocation,
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
}

/// A job: its section combined with the global ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub(crate) name: String,
    pub(crate) place: FioLocation,
    pub(crate) settings: Vec<FioSetting>,
    pub(crate) stonewall: bool,
    pub(crate) access: FioAccess,
    pub(crate) random: bool,
    /// Bytes skipped after each request of a sequential job, or consecutive requests of a random
    /// one.
    pub(crate) postfix: Option<i64>,
    pub(crate) engine: FioEngine,
    pub(crate) iodepth: u32,
    pub(crate) direct: bool,
    /// Smallest and largest read.
    pub(crate) block: (Bytes, Bytes),
    pub(crate) size: Option<Size>,
    pub(crate) file_size: Option<Bytes>,
    pub(crate) io_size: Option<Size>,
    pub(crate) offset: Size,
    pub(crate) offset_increment: Size,
    pub(crate) files: u32,
    pub(crate) copies: u32,
    pub(crate) file_names: Option<Vec<String>>,
    pub(crate) name_format: Option<String>,
    pub(crate) runtime: Option<Nanos>,
    pub(crate) start_delay: Nanos,
    pub(crate) ramp: Nanos,
    pub(crate) time_based: bool,
    pub(crate) loops: u32,
    pub(crate) think: Nanos,
    pub(crate) advice: FioAdvice,
    pub(crate) random_map: bool,
    pub(crate) distribution: Distribution,
    pub(crate) percentage_random: u32,
    pub(crate) pre_read: bool,
    pub(crate) invalidate: bool,
    pub(crate) files_in_order: bool,
}

/// Maximum number of copies and files of a job.
const MAX_COPIES: u32 = 65_536;

impl Job {
    /// Returns a job with fio's defaults.
    fn with_defaults(name: String, place: FioLocation, settings: Vec<FioSetting>) -> Self {
        let page = Bytes::from_kib(4);
        Self {
            name,
            place,
            settings,
            stonewall: false,
            access: FioAccess::Read,
            random: false,
            postfix: None,
            engine: FioEngine::Sync,
            iodepth: 1,
            direct: false,
            block: (page, page),
            size: None,
            file_size: None,
            io_size: None,
            offset: Size::Bytes(Bytes::ZERO),
            offset_increment: Size::Bytes(Bytes::ZERO),
            files: 1,
            copies: 1,
            file_names: None,
            name_format: None,
            runtime: None,
            start_delay: Nanos::ZERO,
            ramp: Nanos::ZERO,
            time_based: false,
            loops: 1,
            think: Nanos::ZERO,
            advice: FioAdvice::Pattern,
            random_map: true,
            distribution: Distribution::Uniform,
            percentage_random: 100,
            pre_read: false,
            invalidate: true,
            files_in_order: false,
        }
    }

    /// Parses the options of a job and checks their combination.
    pub(crate) fn understand(
        name: String,
        place: FioLocation,
        settings: Vec<FioSetting>,
    ) -> Result<Self, FioError> {
        let job = Self::read(name, place, settings)?;
        job.check()?;
        Ok(job)
    }

    /// Parses the options; the last one with a name counts.
    pub(crate) fn read(
        name: String,
        place: FioLocation,
        settings: Vec<FioSetting>,
    ) -> Result<Self, FioError> {
        let mut job = Self::with_defaults(name, place, settings);
        let settings = std::mem::take(&mut job.settings);
        let mut kilo = 1024;
        // fio reads this option first, wherever it is.
        for setting in settings.iter().filter(|setting| setting.name == "kb_base") {
            kilo = match setting.given(1024).number()? {
                base @ (1000 | 1024) => base,
                _ => return Err(setting.given(1024).wrong("1000 or 1024")),
            };
        }
        for setting in &settings {
            job.take(&setting.given(kilo), setting.value.is_none())?;
        }
        job.settings = settings;
        Ok(job)
    }

    fn take(&mut self, given: &Given<'_>, bare: bool) -> Result<(), FioError> {
        let seconds = Nanos::from_secs(1);
        // A boolean option may be given without a value, which means yes.
        let flag = || if bare { Ok(true) } else { given.boolean() };
        if bare && !FLAGS.contains(&given.option) {
            return Err(given.wrong("present: the option needs a value"));
        }
        match given.option {
            "rw" => self.take_rw(given)?,
            "bs" | "bsrange" => self.block = block(given)?,
            "ioengine" => self.engine = engine(given)?,
            "iodepth" => self.iodepth = given.count(1, MAX_COPIES)?,
            "direct" => self.direct = given.boolean()?,
            "buffered" => self.direct = !given.boolean()?,
            "size" => self.size = Some(given.size()?),
            "filesize" => self.file_size = Some(file_size(given)?),
            "io_size" => self.io_size = Some(given.size()?),
            "offset" => self.offset = given.size()?,
            "offset_increment" => self.offset_increment = given.size()?,
            "nrfiles" => self.files = given.count(1, MAX_COPIES)?,
            "numjobs" => self.copies = given.count(1, MAX_COPIES)?,
            "filename" => self.file_names = Some(file_names(given)?),
            "filename_format" => self.name_format = Some(given.value.to_owned()),
            "runtime" => self.runtime = Some(given.time(seconds)?).filter(|t| *t > Nanos::ZERO),
            "startdelay" => self.start_delay = given.time(seconds)?,
            "ramp_time" => self.ramp = given.time(seconds)?,
            "time_based" => self.time_based = flag()?,
            "loops" => self.loops = given.count(1, u32::MAX)?,
            "thinktime" => self.think = given.time(Nanos::from_micros(1))?,
            "fadvise_hint" => self.advice = advice(given)?,
            "norandommap" => self.random_map = !flag()?,
            "random_distribution" => self.distribution = distribution(given)?,
            "percentage_random" => {
                self.percentage_random = given.part(first(given.value)).count(0, 100)?;
            }
            "pre_read" => self.pre_read = given.boolean()?,
            "invalidate" => self.invalidate = given.boolean()?,
            "file_service_type" => {
                self.files_in_order = given.value.split(':').next() == Some("sequential");
            }
            "stonewall" => self.stonewall = flag()?,
            "rwmixread" | "rwmixwrite" => drop(given.count(0, 100)?),
            _ => {}
        }
        Ok(())
    }

    fn take_rw(&mut self, given: &Given<'_>) -> Result<(), FioError> {
        let (word, postfix) = match given.value.split_once(':') {
            Some((word, postfix)) => (word, Some(postfix)),
            None => (given.value, None),
        };
        (self.access, self.random) = match word {
            "read" => (FioAccess::Read, false),
            "randread" => (FioAccess::Read, true),
            "write" => (FioAccess::Write, false),
            "randwrite" => (FioAccess::Write, true),
            "rw" | "readwrite" => (FioAccess::Mixed, false),
            "randrw" => (FioAccess::Mixed, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                return Err(given.refused("foreread does not trim"));
            }
            _ => {
                let wanted = "read, randread, write, randwrite, rw (readwrite) or randrw";
                return Err(given.wrong(wanted));
            }
        };
        self.postfix = match postfix {
            Some(text) if self.random => Some(i64::from(given.part(text).count(1, u32::MAX)?)),
            Some(text) => Some(given.part(text).signed()?),
            None => None,
        };
        Ok(())
    }

    fn check(&self) -> Result<(), FioError> {
        let copies = u64::from(self.copies) * u64::from(self.files);
        if copies > u64::from(MAX_COPIES) {
            let why = format!("{copies} files are more than foreread creates ({MAX_COPIES})");
            return Err(self.refused("numjobs", why));
        }
        if let (Some(names), true) = (&self.file_names, self.files > 1)
            && names.len() > 1
            && names.len() != self.files as usize
        {
            let why = format!("filename names {} files", names.len());
            return Err(self.refused("nrfiles", why));
        }
        let too_small = |size: Bytes| size < self.block.0;
        if let Some(Size::Bytes(size)) = self.size
            && too_small(Bytes::new(size.get() / u64::from(self.files)))
        {
            return Err(self.refused("size", "less than a block for each file".to_owned()));
        }
        if self.file_size.is_some_and(too_small) {
            return Err(self.refused("filesize", "less than a block".to_owned()));
        }
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn place(&self) -> &FioLocation {
        &self.place
    }

    /// Returns whether the job reads, writes, or both.
    pub fn access(&self) -> FioAccess {
        self.access
    }

    /// Returns the last setting of an option.
    pub(crate) fn setting(&self, name: &str) -> Option<&FioSetting> {
        self.settings.iter().rev().find(|setting| setting.name == name)
    }

    /// Returns the location of an option, or of the job if the option is not set.
    pub(crate) fn place_of(&self, option: &str) -> FioLocation {
        self.setting(option).map_or(&self.place, |setting| &setting.place).clone()
    }

    pub(crate) fn refused(&self, option: &str, why: String) -> FioError {
        let value = self.setting(option).and_then(|setting| setting.value.as_deref());
        let value = value.map(|value| format!("={}", super::ini::shortened(value)));
        let option = format!("{option}{}", value.unwrap_or_default());
        FioError::Refused {
            place: self.place_of(option.split('=').next().unwrap_or("")),
            option,
            why,
        }
    }
}

/// Options that may be given without a value.
const FLAGS: &[&str] = &[
    "time_based",
    "norandommap",
    "stonewall",
    "thread",
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "zero_buffers",
    "refill_buffers",
    "nonvectored",
    "sqthread_poll",
    "fixedbufs",
    "registerfiles",
    "hipri",
    "force_async",
    "userspace_reap",
    "libaio_vectored",
    "nowait",
    "uncached",
    "readfua",
    "writefua",
];

impl FioSetting {
    pub(crate) fn given(&self, kilo: u64) -> Given<'_> {
        let value = self.value.as_deref().unwrap_or_default();
        Given { place: &self.place, option: self.name, value, kilo }
    }
}
