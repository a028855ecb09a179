//! Whether our own engine and fio agree, where both ran the same jobs.

use serde::Serialize;
use study::Cell;
use units::Kib;

use crate::clean;
use crate::findings::Findings;

/// Medians that differ by no more than this agree.
const AGREEMENT: f64 = 0.05;
/// The ends of the names of workloads that both ran.
const NATIVE: &str = ".native";
const FIO: &str = ".fio";

/// What both engines got at one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnginePair {
    /// The jobs.
    pub workload: String,
    /// The setting.
    pub read_ahead_kib: Kib,
    /// The median of our own engine.
    pub native_mib_s: f64,
    /// The median of fio.
    pub fio_mib_s: f64,
    /// What fio got of what our own engine got.
    pub ratio: f64,
}

/// All pairs of a run, in the order of its cells.
pub fn engine_pairs(findings: &Findings<'_>) -> Vec<EnginePair> {
    let cells = &findings.analysis.cells;
    let pair = |native: &Cell| {
        let name = native.workload.strip_suffix(NATIVE)?;
        let fio = cells.iter().find(|cell| {
            cell.settings == native.settings && cell.workload.strip_suffix(FIO) == Some(name)
        })?;
        let (native_mib_s, fio_mib_s) =
            (native.throughput_mib_s.median, fio.throughput_mib_s.median);
        let ratio = fio_mib_s / native_mib_s;
        ratio.is_finite().then(|| EnginePair {
            workload: name.to_owned(),
            read_ahead_kib: native.settings.read_ahead,
            native_mib_s,
            fio_mib_s,
            ratio,
        })
    };
    cells.iter().filter_map(pair).collect()
}

/// The table and what it says; nothing where only one engine ran.
pub(crate) fn engines_text(findings: &Findings<'_>) -> String {
    let pairs = engine_pairs(findings);
    let off = |pair: &EnginePair| (pair.ratio - 1.0).abs();
    let Some(worst) = pairs.iter().max_by(|a, b| off(a).total_cmp(&off(b))) else {
        return String::new();
    };
    let mut text = "\nThe same jobs by both engines (medians, MiB/s):\n".to_owned();
    text.push_str(&format!(
        "  {:<20} {:>12} {:>10} {:>10} {:>8}\n",
        "workload", "read-ahead", "native", "fio", "ratio"
    ));
    for pair in &pairs {
        text.push_str(&format!(
            "  {:<20} {:>12} {:>10.1} {:>10.1} {:>8.3}\n",
            clean::plain(&pair.workload),
            pair.read_ahead_kib.to_string(),
            pair.native_mib_s,
            pair.fio_mib_s,
            pair.ratio
        ));
    }
    let (percent, most) = (off(worst) * 100.0, AGREEMENT * 100.0);
    let place = format!("{} at {}", clean::plain(&worst.workload), worst.read_ahead_kib);
    text.push_str(&match off(worst) <= AGREEMENT {
        true => format!("They agree within {most:.0} %: at most {percent:.1} % apart ({place}).\n"),
        false => format!("They do not agree: {percent:.1} % apart ({place}).\n"),
    });
    text
}
