//! The target of a study, as the command line names it.

mod spec;

use std::fmt;
use std::path::{Path, PathBuf, absolute};

use model::Spec;
use serde::{Deserialize, Serialize};

use crate::error::TargetError;

pub use spec::{FromSpec, TargetSpec};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Real storage: a directory or mount point, in which files are created, or a file or block
    /// device, which is only read.
    Path(PathBuf),
    Virtual(TargetSpec<vdisk::DiskConfig>),
    Simulation(TargetSpec<sim::SimMachine>),
    /// Imported figures, with their title.
    Imported(String),
}

impl Target {
    /// Returns whether the target is only computed, so that nothing needs to be restored.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulation(_))
    }

    /// Parses `PATH`, `MAJ:MIN`, `virtual:MODEL[,key=value…]` or `sim:MODEL[,key=value…]`. Prefix a
    /// path that looks like one of the others with `./`: `./virtual:…`.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if let Some(words) = text.strip_prefix("sim:") {
            return TargetSpec::parse(words).map(Self::Simulation).map_err(|error| {
                TargetError::Simulation { target: text.to_owned(), reason: error.to_string() }
            });
        }
        if let Some(words) = text.strip_prefix("virtual:") {
            return TargetSpec::parse(words).map(Self::Virtual).map_err(|error| {
                TargetError::Virtual { target: text.to_owned(), reason: error.to_string() }
            });
        }
        if text.parse::<host::DevNo>().is_ok() {
            // A device number, not a path.
            return Ok(Self::Path(PathBuf::from(text)));
        }
        if let Some(meant) = meant_by(text) {
            return Err(TargetError::Mistyped { text: text.to_owned(), meant });
        }
        // Make the path absolute, because the same command in another directory must resume a run
        // only if it refers to the same path.
        Ok(Self::Path(absolute(text).unwrap_or_else(|_| PathBuf::from(text))))
    }
}

/// Returns the probable target if a path does not exist but resembles another kind of target:
/// `simm:nvme`, `virtual`, `nvme`.
fn meant_by(text: &str) -> Option<String> {
    let first = text.split([':', ',']).next().unwrap_or_default();
    if first.contains('/') || Path::new(text).symlink_metadata().is_ok() {
        return None;
    }
    let kinds = ["sim", "virtual"];
    let meant = match text.split_once(':') {
        Some((kind, words)) => {
            units::text::nearest(kind, kinds).map(|kind| format!("{kind}:{words}"))
        }
        // A similar single word is more likely a device name: sdm.
        None => kinds.into_iter().find(|kind| *kind == text).map(|kind| format!("{kind}:MODEL")),
    };
    if meant.is_some() {
        return meant;
    }
    Spec::preset(first).map(|_| format!("sim:{text} or virtual:{text}"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Virtual(spec) => write!(f, "virtual:{}", spec.text()),
            Self::Simulation(spec) => write!(f, "sim:{}", spec.text()),
            Self::Imported(title) => f.write_str(title),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let Ok(Target::Virtual(spec)) = Target::parse("virtual:hdd-2008,fs=ext4") else { panic!() };
        assert_eq!((spec.text(), spec.value_of("fs")), ("hdd-2008,fs=ext4", Some("ext4")));
        assert_eq!(Target::parse("/data"), Ok(Target::Path("/data".into())));
        assert_eq!(Target::parse("8:16"), Ok(Target::Path("8:16".into())));
        let here = std::env::current_dir().expect("a directory").join("virtual:x");
        assert_eq!(Target::parse("./virtual:x"), Ok(Target::Path(here)));
    }

    #[test]
    fn what_is_no_target_is_refused_with_a_way_out() {
        let refused = |text: &str| Target::parse(text).expect_err(text).to_string();
        assert!(refused("sim:raid10-2009").contains("raid10-2008"));
        assert!(refused("sim:hdd-2008,kernel=linux-6.1").contains("linux-6.18"));
        assert!(refused("virtual:no-such-model").contains("no-such-model"));
        assert!(refused("virtual:hdd-2008,fs=fat").contains("fs"));
        assert_eq!(Target::parse(""), Err(TargetError::Empty));
        for (text, meant) in [
            ("simm:nvme,cache=1G", "did you mean sim:nvme,cache=1G?"),
            ("Sim:nvme", "did you mean sim:nvme?"),
            ("vritual:nvme", "did you mean virtual:nvme?"),
            ("sim", "did you mean sim:MODEL?"),
            ("nvme,cache=1G", "did you mean sim:nvme,cache=1G or virtual:nvme,cache=1G?"),
        ] {
            assert!(refused(text).contains(meant), "{text}: {}", refused(text));
        }
        for path in ["sdm", "./simm:nvme", "/virtul"] {
            assert!(matches!(Target::parse(path), Ok(Target::Path(_))), "{path}");
        }
    }

    #[test]
    fn a_target_prints_as_it_is_read() {
        for text in ["virtual:nvme,dilation=4", "sim:nvme,cache=1G", "/dev/sda"] {
            assert_eq!(Target::parse(text).expect("a target").to_string(), text);
        }
    }

    #[test]
    fn a_stored_target_whose_model_is_gone_can_still_be_named() {
        let json = r#"{"simulation":"/gone/model.toml,cache=1G"}"#;
        let target: Target = serde_json::from_str(json).expect("a target");
        assert_eq!(target.to_string(), "sim:/gone/model.toml,cache=1G");
        assert_eq!(serde_json::to_string(&target).expect("JSON"), json);
        let Target::Simulation(spec) = target else { panic!() };
        assert!(spec.get().is_err());
    }
}
