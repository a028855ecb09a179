//! Computes the verdict for each goal alone, and the shape of its curve.

use stats::{deepest_dip, knee};
use units::Kib;

use super::analysis::WorkloadVerdict;
use super::costs::{gain, kib};
use super::curve::{Curve, SettingPoint};
use super::recommendation::TrialEvidence;
use super::types::{Difference, VerdictKind};
use crate::settings::CellSettings;

/// Minimum depth of a dip that is reported, as a share of the height before it.
const MIN_DIP_SHARE: f64 = 0.10;
/// The value that the authors of Kneedle recommend.
const KNEEDLE_SENSITIVITY: f64 = 1.0;

/// Returns the verdict for one goal alone; costs are ignored.
pub(super) fn verdict(curve: &Curve, found: Option<Kib>, streams: u32) -> Option<WorkloadVerdict> {
    let evidence = TrialEvidence::of_goal(curve, found.map(CellSettings::read_ahead));
    let choice = evidence.decide(streams);
    let ladder = evidence.ladder()?;
    let compared = choice.ladder.is_some();
    let clean = ladder.best.clean && ladder.economical.clean && compared;
    let kind = match curve.difference() {
        Difference::Faster | Difference::Slower if clean => VerdictKind::Better,
        Difference::NoMeasurableDifference if compared => VerdictKind::NoMeasurableDifference,
        _ => VerdictKind::Inconclusive,
    };
    let differs = kind == VerdictKind::Better;
    Some(WorkloadVerdict {
        workload: curve.name.clone(),
        kind,
        gain: choice.chosen.map(|chosen| gain(curve, chosen, &ladder)),
        decision: choice.decision,
        fastest_kib: kib(curve.best()?),
        economical_kib: differs.then(|| kib(ladder.economical)),
        best_kib: differs.then(|| kib(ladder.best)),
        knee_kib: bend(curve).filter(|_| differs),
        best_gain: differs.then(|| gain(curve, ladder.best, &ladder)),
    })
}

/// Returns the knee of a curve: the setting at which it bends from rising to flat.
fn bend(curve: &Curve) -> Option<Kib> {
    // Zero has no logarithm, so a window of 0 is placed one octave below a page of 4 KiB.
    let octave = |point: &SettingPoint| (point.settings.read_ahead.get().max(2) as f64).log2();
    let octaves: Vec<f64> = curve.points.iter().map(octave).collect();
    let medians: Vec<f64> = curve.points.iter().map(|point| point.median).collect();
    let at = knee(&octaves, &medians, KNEEDLE_SENSITIVITY)?;
    Some(curve.points.get(at)?.settings.read_ahead)
}

/// Returns notes on the shape of the curves.
pub(super) fn notes(goals: &[Curve]) -> Vec<String> {
    goals.iter().filter_map(dip).collect()
}

/// Describes a setting that is slower than a smaller and a larger one, as disk arrays show.
fn dip(curve: &Curve) -> Option<String> {
    let medians: Vec<f64> = curve.points.iter().map(|point| point.median).collect();
    let dip = deepest_dip(&medians, MIN_DIP_SHARE)?;
    let (from, bottom) = (&curve.points[dip.from], &curve.points[dip.bottom]);
    let sure = curve.ratio(bottom, from).decision_bounds().1 < 1.0 - MIN_DIP_SHARE / 2.0;
    sure.then(|| {
        format!(
            "{}: more is not always better: {} is {:.0} % slower than {}",
            curve.name,
            bottom.settings.read_ahead,
            dip.depth * 100.0,
            from.settings.read_ahead
        )
    })
}
