//! The table of a study for every format: one row per setting, one column per workload.

use study::Cell;
use units::Kib;

use crate::number::{short, spread_text};
use crate::run_report::RunReport;
use crate::shade::Shades;

/// Shades from the worst to the best figure of a column, for terminals without colours.
pub(crate) const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

pub(crate) struct Table {
    /// Names of the workloads, in the order of the plan.
    pub workloads: Vec<String>,
    pub rows: Vec<Row>,
}

pub(crate) struct Row {
    pub setting: Kib,
    /// Marks of the setting, such as `now`.
    pub marks: Vec<&'static str>,
    /// Figures of each workload; `None` if not measured.
    pub figures: Vec<Option<Figures>>,
}

pub(crate) struct Figures {
    pub throughput: String,
    /// Half of the interval, or the range; `None` for a single measurement.
    pub spread: Option<String>,
    /// Bytes from the device ÷ bytes requested.
    pub amplification: Option<String>,
    /// Rank within the column: an index into [`SHADES`].
    pub shade: usize,
}

impl Figures {
    fn of(cell: &Cell, shades: Shades) -> Option<Self> {
        Some(Self {
            throughput: short(cell.throughput_mib_s.median)?,
            spread: spread_text(&cell.throughput_mib_s),
            amplification: cell.amplification.and_then(|amplification| short(amplification.median)),
            shade: shades.shade(cell.throughput_mib_s.median, SHADES.len() - 1),
        })
    }
}

impl Table {
    pub fn new(report: &RunReport<'_>) -> Self {
        let workloads: Vec<String> =
            report.workloads().iter().map(|planned| planned.workload.name.clone()).collect();
        let range = |name: &String| {
            let cells = report.analysis.cells.iter().filter(|cell| cell.workload == *name);
            Shades::new(cells.map(|cell| cell.throughput_mib_s.median))
        };
        let shades: Vec<Shades> = workloads.iter().map(range).collect();
        let figures = |setting, (name, shades): (&String, &Shades)| {
            report.cell(setting, name).and_then(|cell| Figures::of(cell, *shades))
        };
        let row = |setting| Row {
            setting,
            marks: report.marks(setting),
            figures: workloads.iter().zip(&shades).map(|both| figures(setting, both)).collect(),
        };
        let rows = report.settings().into_iter().map(row).collect();
        Self { workloads, rows }
    }
}
