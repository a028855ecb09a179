//! Compares foreread's own engine with fio, if both ran the same jobs.

use serde::Serialize;
use study::Cell;
use units::Kib;

use crate::clean;
use crate::run_report::RunReport;

/// Maximum relative difference at which engines agree.
const MAX_RELATIVE_DIFFERENCE: f64 = 0.05;
/// Suffixes of the names of workloads that both engines ran.
const NATIVE: &str = ".native";
const FIO: &str = ".fio";

/// The conclusion that the repeats support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineAgreement {
    /// The whole interval of the ratio is within 5 % of 1.
    Within,
    /// The whole interval is further than 5 % from 1.
    Outside,
    /// The interval contains a limit: more repeats are needed.
    Undecided,
}

impl EngineAgreement {
    fn of(low: f64, high: f64) -> Self {
        let (least, most) = (1.0 - MAX_RELATIVE_DIFFERENCE, 1.0 + MAX_RELATIVE_DIFFERENCE);
        match () {
            () if low >= least && high <= most => Self::Within,
            () if high < least || low > most => Self::Outside,
            () => Self::Undecided,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Within => "within 5 %",
            Self::Outside => "outside 5 %",
            Self::Undecided => "not decided",
        }
    }
}

/// Figures of both engines at one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnginePair {
    pub workload: String,
    pub read_ahead_kib: Kib,
    /// Median throughput of foreread's own engine.
    pub native_mib_s: f64,
    pub fio_mib_s: f64,
    /// Median of fio ÷ median of foreread's own engine.
    pub ratio: f64,
    /// Lower end of the ratio's interval or range; `None` with a single repeat.
    pub ratio_low: Option<f64>,
    pub ratio_high: Option<f64>,
    /// Kind of the ends: `ci95`, `range` or `none`.
    pub ratio_spread: &'static str,
    /// Conclusion from the interval, or from three times the width of a range.
    pub agreement: EngineAgreement,
}

/// Returns all pairs of a run, in the order of its cells.
pub fn engine_pairs(report: &RunReport<'_>) -> Vec<EnginePair> {
    let cells = &report.analysis.cells;
    let pair = |native: &Cell| {
        let name = native.workload.strip_suffix(NATIVE)?;
        let fio = cells.iter().find(|cell| {
            cell.settings == native.settings && cell.workload.strip_suffix(FIO) == Some(name)
        })?;
        let (native_mib_s, fio_mib_s) =
            (native.throughput_mib_s.median, fio.throughput_mib_s.median);
        let ratio = fio_mib_s / native_mib_s;
        // The engines vary independently: they do not share the cause of their variation, which is
        // how the eight readers interleave.
        let spread = fio.throughput_mib_s.over(&native.throughput_mib_s);
        let (low, high) = spread.bounds().unzip();
        let (least, most) = spread.decision_bounds();
        ratio.is_finite().then(|| EnginePair {
            workload: name.to_owned(),
            read_ahead_kib: native.settings.read_ahead,
            native_mib_s,
            fio_mib_s,
            ratio,
            ratio_low: low,
            ratio_high: high,
            ratio_spread: spread.spread_kind(),
            agreement: EngineAgreement::of(least, most),
        })
    };
    cells.iter().filter_map(pair).collect()
}

/// Returns the table and its conclusion; empty if only one engine ran.
pub(crate) fn engines_text(report: &RunReport<'_>) -> String {
    let pairs = engine_pairs(report);
    let off = |pair: &EnginePair| (pair.ratio - 1.0).abs();
    let Some(worst) = pairs.iter().max_by(|a, b| off(a).total_cmp(&off(b))) else {
        return String::new();
    };
    let mut text = "\nThe same jobs by both engines (medians, MiB/s):\n".to_owned();
    text.push_str(&format!(
        "  {:<20} {:>12} {:>10} {:>10} {:>8} {:>15}\n",
        "workload", "read-ahead", "native", "fio", "ratio", "95 % CI or a–b"
    ));
    for pair in &pairs {
        text.push_str(&format!(
            "  {:<20} {:>12} {:>10.1} {:>10.1} {:>8.3} {:>15}  {}\n",
            clean::plain(&pair.workload),
            pair.read_ahead_kib.to_string(),
            pair.native_mib_s,
            pair.fio_mib_s,
            pair.ratio,
            match (pair.ratio_low, pair.ratio_high) {
                (Some(low), Some(high)) if pair.ratio_spread == "ci95" => {
                    format!("{low:.3} to {high:.3}")
                }
                (Some(low), Some(high)) => format!("{low:.3}–{high:.3}"),
                _ => "–".to_owned(),
            },
            pair.agreement.word()
        ));
    }
    if let Some(legend) = spread_legend(&pairs) {
        text.push_str(legend);
    }
    let (percent, most) = (off(worst) * 100.0, MAX_RELATIVE_DIFFERENCE * 100.0);
    let place = format!("{} at {}", clean::plain(&worst.workload), worst.read_ahead_kib);
    let all = |agreement| pairs.iter().all(|pair| pair.agreement == agreement);
    let outside = pairs.iter().any(|pair| pair.agreement == EngineAgreement::Outside);
    text.push_str(&match () {
        () if outside => format!("They do not agree: {percent:.1} % apart ({place}).\n"),
        () if all(EngineAgreement::Within) => {
            format!("They agree within {most:.0} %: at most {percent:.1} % apart ({place}).\n")
        }
        () => format!(
            "Medians are at most {percent:.1} % apart ({place}); more --repeats are needed to \
             decide whether that is within {most:.0} %.\n"
        ),
    });
    text
}

/// Explains a range in the table, if there is one.
fn spread_legend(pairs: &[EnginePair]) -> Option<&'static str> {
    let range = pairs.iter().any(|pair| pair.ratio_spread == "range");
    range.then_some("  a–b: range of fewer than five repeats, too few for an interval\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_agrees_disagrees_or_does_not_tell() {
        assert_eq!(EngineAgreement::of(0.96, 1.04), EngineAgreement::Within);
        assert_eq!(EngineAgreement::of(0.90, 0.94), EngineAgreement::Outside);
        assert_eq!(EngineAgreement::of(1.06, 1.20), EngineAgreement::Outside);
        assert_eq!(EngineAgreement::of(0.94, 1.02), EngineAgreement::Undecided);
        assert_eq!(
            EngineAgreement::of(f64::NEG_INFINITY, f64::INFINITY),
            EngineAgreement::Undecided
        );
    }
}
