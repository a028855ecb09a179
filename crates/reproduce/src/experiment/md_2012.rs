//! md RAID 5 of four disks, 2012: the part of the page that can be simulated.

use units::{Bytes, Nanos};

use super::{Effort, PublishedExperiment, other, preset};
use crate::ReproduceError;
use crate::load::RandomRuns;
use crate::outcome::{Cell, CheckedClaim, Column, Reproduction};

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "md-2012",
    title: "md RAID 5 of four disks: bonnie's random seeks with 31 and with 1 command queued",
    tables: &["mdadm-results"],
    simulate,
};

const MODEL: &str = "raid5-2012";
/// Row of bonnie's random seeks.
const SEEKS_ROW: usize = 3;
/// Number of seeking processes in the bonnie++ of that time.
const SEEKER_COUNT: u32 = 5;
/// Twice the machine's memory of 4 GiB, as bonnie's manual requires.
const FILE_SIZE: Bytes = Bytes::from_gib(8);

fn seeks(depth: u32, seed: u64) -> Result<f64, ReproduceError> {
    let runs = RandomRuns {
        model: preset(&format!("{MODEL},disk.queue_depth={depth}"))?,
        processes: SEEKER_COUNT,
        length: Bytes::from_kib(8),
        within: FILE_SIZE,
        block: Bytes::from_kib(8),
        span: Nanos::from_secs(20),
    };
    runs.calls_s(seed)
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let table = this.table()?;
    let (before, after) = (table.figure(SEEKS_ROW, "before")?, table.figure(SEEKS_ROW, "after")?);
    let why = "bonnie rewrites every tenth block that it seeks to: the write path of RAID 5 and \
               its stripe cache are not simulated";
    let deep = effort.repeat(|seed| seeks(31, seed))?;
    let one = effort.repeat(|seed| seeks(1, seed))?;
    let cells = vec![
        Cell::new(31.0, before, &deep).unexplained(why),
        Cell::new(1.0, after, &one).unexplained(why),
    ];
    let column = Column::new("random seeks", "1/s", cells);
    let ratio = |of: fn(&Cell) -> f64| of(&column.cells[1]) / of(&column.cells[0]);
    let (published, simulated) = (ratio(|cell| cell.published), ratio(|cell| cell.simulated));
    let error = 100.0 * (simulated / published - 1.0).abs();
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: "none".to_owned(),
        setting: "queue_depth of the disks (commands)",
        lines: vec![
            CheckedClaim::at_most("error of the ratio after ÷ before (%)", error, 20.0).beside(),
        ],
        columns: vec![column],
        chosen: vec![other("disks", "assumed: 3 TB, 7200 rpm; the page does not name them")],
        remarks: vec![
            "dd's 150 and 236 MB/s are writes (\"the sequential block output is similar\"), and \
             iozone's stride read is the speed of the page cache: the page has no measurement of \
             read-ahead, and says of sequential input that it \"isn't much improved\"",
        ],
        ..this.begin(effort)?
    })
}
