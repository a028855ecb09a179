//! One to sixteen blocks of 8 KiB per request at random places of a raw partition, by one and by
//! four processes.

use units::{Bytes, Nanos};

use super::{Effort, PublishedExperiment, parameters, preset};
use crate::ReproduceError;
use crate::load::RandomRuns;
use crate::outcome::{Cell, CheckedClaim, Column, Reproduction};

pub(super) const ONE_PROCESS: PublishedExperiment = PublishedExperiment {
    name: "blocks-1-2002",
    title: "one process reads 1 to 16 blocks of 8 KiB at random places, NetBSD, raw partition",
    tables: &["sampson-1proc"],
    simulate: one,
};

pub(super) const FOUR_PROCESSES: PublishedExperiment = PublishedExperiment {
    name: "blocks-4-2002",
    title: "four processes do the same at the same time",
    tables: &["sampson-4proc"],
    simulate: four,
};

const MODEL: &str = "hdd-15k-2000";
/// Parameters that were fitted to both tables together. The three seek times are those of a data
/// sheet, divided by a common factor.
const FITTED: &[&str] = &[
    "disk.outer_mb_s",
    "disk.bus_mb_s",
    "disk.overhead_ms",
    "disk.seek_average_ms",
    "disk.ageing",
];
const CHOSEN: &[&str] = &["disk.rpm", "disk.queue_depth", "disk.queue_order", "disk.read_ahead"];

const BLOCK_SIZE: Bytes = Bytes::from_kib(8);
/// "The first 2 GB".
const READ_RANGE_SIZE: Bytes = Bytes::new(2_000_000_000);

fn one(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    simulate(this, effort, 1, "1 process")
}

fn four(this: &PublishedExperiment, effort: Effort) -> Result<Reproduction, ReproduceError> {
    simulate(this, effort, 4, "4 processes, sum")
}

fn simulate(
    this: &PublishedExperiment,
    effort: Effort,
    processes: u32,
    name: &'static str,
) -> Result<Reproduction, ReproduceError> {
    let (model, table) = (preset(MODEL)?, this.table()?);
    let (mut calls, mut data) = (Vec::new(), Vec::new());
    for (blocks, each) in table.pairs("blocks_of_8K", "req_per_s")? {
        let published = each * f64::from(processes);
        let length = Bytes::new(BLOCK_SIZE.get() * blocks as u64);
        let (within, block, span) = (READ_RANGE_SIZE, BLOCK_SIZE, Nanos::from_secs(60));
        let runs = RandomRuns { model: model.clone(), processes, length, within, block, span };
        let figures = effort.repeat(|seed| runs.calls_s(seed))?;
        let mb_s = |calls: f64| calls * length.get() as f64 / 1e6;
        calls.push(Cell::new(blocks, published, &figures));
        let figures: Vec<f64> = figures.iter().map(|&calls| mb_s(calls)).collect();
        data.push(Cell::new(blocks, mb_s(published), &figures));
    }
    let calls = Column::new(name, "requests/s", calls);
    let lines = vec![CheckedClaim::at_most("largest error (%)", calls.worst_error_percent(), 15.0)];
    Ok(Reproduction {
        model: MODEL.to_owned(),
        policy: "fixed,blocks=N,block=8K".to_owned(),
        setting: "blocks of 8 KiB in a request",
        // Larger requests mean fewer per second, so the recommendation uses data per second.
        columns: vec![Column::new("data", "MB/s", data)],
        beside: vec![calls],
        fitted: parameters(&model, FITTED)?,
        chosen: parameters(&model, CHOSEN)?,
        fitted_at_most: 6,
        lines,
        remarks: vec!["one fit for the tables of one and of four processes"],
        ..this.begin(effort)?
    })
}
