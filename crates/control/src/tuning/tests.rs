use super::*;
use crate::POLICIES;

/// The number of independent thresholds. A new one must be worth more than an old one.
const MAX_THRESHOLDS: usize = 40;

fn error(spec: &str) -> String {
    POLICIES.parse(spec).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn there_are_few_thresholds_and_each_has_a_short_help_text() {
    assert!(Tuning::PARAMETERS.len() <= MAX_THRESHOLDS, "{}", Tuning::PARAMETERS.len());
    for parameter in Tuning::PARAMETERS {
        let length = parameter.summary.chars().count();
        assert!((10..100).contains(&length), "{}: {length}", parameter.name);
    }
}

#[test]
fn each_threshold_can_be_set_and_has_a_range() {
    for Parameter { name, default, .. } in Tuning::PARAMETERS {
        assert_eq!(error(&format!("auto,{name}={default}")), "", "{name}");
        assert!(error(&format!("auto,{name}=purple")).contains(name), "{name}");
        let unit = default.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let large = error(&format!("auto,{name}=9999999{unit}"));
        // Not even a `u8` could hold it.
        assert!(large.contains("must be "), "{name}: {large}");
    }
}

#[test]
fn a_wrong_threshold_is_explained() {
    assert!(error("auto,min_efect=0.1").contains("did you mean \"min_effect\"?"));
    assert!(error("auto,min_effect=3").contains("must be 0.001 to 0.5"));
    assert!(error("auto,idle_timeout=3").contains("has no unit"));
    assert!(error("auto,idle_timeout=2h").contains("must be 1ms to 1h"));
    assert!(error("auto,few_samples=1").contains("must be 2 to 256"));
    assert!(error("auto,few_samples=8.5").contains("must be a whole number"));
}

#[test]
fn extreme_values_do_not_panic_in_derived_thresholds() {
    let tuning = Tuning { few_samples: 2, lookahead_intervals: 256, ..Tuning::DEFAULT };
    assert_eq!((tuning.settling_intervals(), tuning.min_repeats()), (1, 1));
    let tuning = Tuning { max_loss_share: 0.5, ..Tuning::DEFAULT };
    let (least, most) = tuning.min_gain_ratios();
    assert!(least <= most);
}
