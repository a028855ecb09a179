//! The same array with ext3, whose indirect blocks delay read-ahead: nothing is fitted.

use sim::FileSystem;
use units::Bytes;

use super::array_2008::{Array2008, EIGHT, ONE, POLICY, SETTING};
use super::xfs_2008::{FIRST_FILE_OFFSET, MODEL};
use super::{Effort, PublishedExperiment, other, preset};
use crate::ReproduceError;
use crate::outcome::{CheckedClaim, Reproduction};

pub(super) const FRONT: PublishedExperiment = PublishedExperiment {
    name: "ext3-front-2008",
    title: "the same array, ext3 on the first tenth",
    tables: &["carey-perc6-ext3-front10"],
    simulate: front,
};

pub(super) const FULL: PublishedExperiment = PublishedExperiment {
    name: "ext3-full-2008",
    title: "the same array, ext3 on all of it",
    tables: &["carey-perc6-ext3-full"],
    simulate: full,
};

/// The author guesses that his files are "near the middle".
const PLACE_PERCENT: u64 = 50;

fn no_reason(_sectors: f64) -> Option<&'static str> {
    None
}

fn front(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let array =
        Array2008 { model: preset(MODEL)?, filesystem: FileSystem::EXT3, first: FIRST_FILE_OFFSET };
    let eight = array.column(this.table()?, EIGHT, effort, no_reason)?;
    let worst = eight.cells.iter().map(|cell| cell.error_percent.abs()).fold(0.0, f64::max);
    let lines = vec![CheckedClaim::at_most("largest error of any cell (%)", worst, 20.0)];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: POLICY.to_owned(),
        setting: SETTING,
        columns: vec![eight],
        fitted_with: Some("xfs-2008"),
        lines,
        remarks: vec![
            "nothing is fitted: the model of the XFS table, with an indirect block before \
             every 4 MiB of a file, for which the reader waits",
        ],
        ..this.begin(effort)?
    })
}

fn eight(sectors: f64) -> Option<&'static str> {
    (sectors <= 256.0).then_some(
        "small windows: the firmware hides more of the time of each command than the model",
    )
}

fn one(sectors: f64) -> Option<&'static str> {
    (sectors <= 2048.0)
        .then_some("the model reads ahead beyond an indirect block; the machine did not")
}

fn full(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let model = preset(MODEL)?;
    let chunk = 64 << 10;
    let middle = model.capacity().get() / 100 * PLACE_PERCENT / chunk * chunk;
    let first = Bytes::new(middle) + FIRST_FILE_OFFSET;
    let (array, table) = (Array2008 { model, filesystem: FileSystem::EXT3, first }, this.table()?);
    let (eight, one) =
        (array.column(table, EIGHT, effort, eight)?, array.column(table, ONE, effort, one)?);
    let ceiling = eight.cells.iter().filter(|cell| cell.setting >= 8192.0);
    let worst = ceiling.map(|cell| cell.error_percent.abs()).fold(0.0, f64::max);
    let lines = vec![
        CheckedClaim::at_most("8 readers, 4 MiB and more: largest error (%)", worst, 20.0),
        CheckedClaim::at_most("8 readers: mean error (%)", eight.mean_error_percent, 20.0),
    ];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: POLICY.to_owned(),
        setting: SETTING,
        columns: vec![eight, one],
        chosen: vec![other("place of the files", format!("{PLACE_PERCENT} % of the array"))],
        fitted_with: Some("xfs-2008"),
        fitted_at_most: 1,
        lines,
        remarks: vec!["nothing is fitted; the position of the files is the author's guess"],
        ..this.begin(effort)?
    })
}
