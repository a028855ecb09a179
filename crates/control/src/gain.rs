//! Predicted against measured gains: how reliable the predictions are for each kind of action.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::action::ActionKind;
use crate::tuning::Tuning;

/// The kind of action that a gain results from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GainSource {
    /// The window of a mapping that is read at random.
    MappedWindow,
    /// The window of an open file that is read in runs.
    StreamWindow,
    /// Prefetching the rest of a run after its first miss.
    MissPrefetch,
    /// Prefetching along a trend.
    Trend,
}

/// The predicted and the measured gain of one action, as ratios; above 1 is an improvement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredGain {
    pub predicted: f64,
    pub measured: f64,
}

impl MeasuredGain {
    /// Returns the action that reports this gain, up to `most`.
    pub(crate) fn report(self, most: f64) -> ActionKind {
        let percent = |gain: f64| (100.0 * gain.min(most)).round() as u64;
        let (predicted_percent, measured_percent) =
            (percent(self.predicted), percent(self.measured));
        ActionKind::Report { predicted_percent, measured_percent }
    }
}

/// The geometric mean of the gains that were measured for several mappings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanGain {
    sum_of_logarithms: f64,
    count: u32,
}

impl MeanGain {
    pub fn with(self, gain: f64) -> Self {
        Self { sum_of_logarithms: self.sum_of_logarithms + gain.ln(), count: self.count + 1 }
    }

    /// Returns the mean without this gain, which must be part of it.
    pub fn without(self, gain: f64) -> Self {
        Self { sum_of_logarithms: self.sum_of_logarithms - gain.ln(), count: self.count - 1 }
    }

    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    pub fn mean(self) -> f64 {
        (self.sum_of_logarithms / f64::from(self.count.max(1))).exp()
    }
}

/// Statistics of the measured predictions of one source. They use natural logarithms, so that ×0.5
/// and ×2 are errors of equal size. Later predictions have more weight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    count: u64,
    predicted: f64,
    measured: f64,
    /// The mean absolute error, and the mean amount by which measured gains fall short.
    error: f64,
    shortfall: f64,
}

/// The scores of all sources on a device.
#[derive(Clone, Debug, Default)]
pub struct GainScores {
    records: BTreeMap<GainSource, Record>,
    tuning: Arc<Tuning>,
}

impl GainScores {
    pub(crate) fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds the predicted and the measured gain of an action.
    pub(crate) fn add(&mut self, source: GainSource, gain: MeasuredGain) {
        let (predicted, measured) = (self.clamped(gain.predicted), self.clamped(gain.measured));
        let record = self.records.entry(source).or_insert(Record {
            count: 0,
            predicted,
            measured,
            error: self.tuning.min_effect,
            shortfall: self.tuning.min_share,
        });
        record.count += 1;
        let weight = self.tuning.latest_weight();
        let towards = |mean: &mut f64, value: f64| *mean += weight * (value - *mean);
        towards(&mut record.predicted, predicted);
        towards(&mut record.measured, measured);
        towards(&mut record.error, (predicted - measured).abs());
        towards(&mut record.shortfall, (predicted - measured).max(0.0));
    }

    /// Returns whether an action with this predicted gain is worth trying: the gain exceeds the
    /// mean shortfall of such predictions so far.
    pub(crate) fn is_worth(&self, source: GainSource, predicted: f64) -> bool {
        let shortfall =
            self.records.get(&source).map_or(self.tuning.min_share, |record| record.shortfall);
        predicted.max(1e-9).ln() > shortfall
    }

    /// Returns the typical error of the predictions of a source, as a ratio above 1.
    pub fn error(&self, source: GainSource) -> f64 {
        self.records.get(&source).map_or(self.tuning.min_effect, |record| record.error).exp()
    }

    /// Returns the mean gains of all sources, weighted by their numbers of predictions; `None`
    /// before the first.
    pub fn overall(&self) -> Option<MeasuredGain> {
        let count: u64 = self.records.values().map(|record| record.count).sum();
        let mean = |of: fn(&Record) -> f64| {
            let sum: f64 =
                self.records.values().map(|record| of(record) * record.count as f64).sum();
            (sum / count as f64).exp()
        };
        (count > 0).then(|| MeasuredGain {
            predicted: mean(|record| record.predicted),
            measured: mean(|record| record.measured),
        })
    }

    /// Returns the logarithm of a gain within the bounds of what is reported.
    fn clamped(&self, gain: f64) -> f64 {
        gain.clamp(1.0 / self.tuning.max_gain(), self.tuning.max_gain()).ln()
    }

    /// Formats a gain: `predicted ×6.1, measured ×5.4 (error so far ×1.20)`.
    pub(crate) fn describe(&self, source: GainSource, gain: MeasuredGain) -> String {
        let MeasuredGain { predicted, measured } = gain;
        let error = self.error(source);
        format!("predicted ×{predicted:.2}, measured ×{measured:.2} (error so far ×{error:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: GainSource = GainSource::MappedWindow;

    #[test]
    fn wrong_predictions_cost_their_source_weight() {
        let mut scores = GainScores::default();
        assert!(scores.is_worth(SOURCE, 1.2) && !scores.is_worth(SOURCE, 1.01));
        for _ in 0..8 {
            scores.add(SOURCE, MeasuredGain { predicted: 1.5, measured: 0.9 });
        }
        assert!(!scores.is_worth(SOURCE, 1.4), "{scores:?}");
        assert!(scores.is_worth(SOURCE, 3.0), "{scores:?}");
        assert!(scores.is_worth(GainSource::Trend, 1.2), "another source keeps its weight");
        for _ in 0..20 {
            scores.add(SOURCE, MeasuredGain { predicted: 1.5, measured: 1.6 });
        }
        assert!(scores.is_worth(SOURCE, 1.2), "{scores:?}");
        let overall = scores.overall().expect("gains");
        assert!((1.4..1.6).contains(&overall.predicted) && (1.4..1.7).contains(&overall.measured));
    }
}
