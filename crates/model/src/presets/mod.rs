//! Presets of devices. Each is a TOML file with its sources, and one line in the list here.

use units::text::NamedSettings;

use crate::{Spec, SpecError};

#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    /// The specification as TOML, with the sources of its numbers in comments.
    pub toml: &'static str,
}

macro_rules! presets {
    ($($name:literal)*) => {
        &[$(Preset {
            name: $name,
            toml: include_str!(concat!("../../presets/", $name, ".toml")),
        }),*]
    };
}

static PRESETS: &[Preset] = presets![
    "hdd-2008"
    "hdd-15k-2008"
    "hdd-15k-2000"
    "hdd-laptop-2006"
    "hdd-modern"
    "ssd-sata"
    "nvme"
    "raid10-2008"
    "raid10-3ware-2008"
    "raid5-2012"
    "mirror-2010"
    "cloud-hdd"
    "cloud-ssd"
    "nfs"
    "zero"
];

pub fn presets() -> &'static [Preset] {
    PRESETS
}

impl Preset {
    /// Parses the preset's specification.
    ///
    /// # Errors
    ///
    /// None; a test parses all presets.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        Spec::from_toml(self.toml)
    }

    pub fn summary(&self) -> String {
        self.spec().map(|spec| spec.summary).unwrap_or_default()
    }
}

impl Spec {
    pub fn preset(name: &str) -> Option<Self> {
        presets().iter().find(|preset| preset.name == name)?.spec().ok()
    }

    /// Returns the preset with this name.
    ///
    /// # Errors
    ///
    /// If there is none; the error suggests the most similar name.
    pub fn named(name: &str) -> Result<Self, SpecError> {
        Self::preset(name).ok_or_else(|| SpecError::UnknownPreset {
            name: name.to_owned(),
            nearest: units::text::nearest(name, presets().iter().map(|preset| preset.name)),
        })
    }

    /// Parses `NAME[,key=value…]`, where `NAME` is a preset.
    ///
    /// # Errors
    ///
    /// If there is no such preset or a setting is invalid; see [`set`](Self::set).
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let NamedSettings { name, settings } = NamedSettings::parse(text)?;
        let mut spec = Self::named(name)?;
        for (key, value) in settings {
            spec.set(key, value)?;
        }
        spec.validate()?;
        Ok(spec)
    }
}
