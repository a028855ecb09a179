//! Selects one value from the published recommendations, for `apply --preset`.

use thiserror::Error;
use units::Kib;

use super::{VendorAdvice, VendorPreset, groups, named};

/// A value and the recommendation that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenPreset {
    pub preset: &'static VendorPreset,
    pub value: Kib,
}

/// Why a preset name does not select one value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChoiceError {
    #[error("no recommendations for {name:?}; there are some for {known}")]
    Unknown { name: String, known: String },
    /// No recommendation with this name is a number for a device.
    #[error(
        "the recommendation for {name} is not a number for a device: see `foreread presets \
             {name}`"
    )]
    NoNumber { name: String },
    #[error(
        "{name} leaves a choice ({choices}): write --preset {name}=VALUE, as in {name}={example}K"
    )]
    Several {
        name: String,
        /// The recommended values in KiB.
        choices: String,
        example: u64,
    },
    /// The value does not follow any of the recommendations.
    #[error("{value} follows none of the recommendations for {name} ({choices})")]
    Unadvised {
        name: String,
        value: Kib,
        /// The recommended values in KiB.
        choices: String,
    },
}

/// Returns the recommended value if there is exactly one, or `value` if it follows a
/// recommendation. Ignores withdrawn recommendations.
pub fn choose(name: &str, value: Option<Kib>) -> Result<ChosenPreset, ChoiceError> {
    let found = named(name);
    let name = name.to_owned();
    if found.is_empty() {
        let known: Vec<&str> = groups().iter().map(|group| group.name.as_str()).collect();
        return Err(ChoiceError::Unknown { name, known: known.join(", ") });
    }
    let numbers: Vec<&'static VendorPreset> = found
        .into_iter()
        .filter(|preset| preset.about_device() && !preset.outdated())
        .filter(|preset| preset.advice.range().is_some())
        .collect();
    let Some(first) = numbers.first() else { return Err(ChoiceError::NoNumber { name }) };
    if let Some(value) = value {
        let follows = |preset: &&&VendorPreset| preset.advice.allows(value) == Some(true);
        let choices = choices(&numbers);
        return match numbers.iter().find(follows) {
            Some(preset) => Ok(ChosenPreset { preset, value }),
            None => Err(ChoiceError::Unadvised { name, value, choices }),
        };
    }
    match exact(&first.advice) {
        Some(value) if numbers.iter().all(|preset| exact(&preset.advice) == Some(value)) => {
            Ok(ChosenPreset { preset: first, value })
        }
        _ => {
            let example = first.advice.range().map_or(128, |(low, high)| {
                // The range of an upper bound starts at 0, which is not a useful example.
                if low.get() == 0 { high.get() } else { low.get() }
            });
            Err(ChoiceError::Several { name, choices: choices(&numbers), example })
        }
    }
}

/// Returns the value if the advice is exactly one.
fn exact(advice: &VendorAdvice) -> Option<Kib> {
    match advice {
        VendorAdvice::Between(low, high) if low == high => Some(*low),
        _ => None,
    }
}

fn choices(numbers: &[&'static VendorPreset]) -> String {
    let one = |preset: &&VendorPreset| {
        format!("{} KiB by {} for {}", preset.recommended_kib, preset.software, preset.device)
    };
    let mut all: Vec<String> = numbers.iter().map(one).collect();
    all.dedup();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_taken_and_a_choice_is_asked_for() {
        let greenplum = choose("greenplum", None).unwrap();
        assert_eq!(greenplum.value, Kib::new(8192));
        assert!(!greenplum.preset.source_ref.is_empty());
        let several = choose("mongodb", None).unwrap_err().to_string();
        assert!(several.contains("--preset mongodb=VALUE"), "{several}");
        assert_eq!(choose("mongodb", Some(Kib::new(16))).unwrap().value, Kib::new(16));
        let unadvised = choose("mongodb", Some(Kib::new(1024))).unwrap_err();
        assert!(matches!(unadvised, ChoiceError::Unadvised { .. }), "{unadvised}");
        let unknown = choose("mongobd", None).unwrap_err();
        assert!(unknown.to_string().contains("there are some for mongodb, "), "{unknown}");
        assert!(matches!(choose("llama", None), Err(ChoiceError::NoNumber { .. })));
    }
}
