//! Devices with a name, each a TOML file with its sources and one line in the list here.

use crate::{Spec, SpecError};

/// A device with a name.
#[derive(Debug)]
pub struct Preset {
    /// What it is asked for by.
    pub name: &'static str,
    /// The description, with the sources of its numbers in comments.
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

/// All of them.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

impl Preset {
    /// What it describes.
    ///
    /// # Errors
    ///
    /// None that a test would not have found.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        Spec::from_toml(self.toml)
    }

    /// What it is, in one line.
    pub fn summary(&self) -> String {
        self.spec().map(|spec| spec.summary).unwrap_or_default()
    }
}
