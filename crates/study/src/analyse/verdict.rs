//! From curves to recommendations.

use stats::{deepest_dip, knee};
use units::Kib;

use super::curve::{Curve, Point, in_a_word, overall};
use super::price::prices;
use super::types::{Cell, Difference, Gain, Verdict, VerdictKind, WorkloadVerdict};
use crate::settings::Settings;
use crate::store::Run;

/// The share of the possible gain that the conservative setting gets. The possible gain is the
/// best median less that of the lowest setting measured.
pub(crate) const CONSERVATIVE: f64 = 0.80;

/// A dip in a curve worth mentioning.
const DIP: f64 = 0.10;

/// What the authors of Kneedle recommend.
const SENSITIVITY: f64 = 1.0;

/// The recommendation of one curve.
struct Choice<'a> {
    kind: VerdictKind,
    conservative: Option<&'a Point>,
    full: Option<&'a Point>,
    /// What would be the best or recommended, but for the want of an undisturbed trial.
    doubted: Option<Settings>,
}

fn choose(curve: &Curve) -> Choice<'_> {
    let nothing = |kind| Choice { kind, conservative: None, full: None, doubted: None };
    let Some(best) = curve.best() else { return nothing(VerdictKind::Inconclusive) };
    match curve.difference() {
        Difference::NoMeasurableDifference => return nothing(VerdictKind::NoMeasurableDifference),
        Difference::Inconclusive => return nothing(VerdictKind::Inconclusive),
        Difference::Better | Difference::Worse => {}
    }
    let full = curve.confirmed().find(|point| curve.as_good(point, best)).unwrap_or(best);
    let floor = curve.points.first().unwrap_or(best);
    let enough = floor.median + CONSERVATIVE * (best.median - floor.median);
    let conservative = curve
        .confirmed()
        .find(|point| point.median >= enough)
        .filter(|point| point.settings <= full.settings)
        .unwrap_or(full);
    // What disturbed it may have made it look better than it is, or worse.
    if let Some(point) = [best, full, conservative].into_iter().find(|point| !point.clean) {
        let doubted = Some(point.settings);
        return Choice { doubted, ..nothing(VerdictKind::Inconclusive) };
    }
    let kind = VerdictKind::Better;
    Choice { kind, conservative: Some(conservative), full: Some(full), doubted: None }
}

/// What a setting gains over what the device had, or over the lowest setting measured.
fn gain(curve: &Curve, point: &Point, found: Option<Kib>) -> Option<Gain> {
    let found = found.and_then(|found| curve.at(Settings::read_ahead(found)));
    let over = found.or(curve.points.first())?;
    let ratio = curve.ratio(point, over);
    Some(Gain {
        over_kib: over.settings.read_ahead,
        over_found: found.is_some(),
        difference: in_a_word(&ratio),
        ratio,
    })
}

fn kib(point: Option<&Point>) -> Option<Kib> {
    point.map(|point| point.settings.read_ahead)
}

/// The recommendation over all goals, and for each.
pub(super) fn verdict(run: &Run, goals: &[Curve], cells: &[Cell]) -> Verdict {
    let together = overall(goals, run.seed);
    // One goal is its own curve, in its own unit.
    let curve = if let [only] = goals { only } else { &together };
    let choice = choose(curve);
    let gain = |point: Option<&Point>| point.and_then(|point| gain(curve, point, run.found));
    let mut named: Vec<Kib> =
        [kib(choice.conservative), kib(choice.full)].into_iter().flatten().collect();
    named.dedup();
    Verdict {
        kind: choice.kind,
        doubt: choice.doubted.map(|settings| {
            let kib = settings.read_ahead;
            format!("the verdict would rest on {kib}, which has no undisturbed trial")
        }),
        conservative_kib: kib(choice.conservative),
        full_kib: kib(choice.full),
        gain: gain(choice.full),
        conservative_gain: gain(choice.conservative),
        price: prices(run, cells, &named),
        per_workload: goals.iter().filter_map(|goal| of_goal(goal, run.found)).collect(),
    }
}

fn of_goal(curve: &Curve, found: Option<Kib>) -> Option<WorkloadVerdict> {
    let choice = choose(curve);
    Some(WorkloadVerdict {
        workload: curve.name.clone(),
        kind: choice.kind,
        best_kib: curve.best()?.settings.read_ahead,
        conservative_kib: kib(choice.conservative),
        full_kib: kib(choice.full),
        knee_kib: bend(curve).filter(|_| choice.kind == VerdictKind::Better),
        gain: choice.full.and_then(|point| gain(curve, point, found)),
    })
}

/// Where a curve bends from rising to flat.
fn bend(curve: &Curve) -> Option<Kib> {
    // No read-ahead at all has no logarithm: it is a page less than a page.
    let octave = |point: &Point| (point.settings.read_ahead.get().max(2) as f64).log2();
    let octaves: Vec<f64> = curve.points.iter().map(octave).collect();
    let medians: Vec<f64> = curve.points.iter().map(|point| point.median).collect();
    let at = knee(&octaves, &medians, SENSITIVITY)?;
    Some(curve.points.get(at)?.settings.read_ahead)
}

/// What has to be said about the shape of the curves.
pub(super) fn notes(goals: &[Curve]) -> Vec<String> {
    goals.iter().filter_map(dip).collect()
}

/// More is not always better: arrays have settings that are worse than smaller and larger ones.
fn dip(curve: &Curve) -> Option<String> {
    let medians: Vec<f64> = curve.points.iter().map(|point| point.median).collect();
    let dip = deepest_dip(&medians, DIP)?;
    let (from, bottom) = (&curve.points[dip.from], &curve.points[dip.bottom]);
    let sure = curve.ratio(bottom, from).decision_bounds().1 < 1.0 - DIP / 2.0;
    sure.then(|| {
        format!(
            "{}: more is not always better: {} gets {:.0} % less than {}",
            curve.name,
            bottom.settings.read_ahead,
            dip.depth * 100.0,
            from.settings.read_ahead
        )
    })
}
