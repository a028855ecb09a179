//! Devices with a name, each a TOML file with its sources and one line in the list here.

/// A device with a name.
#[derive(Debug)]
pub struct Preset {
    /// What it is asked for by.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The description, with sources in its comments.
    pub toml: &'static str,
}

static PRESETS: &[Preset] = &[];

/// All of them.
pub fn presets() -> &'static [Preset] {
    PRESETS
}
