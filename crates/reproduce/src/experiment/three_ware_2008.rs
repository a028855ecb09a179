//! A 3ware 9650 with twelve SATA disks in RAID 10 and ext3.

use sim::FileSystem;

use super::array_2008::{Array2008, EIGHT, ONE, POLICY, SETTING, host_parameters};
use super::xfs_2008::FIRST_FILE_OFFSET;
use super::{Effort, PublishedExperiment, parameters, preset};
use crate::ReproduceError;
use crate::outcome::{CheckedClaim, Reproduction};

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "3ware-2008",
    title: "3ware 9650, RAID 10 of twelve 7200 rpm SATA disks, ext3",
    tables: &["carey-3ware-ext3"],
    simulate,
};

const MODEL: &str = "raid10-3ware-2008";
const FITTED: &[&str] = &[
    "disk.outer_mb_s",
    "disk.overhead_ms",
    "disk.hit_overhead_ms",
    "device.overhead_ms",
    "device.latency_ms",
    "device.jitter_ms",
    "disk.jitter_ms",
    "disk.ageing",
];
const CHOSEN: &[&str] = &[
    "chunk",
    "device.behind.read_policy",
    "device.prefetch",
    "device.prefetch_open",
    "host.max_request",
    "disk.queue_depth",
];

fn one(sectors: f64) -> Option<&'static str> {
    match sectors {
        s if s <= 8.0 => Some(
            "one request of 4 KiB every 11 µs, one after another: no SCSI stack of 2008 is so \
             fast, so the setting cannot have taken effect",
        ),
        s if s <= 1024.0 => Some(
            "the published column is constant from 64 KiB to 24 MiB, as with read-ahead by the \
             controller alone; that of the model does not reach as far",
        ),
        _ => None,
    }
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let (model, table) = (preset(MODEL)?, this.table()?);
    let (fitted, chosen) = (parameters(&model, FITTED)?, parameters(&model, CHOSEN)?);
    let array = Array2008 { model, filesystem: FileSystem::EXT3, first: FIRST_FILE_OFFSET };
    let (eight, one) =
        (array.column(table, EIGHT, effort, |_| None)?, array.column(table, ONE, effort, one)?);
    let mean = CheckedClaim::at_most("8 readers: mean error (%)", eight.mean_error_percent, 15.0);
    let lines = vec![mean.beside()];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: POLICY.to_owned(),
        setting: SETTING,
        columns: vec![eight, one],
        fitted: fitted.into_iter().chain(host_parameters()).collect(),
        chosen,
        fitted_at_most: 10,
        lines,
        ..this.begin(effort)?
    })
}
