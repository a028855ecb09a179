//! The three settings of a curve that a recommendation is made of.

use super::curve::{Curve, SettingPoint};
use crate::settings::CellSettings;

/// The share of the possible gain that the economical setting has at least.
pub(crate) const ECONOMICAL_SHARE: f64 = 0.80;
/// Medians within this of one another are taken for the same, so that the noise of a trial does not
/// choose between neighbours.
pub(crate) const SAME_MEDIAN_MARGIN: f64 = 0.02;

/// What the device has, the smallest setting with most of the possible gain, and the best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder<'a> {
    /// What gains are relative to: the setting that the device has, or the lowest one measured.
    pub(crate) base: &'a SettingPoint,
    /// Whether the base is what the device has.
    pub(crate) base_is_found: bool,
    /// The smallest setting with [`ECONOMICAL_SHARE`] of the possible gain over the base.
    pub(crate) economical: &'a SettingPoint,
    /// The smallest setting that is not measurably below the highest median.
    pub(crate) best: &'a SettingPoint,
    /// The setting with the highest median.
    pub(crate) top: &'a SettingPoint,
}

impl<'a> Ladder<'a> {
    /// The ladder of the settings that were repeated often enough to be believed.
    pub(crate) fn of(curve: &'a Curve, found: Option<&CellSettings>) -> Option<Self> {
        Self::among(curve, found, &curve.confirmed().collect::<Vec<_>>())
    }

    /// The same of all settings, those measured once included: what is worth repeating.
    pub(crate) fn hoped_for(curve: &'a Curve, found: Option<&CellSettings>) -> Option<Self> {
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
        // More than the best needs is not economical.
        let economical = if economical.settings > best.settings { best } else { economical };
        Some(Self { base, base_is_found: present.is_some(), economical, best, top })
    }
}

/// What a setting has to reach to be economical, if the base and the best reach this.
pub(crate) fn enough(base: f64, best: f64) -> f64 {
    (base + ECONOMICAL_SHARE * (best - base)) * (1.0 - SAME_MEDIAN_MARGIN)
}
