//! The three settings of a curve on which a recommendation is based.

use super::curve::{Curve, SettingPoint};
use crate::settings::CellSettings;

/// Minimum share of the possible gain for the economical setting.
pub(crate) const ECONOMICAL_SHARE: f64 = 0.80;
/// Medians within this share of each other count as equal, so that the noise of one trial does not
/// choose between neighbours.
pub(crate) const SAME_MEDIAN_MARGIN: f64 = 0.03;

/// The current setting, the economical setting and the best setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder<'a> {
    /// The baseline of gains: the device's current setting, or the smallest measured one.
    pub(crate) base: &'a SettingPoint,
    /// Whether the base is the device's current setting.
    pub(crate) base_is_found: bool,
    /// The smallest setting with [`ECONOMICAL_SHARE`] of the possible gain over the base.
    pub(crate) economical: &'a SettingPoint,
    /// The smallest setting that is not measurably slower than `top`.
    pub(crate) best: &'a SettingPoint,
    /// The candidate with the highest median.
    pub(crate) top: &'a SettingPoint,
}

impl<'a> Ladder<'a> {
    /// Returns the ladder of the settings with enough repeats.
    pub(crate) fn from_curve(curve: &'a Curve, found: Option<&CellSettings>) -> Option<Self> {
        Self::among(curve, found, &curve.confirmed().collect::<Vec<_>>())
    }

    /// Returns the ladder of all settings, including those measured once, to choose what to repeat.
    pub(crate) fn including_unrepeated(
        curve: &'a Curve,
        found: Option<&CellSettings>,
    ) -> Option<Self> {
        Self::among(curve, found, &curve.points.iter().collect::<Vec<_>>())
    }

    fn among(
        curve: &'a Curve,
        found: Option<&CellSettings>,
        candidates: &[&'a SettingPoint],
    ) -> Option<Self> {
        let present = found.and_then(|found| curve.at(found));
        let base = present.or(curve.points.first())?;
        let top: &'a SettingPoint = candidates
            .iter()
            .max_by(|a, b| a.median.total_cmp(&b.median).then(b.settings.cmp(&a.settings)))?;
        let mut ascending = candidates.iter().copied();
        let best = ascending.find(|point| curve.as_good(point, top)).unwrap_or(top);
        let enough = enough(base.median, top.median);
        let mut ascending = candidates.iter().copied();
        let economical = ascending.find(|point| point.median >= enough).unwrap_or(best);
        // The economical setting is never larger than the best.
        let economical = if economical.settings > best.settings { best } else { economical };
        Some(Self { base, base_is_found: present.is_some(), economical, best, top })
    }
}

/// Returns the throughput that an economical setting needs, given those of the base and the best.
pub(crate) fn enough(base: f64, best: f64) -> f64 {
    (base + ECONOMICAL_SHARE * (best - base)) * (1.0 - SAME_MEDIAN_MARGIN)
}
