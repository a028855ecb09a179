//! The table of a study as every format sees it: a row for each setting, a column for each
//! workload.

use study::Cell;
use units::Kib;

use crate::findings::Findings;
use crate::number::{plus_minus_text, short};

/// The rows of a study.
pub(crate) struct Table {
    /// Names of the workloads, in the order of the plan.
    pub workloads: Vec<String>,
    /// One for each setting, ascending.
    pub rows: Vec<Row>,
}

/// One setting.
pub(crate) struct Row {
    pub setting: Kib,
    /// What the setting is: `now`, `full`.
    pub marks: Vec<&'static str>,
    /// One for each workload; `None` where nothing was measured.
    pub figures: Vec<Option<Figures>>,
}

/// What a cell shows.
pub(crate) struct Figures {
    /// MiB/s.
    pub throughput: String,
    /// The larger half of its interval.
    pub plus_minus: Option<String>,
    /// Bytes from the device ÷ bytes asked for.
    pub amplification: Option<String>,
}

impl Figures {
    fn of(cell: &Cell) -> Option<Self> {
        Some(Self {
            throughput: short(cell.throughput_mib_s.median)?,
            plus_minus: plus_minus_text(&cell.throughput_mib_s),
            amplification: cell.amplification.and_then(|amplification| short(amplification.median)),
        })
    }
}

impl Table {
    pub fn of(findings: &Findings<'_>) -> Self {
        let workloads: Vec<String> =
            findings.workloads().iter().map(|planned| planned.workload.name.clone()).collect();
        let row = |setting| Row {
            setting,
            marks: findings.marks(setting),
            figures: workloads
                .iter()
                .map(|name| findings.cell(setting, name).and_then(Figures::of))
                .collect(),
        };
        let rows = findings.settings().into_iter().map(row).collect();
        Self { workloads, rows }
    }
}
