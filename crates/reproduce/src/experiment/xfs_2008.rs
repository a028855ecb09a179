//! A PERC 6 with twelve disks in RAID 10 and XFS: read-ahead from 4 KiB to 48 MiB.

use model::Spec;
use sim::FileSystem;
use units::Bytes;

use super::array_2008::{Array2008, EIGHT, ONE, POLICY, SETTING, host_parameters};
use super::{Effort, PublishedExperiment, other, parameters, preset};
use crate::ReproduceError;
use crate::outcome::{CheckedClaim, Reproduction};

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "xfs-2008",
    title: "PERC 6, RAID 10 of twelve 7200 rpm disks, XFS on the first tenth",
    tables: &["carey-perc6-xfs-front10"],
    simulate,
};

/// The preset that was fitted to this table.
pub(super) const MODEL: &str = "raid10-2008";
/// Fitted parameters, in addition to the two of the host.
const FITTED: &[&str] = &[
    "disk.outer_mb_s",
    "disk.overhead_ms",
    "disk.hit_overhead_ms",
    "disk.jitter_ms",
    "disk.ageing",
    "device.overhead_ms",
    "device.latency_ms",
    "device.jitter_ms",
];
/// Parameters that were chosen among a few possibilities.
const CHOSEN: &[&str] = &[
    "device.behind.read_policy",
    "disk.read_ahead",
    "disk.read_ahead_when_queued",
    "disk.queue_depth",
    "disk.queue_order",
    "device.prefetch",
    "device.prefetch_open",
    "host.max_request",
    "host.nr_requests",
];

/// Offset of the first file: after the 63 sectors before a first partition of that time, rounded to
/// whole blocks. The ramp of read-ahead is also half a chunk, so that full windows end with chunks.
pub(super) const FIRST_FILE_OFFSET: Bytes = Bytes::from_kib(32);

pub(super) fn array(model: Spec, filesystem: FileSystem) -> Array2008 {
    Array2008 { model, filesystem, first: FIRST_FILE_OFFSET }
}

fn eight(sectors: f64) -> Option<&'static str> {
    (sectors <= 256.0).then_some(
        "small windows: the firmware hides more of the time of each command than the model",
    )
}

fn one(sectors: f64) -> Option<&'static str> {
    match sectors {
        s if s < 64.0 => Some(
            "windows of one page: the firmware hides more of each command's time than the model",
        ),
        s if (1024.0..=8192.0).contains(&s) => {
            Some("the dip above 512 KiB is at other settings in the model")
        }
        _ => None,
    }
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let model = preset(MODEL)?;
    let fitted = parameters(&model, FITTED)?;
    let mut chosen = parameters(&model, CHOSEN)?;
    chosen.push(other("first file", format!("at {FIRST_FILE_OFFSET} of a chunk")));
    let (array, table) = (array(model, FileSystem::PLAIN), this.table()?);
    let eight = array.column(table, EIGHT, effort, eight)?;
    let one = array.column(table, ONE, effort, one)?;
    let rank = eight.rank_correlation.unwrap_or(0.0);
    let dip = one.interior_minimum().unwrap_or(0.0);
    let lines = vec![
        CheckedClaim::at_most("8 readers: mean error (%)", eight.mean_error_percent, 12.0),
        CheckedClaim::at_least("8 readers: rank correlation", rank, 0.98),
        CheckedClaim::at_most("1 reader: mean error (%)", one.mean_error_percent, 20.0),
        CheckedClaim::within("1 reader: interior minimum (sectors)", dip, 1024.0, 8192.0),
    ];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: POLICY.to_owned(),
        setting: SETTING,
        columns: vec![eight, one],
        fitted: fitted.into_iter().chain(host_parameters()).collect(),
        chosen,
        fitted_at_most: 10,
        lines,
        remarks: vec![
            "fio of 2008 printed decimal megabytes as MiB; the figures are compared as MB/s",
            "the author's own figures repeat within about 2 %",
        ],
        ..this.begin(effort)?
    })
}
