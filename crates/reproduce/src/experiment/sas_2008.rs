//! Four 15000 rpm SAS disks behind the same controller: a drive from its data sheet, nothing
//! fitted.

use sim::FileSystem;

use super::array_2008::{Array2008, EIGHT, POLICY, SETTING};
use super::xfs_2008::FIRST_FILE_OFFSET;
use super::{Effort, PublishedExperiment, other, preset};
use crate::ReproduceError;
use crate::outcome::Reproduction;

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "sas-2008",
    title: "PERC 6, RAID 10 of four 15000 rpm SAS disks, ext3",
    tables: &["carey-perc6-15k-ext3"],
    simulate,
};

/// The controller of the XFS table with the drive of `hdd-15k-2008`.
const MODEL: &str = "raid10-2008,members=4,disk.capacity=286749488s,disk.rpm=15000,\
                     disk.seek_track_ms=0.4,disk.seek_average_ms=3.5,disk.seek_full_ms=7.5,\
                     disk.outer_mb_s=125,disk.inner_mb_s=73";

fn reason(_sectors: f64) -> Option<&'static str> {
    Some("the firmware of these drives continued to read ahead for several interleaved streams")
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let array =
        Array2008 { model: preset(MODEL)?, filesystem: FileSystem::EXT3, first: FIRST_FILE_OFFSET };
    let eight = array.column(this.table()?, EIGHT, effort, reason)?;
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: POLICY.to_owned(),
        setting: SETTING,
        columns: vec![eight],
        chosen: vec![other("drive", "Cheetah 15K.5 by its data sheet")],
        fitted_with: Some("xfs-2008"),
        remarks: vec!["nothing is fitted: the drive is that of a data sheet"],
        ..this.begin(effort)?
    })
}
