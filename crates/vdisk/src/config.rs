//! The configuration of a virtual disk: model, file system, size, dilation, seed.

use std::fmt;
use std::str::FromStr;

use model::{Spec, SpecError};
use serde::{Deserialize, Serialize};
use sys::input::InputKind;
use units::text::{NamedSettings, SettingError};
use units::{Bytes, ParseUnitError};

use crate::error::VdiskError;
use crate::filesystem::Filesystem;

/// How many times slower than its model a disk runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dilation {
    /// The smallest dilation at which this machine keeps up with the model's peak; at least 1.
    #[default]
    Auto,
    /// A fixed factor: 1 for real time, 0.5 for twice as fast as the model.
    Fixed(f64),
}

impl Dilation {
    /// Valid factors. A disk may run faster than its model if the machine keeps up.
    const RANGE: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

    fn checked(factor: f64) -> Result<Self, VdiskError> {
        if Self::RANGE.contains(&factor) {
            return Ok(Self::Fixed(factor));
        }
        Err(Self::bad(&factor.to_string()))
    }

    fn bad(value: &str) -> VdiskError {
        VdiskError::BadValue {
            key: "dilation",
            value: value.to_owned(),
            reason: "use auto or a number from 0.1 to 10000".to_owned(),
        }
    }
}

impl fmt::Display for Dilation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Fixed(factor) => write!(f, "{factor}"),
        }
    }
}

impl FromStr for Dilation {
    type Err = VdiskError;

    fn from_str(text: &str) -> Result<Self, VdiskError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        Self::checked(text.parse().map_err(|_| Self::bad(text))?)
    }
}

#[derive(Clone, Debug)]
pub struct DiskConfig {
    pub model: Spec,
    pub filesystem: Filesystem,
    /// Size of the disk; by default the model's capacity, but at most 64 GiB.
    pub size: Bytes,
    /// How many times slower than its model the disk runs.
    pub dilation: Dilation,
    /// Seed of the model's jitter.
    pub seed: u64,
    /// Name of the disk; by default the model's name with a number.
    pub name: Option<String>,
    /// The model as specified, for [`Display`](fmt::Display).
    words: String,
}

/// Logical block size of the device. Direct I/O to a FUSE file supports any size, but 512-byte
/// blocks would let a file system make smaller requests than today's disks allow.
pub(crate) const BLOCK_SIZE: Bytes = Bytes::from_kib(4);

/// Maximum default size. Most of a disk is never written and takes no memory.
const MAX_DEFAULT_SIZE: Bytes = Bytes::from_gib(64);

/// Bytes and requests per second that two cores handle without delay, when they run both the server
/// at real-time priority and the measured programs.
const KEEPS_UP_BYTES: f64 = 250e6;
const KEEPS_UP_REQUESTS: f64 = 20e3;

/// Peaks per second from which on a model counts as unlimited: no dilation would suffice.
const NO_LIMIT_BYTES: f64 = 1e12;
const NO_LIMIT_REQUESTS: f64 = 1e8;

/// Keys of the disk itself; all other keys belong to the model.
const OWN_KEYS: [&str; 4] = ["fs", "size", "dilation", "seed"];

impl DiskConfig {
    /// Returns the configuration of a disk with this model and default settings.
    pub fn new(model: Spec) -> Self {
        let size = model.capacity().min(MAX_DEFAULT_SIZE);
        Self {
            words: model.name.clone(),
            filesystem: Filesystem::default(),
            size: Bytes::new(size.get() - size.get() % BLOCK_SIZE.get()),
            dilation: Dilation::Auto,
            seed: 1,
            name: None,
            model,
        }
    }

    /// Parses `MODEL[,key=value…]`. The keys `fs`, `size`, `dilation` and `seed` belong to the
    /// disk; other keys override the model's values. MODEL is a preset or the path of a TOML file.
    ///
    /// # Errors
    ///
    /// If the model, a key or a value is invalid. The error suggests the most similar name.
    pub fn parse(words: &str) -> Result<Self, VdiskError> {
        let words = NamedSettings::parse(words).map_err(SpecError::from)?;
        let mut model = model_named(words.name)?;
        let mut shown = words.name.to_owned();
        let (own, models): (Vec<_>, Vec<_>) =
            words.settings.into_iter().partition(|(key, _)| OWN_KEYS.contains(key));
        for (key, value) in models {
            model.set(key, value).map_err(|error| with_own_keys(error, &model))?;
            shown.push_str(&format!(",{key}={value}"));
        }
        model.validate()?;
        let mut config = Self { words: shown, ..Self::new(model) };
        for (key, value) in own {
            config.set(key, value)?;
        }
        config.check()?;
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), VdiskError> {
        let bad =
            |key, reason: String| VdiskError::BadValue { key, value: value.to_owned(), reason };
        match key {
            "fs" => {
                self.filesystem =
                    value.parse().map_err(|reason: &str| bad("fs", reason.to_owned()))?;
            }
            "size" => {
                let size: Bytes = value
                    .parse()
                    .map_err(|error: ParseUnitError| bad("size", error.to_string()))?;
                self.size = Bytes::new(size.get() - size.get() % BLOCK_SIZE.get());
            }
            "dilation" => self.dilation = value.parse()?,
            _ => {
                self.seed = value
                    .parse()
                    .map_err(|_| bad("seed", "must be a whole number of 0 or more".to_owned()))?;
            }
        }
        Ok(())
    }

    /// Checks size and dilation.
    pub(crate) fn check(&self) -> Result<(), VdiskError> {
        let bad = |reason| Err(VdiskError::BadSize { size: self.size, reason });
        let least = self.filesystem.maker().map_or(BLOCK_SIZE, |maker| maker.smallest);
        if self.size < least {
            return bad(format!("{} needs at least {least}", self.filesystem));
        }
        let capacity = self.model.capacity();
        if self.size > capacity {
            return bad(format!("the modelled device has only {}", capacity.rounded()));
        }
        if let Dilation::Fixed(factor) = self.dilation {
            Dilation::checked(factor)?;
        }
        Ok(())
    }

    /// Returns the effective dilation.
    pub fn dilation_factor(&self) -> f64 {
        match self.dilation {
            Dilation::Fixed(factor) => factor,
            Dilation::Auto => {
                let peak = self.model.peak();
                automatic(peak.throughput.get(), peak.requests)
            }
        }
    }
}

/// Returns the dilation at which this machine keeps up with a peak, rounded up to a tenth.
fn automatic(bytes_per_second: f64, requests_per_second: f64) -> f64 {
    let limit = |peak: f64, none: f64, kept: f64| if peak < none { peak / kept } else { 1.0 };
    let data = limit(bytes_per_second, NO_LIMIT_BYTES, KEEPS_UP_BYTES);
    let needed = data.max(limit(requests_per_second, NO_LIMIT_REQUESTS, KEEPS_UP_REQUESTS));
    ((needed * 10.0).ceil() / 10.0).clamp(1.0, *Dilation::RANGE.end())
}

/// Returns the model with this name: a preset or the path of a file.
///
/// # Errors
///
/// If there is no such preset, or the file cannot be read or is not a valid model.
pub fn model_named(name: &str) -> Result<Spec, VdiskError> {
    let Some(path) = model::description_path(name) else { return Ok(Spec::named(name)?) };
    let broken = |source| VdiskError::ModelFile { path: path.to_owned(), source };
    let text = sys::input::read_text(path, InputKind::MODEL)?;
    Spec::from_toml(&text).map_err(broken)
}

/// Adds the disk's own keys to the suggestions of the model's error.
fn with_own_keys(error: SpecError, model: &Spec) -> VdiskError {
    let SpecError::Setting(SettingError::UnknownKey { key, .. }) = error else {
        return error.into();
    };
    let keys = model.keys();
    let names = keys.iter().filter_map(|path| path.rsplit('.').next());
    let hint = match units::text::nearest(&key, OWN_KEYS.into_iter().chain(names)) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!(
            "the disk's own keys are {}; `foreread models show` prints a model with its keys",
            OWN_KEYS.join(", ")
        ),
    };
    SpecError::from(SettingError::UnknownKey { key, hint }).into()
}

/// Formats the specification that creates an identical disk.
impl fmt::Display for DiskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.to_string().replace(' ', "");
        let (words, fs, seed) = (&self.words, self.filesystem, self.seed);
        write!(f, "{words},fs={fs},size={size},dilation={},seed={seed}", self.dilation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_s_own_keys_are_told_from_the_model_s() {
        let config = DiskConfig::parse("hdd-2008,size=1G,fs=ext4,dilation=2.5,seed=7").unwrap();
        assert_eq!(config.filesystem, Filesystem::Ext4);
        assert_eq!(config.size, Bytes::from_gib(1));
        assert_eq!(config.dilation, Dilation::Fixed(2.5));
        assert_eq!((config.dilation_factor(), config.seed), (2.5, 7));
        assert_eq!(config.model, Spec::preset("hdd-2008").unwrap());
    }

    #[test]
    fn defaults_are_xfs_sparse_and_automatic() {
        let config = DiskConfig::parse("hdd-2008").unwrap();
        assert_eq!((config.filesystem, config.size), (Filesystem::Xfs, Bytes::from_gib(64)));
        assert_eq!((config.dilation, config.seed), (Dilation::Auto, 1));
    }

    #[test]
    fn what_is_shown_makes_the_same_disk() {
        for words in ["hdd-2008", "raid10-2008,chunk=128K,fs=raw,size=96M,dilation=3,seed=0"] {
            let config = DiskConfig::parse(words).unwrap();
            let again = DiskConfig::parse(&config.to_string()).unwrap();
            assert_eq!(again.to_string(), config.to_string());
            assert_eq!((again.model, again.size), (config.model, config.size));
        }
    }

    #[test]
    fn bad_words_are_refused_with_what_would_do() {
        for (words, says) in [
            ("hdd-2008,fs=fat", "xfs, ext4, ext3, btrfs or raw"),
            ("hdd-2008,size=10", "has no unit"),
            ("hdd-2008,size=8M", "xfs needs at least 300 MiB"),
            ("hdd-2008,size=0", "xfs needs at least 300 MiB"),
            ("hdd-2008,fs=raw,size=900T", "the modelled device has"),
            ("hdd-2008,dilation=0.05", "from 0.1 to 10000"),
            ("hdd-2008,dilation=nan", "from 0.1 to 10000"),
            ("hdd-2008,dilation=fast", "from 0.1 to 10000"),
            ("hdd-2008,seed=-1", "whole number"),
            ("hdd-2008,filesystem=ext4", "\"filesystem\": the disk's own keys are fs, size"),
            ("hdd-2008,sise=1G", "did you mean \"size\"?"),
            ("hdd-2008,rmp=5400", "did you mean \"rpm\"?"),
            ("hdd-2008,,fs=xfs", "after \"hdd-2008,\""),
            ("hdd-2008,fs=xfs,fs=ext4", "fs is given twice"),
            ("", "no model is named"),
            ("/no/such/model.toml", "/no/such/model.toml"),
        ] {
            let error = DiskConfig::parse(words).unwrap_err().to_string();
            assert!(error.contains(says), "{words}: {error}");
        }
        for words in ["", "no-such-disk", "hdd-2008,no_such_key=1", ",,,", "=", "\0"] {
            assert!(DiskConfig::parse(words).is_err(), "{words:?} was taken");
        }
    }

    #[test]
    fn a_model_can_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, Spec::preset("hdd-2008").unwrap().to_toml()).unwrap();
        let config = DiskConfig::parse(&format!("{},fs=raw", path.display())).unwrap();
        assert_eq!(config.model, Spec::preset("hdd-2008").unwrap());
        let again = DiskConfig::parse(&config.to_string()).unwrap();
        assert_eq!(again.model, config.model);
    }

    #[test]
    fn dilation_follows_whatever_is_the_harder_to_keep_up_with() {
        assert_eq!(automatic(100e6, 200.0), 1.0);
        assert_eq!(automatic(640e6, 200.0), 2.6);
        assert_eq!(automatic(640e6, 120e3), 6.0);
        assert_eq!(automatic(f64::NAN, f64::NAN), 1.0);
        assert_eq!(automatic(1e15, 2.4e11), 1.0);
        assert_eq!(automatic(1.1e12, 40e3), 2.0);
    }
}
