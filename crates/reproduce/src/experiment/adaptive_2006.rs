//! Adaptive read-ahead, 2006: the time until random selects have read a table into memory.

use units::{Bytes, Kib, Nanos};

use super::{Effort, PublishedExperiment, other, parameter, preset};
use crate::ReproduceError;
use crate::load::Priming;
use crate::outcome::{Cell, CheckedClaim, Column, Reproduction};

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "adaptive-2006",
    title: "priming a PostgreSQL table of 1.5 million rows by random selects",
    tables: &["ara-prime"],
    simulate,
};

/// A laptop's disk; `FITTED` is chosen so that the stock kernel needs the published time.
const MODEL: &str = "hdd-laptop-2006";
const FITTED: &str = "disk.seek_track_ms";

/// One row of the table.
struct Case {
    label: &'static str,
    policy: &'static str,
    read_ahead: Kib,
    reason: Option<&'static str>,
}

const STOCK: &str = "linux-legacy";
const CASES: [Case; 5] = [
    Case {
        label: "first test, stock, 128 KiB",
        policy: STOCK,
        read_ahead: Kib::new(128),
        reason: None,
    },
    Case {
        label: "first test, adaptive, 128 KiB",
        policy: "ara-2006,hit_rate=4",
        read_ahead: Kib::new(128),
        reason: Some("the default hit rate of that version is not known; 4 is assumed"),
    },
    Case { label: "stock, 1 MiB", policy: STOCK, read_ahead: Kib::new(1024), reason: None },
    Case {
        label: "adaptive, hit rate 1, 1 MiB",
        policy: "ara-2006,hit_rate=1",
        read_ahead: Kib::new(1024),
        reason: None,
    },
    Case {
        label: "adaptive, hit rate 8, 1 MiB",
        policy: "ara-2006,hit_rate=8",
        read_ahead: Kib::new(1024),
        reason: None,
    },
];

/// Size of 1.5 million rows of about 160 bytes, and of their index.
const HEAP_SIZE: Bytes = Bytes::from_mib(227);
const INDEX_SIZE: Bytes = Bytes::from_mib(33);
/// "Enough physical memory to cache the whole table and its indexes."
const MEMORY_SIZE: Bytes = Bytes::from_mib(288);
/// CPU time of a select at 600 MHz.
const SELECT_TIME: Nanos = Nanos::from_micros(700);

fn priming(case: &Case) -> Result<Priming, ReproduceError> {
    Ok(Priming {
        model: preset(MODEL)?,
        policy: case.policy.to_owned(),
        read_ahead: case.read_ahead,
        memory: MEMORY_SIZE,
        heap: HEAP_SIZE,
        index: INDEX_SIZE,
        select: SELECT_TIME,
        window: Nanos::from_secs(10),
        primed: 0.9,
    })
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let (model, table) = (preset(MODEL)?, this.table()?);
    let (mut cells, mut rates) = (Vec::new(), Vec::new());
    for (row, case) in CASES.iter().enumerate() {
        let priming = priming(case)?;
        let figures = effort.repeat(|seed| priming.seconds(seed))?;
        let published = table.figure(row, "seconds")?;
        let place = row as f64 + 1.0;
        let cell = Cell::new(place, published, &figures).labelled(case.label);
        // Less time is better, so the recommendation uses tables per hour.
        let per_hour = |seconds: f64| 3600.0 / seconds;
        let figures: Vec<f64> = figures.iter().map(|&seconds| per_hour(seconds)).collect();
        rates.push(Cell::new(place, per_hour(published), &figures).labelled(case.label));
        cells.push(match case.reason {
            Some(reason) => cell.unexplained(reason),
            None => cell,
        });
    }
    let seconds = Column::new("until it is primed", "s", cells);
    let worst = seconds.worst_error_percent();
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: "linux-legacy and ara-2006".to_owned(),
        setting: "case",
        lines: vec![CheckedClaim::at_most("largest error of an explained time (%)", worst, 15.0)],
        columns: vec![Column::new("tables primed", "1/hour", rates)],
        beside: vec![seconds],
        fitted: vec![parameter(&model, FITTED)?],
        chosen: vec![
            other("row", "160 bytes"),
            other("select", format!("{SELECT_TIME}")),
            other("memory", format!("{MEMORY_SIZE}")),
        ],
        fitted_at_most: 1,
        remarks: vec![
            "the author says \"around 6 minutes\" and \"only 2 minutes\" of the first test",
        ],
        ..this.begin(effort)?
    })
}
