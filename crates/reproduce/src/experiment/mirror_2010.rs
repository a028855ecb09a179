//! FreeBSD's UFS on a gmirror of two disks: `vfs.read_max` of 32, 128 and 256 blocks of 16 KiB.

use sim::{Costs, FileSystem};
use units::{Bytes, Kib, Nanos};

use super::{Effort, PublishedExperiment, parameters, preset};
use crate::load::{RandomRuns, Streams};
use crate::outcome::{Cell, CheckedClaim, Column, Reproduction};
use crate::{Published, ReproduceError};

pub(super) const EXPERIMENT: PublishedExperiment = PublishedExperiment {
    name: "mirror-2010",
    title: "two 7200 rpm SATA disks in a gmirror, UFS, bonnie++",
    tables: &["voras-bonnie", "voras-gstat"],
    simulate,
};

const MODEL: &str = "mirror-2010";
/// MB in one of bonnie's K, which are KiB.
const MB_PER_K: f64 = 1024.0 / 1e6;
/// Size of bonnie's reads.
const BLOCK_SIZE: Bytes = Bytes::from_kib(8);
const FILE_SIZE: Bytes = Bytes::from_gib(8);
const SEEKER_COUNT: u32 = 3;
/// Row of the table during which gstat was recorded.
const GSTAT_READ_MAX: f64 = 128.0;

fn policy(read_max: f64) -> String {
    format!("freebsd,read_max={read_max},block=16K,max_io=128K")
}

/// Returns the throughput of bonnie's sequential read in MB/s.
fn streaming(read_max: f64, seed: u64) -> Result<f64, ReproduceError> {
    let streams = Streams {
        model: preset(MODEL)?,
        policy: policy(read_max),
        read_ahead: Kib::new(128),
        readers: 1,
        block: BLOCK_SIZE,
        file_size: FILE_SIZE,
        first: Bytes::ZERO,
        filesystem: FileSystem::PLAIN,
        // Assumed for CPUs of that time.
        costs: Costs { call_ns: 0.0, copy_ns: 1.1, submit_ns: 0.1, fault_ns: 0.0 },
        warm_up: Nanos::from_millis(700),
        span: Nanos::from_secs(4),
    };
    streams.mb_s(seed)
}

/// Returns the random reads per second of bonnie's seekers.
fn seeks(seed: u64) -> Result<f64, ReproduceError> {
    let runs = RandomRuns {
        model: preset(MODEL)?,
        processes: SEEKER_COUNT,
        length: Bytes::from_kib(16),
        within: FILE_SIZE,
        block: Bytes::from_kib(16),
        span: Nanos::from_secs(20),
    };
    runs.calls_s(seed)
}

fn simulate(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    let model = preset(MODEL)?;
    let table = this.table()?;
    let mut cells = Vec::new();
    for (read_max, k_s) in table.pairs("vfs.read_max", "seq_in_block")? {
        let figures = effort.repeat(|seed| streaming(read_max, seed))?;
        cells.push(Cell::new(read_max, k_s * MB_PER_K, &figures));
    }
    let reads = Column::new("sequential read", "MB/s", cells);
    let gstat = Published::table("voras-gstat")?.0.figure(2, "read_kB_s")? * MB_PER_K;
    let figures = effort.repeat(|seed| streaming(GSTAT_READ_MAX, seed))?;
    let gstat = Column::new("gstat", "MB/s", vec![Cell::new(GSTAT_READ_MAX, gstat, &figures)]);
    let (_, published) = table.pairs("vfs.read_max", "random_seeks")?[0];
    let figures = effort.repeat(seeks)?;
    let seeks = Column::new("seeks", "1/s", vec![Cell::new(32.0, published, &figures)]);
    let lines = vec![
        CheckedClaim::at_most(
            "largest error of a sequential read (%)",
            reads.worst_error_percent(),
            10.0,
        ),
        CheckedClaim::at_most("error of gstat's total (%)", gstat.worst_error_percent(), 10.0),
        CheckedClaim::at_most("error of random seeks (%)", seeks.worst_error_percent(), 10.0),
    ];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: policy(GSTAT_READ_MAX).replace("128,", "N,"),
        setting: "vfs.read_max (blocks of 16 KiB)",
        columns: vec![reads],
        beside: vec![gstat, seeks],
        fitted: parameters(&model, &["disk.outer_mb_s"])?,
        chosen: parameters(&model, &["disk.queue_order", "device.read_policy"])?,
        fitted_at_most: 1,
        lines,
        remarks: vec!["bonnie's K are KiB; the figures are compared as MB/s"],
        ..this.begin(effort)?
    })
}
