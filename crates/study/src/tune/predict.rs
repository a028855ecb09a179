//! Predicts a curve from the measurements of a run, including sweeps, by the model of `tune`.

use serde::Serialize;
use stats::Estimate;
use units::Kib;

use super::model::Model;
use crate::analyse::{Curve, throughputs};
use crate::settings::CellSettings;
use crate::store::Run;

/// Number of points of the curve per octave.
const PER_OCTAVE: f64 = 4.0;
/// Relative noise of a trial if repeats do not show it.
const USUAL_NOISE: f64 = 0.02;
/// Minimum number of settings for a curve.
const MIN_SETTINGS: usize = 4;
/// Half width of a 95 % interval in standard deviations.
const INTERVAL_SIGMAS: f64 = 1.96;

/// The prediction at a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictedPoint {
    pub read_ahead_kib: Kib,
    /// The predicted throughput with its 95 % interval.
    pub throughput_mib_s: Estimate,
}

/// Predicts a workload at and between the measured settings; empty if there are too few settings.
pub fn predict(run: &Run, workload: &str) -> Vec<PredictedPoint> {
    let curve = Curve::from_trials(&run.trials, workload, run.seed);
    let noise = curve.noise();
    let noise = if noise.freedom > 0.0 { (noise.squares / noise.freedom).sqrt() } else { 0.0 };
    let seen: Vec<(CellSettings, f64, usize)> = curve
        .points
        .iter()
        .filter_map(|point| {
            let values = throughputs(run.trials.iter(), workload, &point.settings);
            let logs: Vec<f64> = values.values().filter(|v| **v > 0.0).map(|v| v.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            (!logs.is_empty()).then_some((point.settings.clone(), mean, logs.len()))
        })
        .collect();
    let (Some((first, _, _)), Some((last, _, _))) = (seen.first(), seen.last()) else {
        return Vec::new();
    };
    if seen.len() < MIN_SETTINGS {
        return Vec::new();
    }
    let Some(model) = Model::learn(&seen, noise.max(USUAL_NOISE / 4.0)) else { return Vec::new() };
    let octave = |kib: Kib| (kib.get().max(2) as f64).log2();
    let (low, high) = (octave(first.read_ahead), octave(last.read_ahead));
    let steps = ((high - low) * PER_OCTAVE).ceil().max(1.0) as u32;
    let mut places: Vec<Kib> = (0..=steps)
        .map(|step| low + (high - low) * f64::from(step) / f64::from(steps))
        .map(|octave| Kib::new(octave.exp2().round() as u64))
        .collect();
    places.dedup();
    let at = |kib: Kib| {
        let expected = model.at(&CellSettings::read_ahead(kib));
        let half = INTERVAL_SIGMAS * expected.deviation;
        let [low, median, high] = [-half, 0.0, half].map(|off| (expected.mean + off).exp());
        PredictedPoint {
            read_ahead_kib: kib,
            throughput_mib_s: Estimate::interval(median, low, high),
        }
    };
    places.into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::plan::Repeats;
    use crate::sweep::BlockStrategy;
    use crate::synthetic::{World, published};

    #[test]
    fn the_curve_goes_through_what_was_measured() {
        let points = published("carey-perc6-xfs-front10", "rate_8_readers");
        let world = World { noise: 0.01, ..World::of(vec![("seq-8", points)]) };
        let repeats = Repeats::exactly(3);
        let run = world.run(world.study(&Grid::Full, |f| Box::new(BlockStrategy::new(f, repeats))));
        let curve = predict(&run, "seq-8");
        assert!(curve.len() > 40);
        for point in &curve {
            let truth = world.truth("seq-8", &CellSettings::read_ahead(point.read_ahead_kib));
            let expected = point.throughput_mib_s;
            assert!((expected.median / truth - 1.0).abs() < 0.1, "{point:?} but {truth}");
            assert!(expected.low() < expected.median && expected.median < expected.high());
        }
        assert!(predict(&run, "seq-1").is_empty());
    }
}
