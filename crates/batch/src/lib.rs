//! Simulations of many traces.
//!
//! A [`SimCell`] describes one simulation of a trace: device, policy, window, cache and seed. A
//! [`BatchPlan`] combines traces with cells and divides them into [`Shard`]s of one trace each. A
//! process runs a shard with [`Shard::run`], which publishes one Parquet file. The file's name is
//! derived from the shard's cells. Shards may therefore run in any order, in any process and more
//! than once: the directory of results is the same.

mod cell;
mod content;
mod declared;
mod error;
mod identity;
mod loaded;
mod part;
mod plan;
mod row;
mod shard;

pub use cell::{SIM_CELL_KEYS, SimCell};
pub use content::{TraceContent, TraceFacts};
pub use declared::WorkloadReads;
pub use error::BatchError;
pub use identity::SIMULATOR_VERSION;
pub use loaded::{LoadedTrace, SimLimits};
pub use part::{COLUMNS, PartColumn, PartSummary, ResultSet, finished_cells, read_result_set};
pub use plan::{BatchPlan, ManifestSummary, PlanSummary, read_manifest};
pub use row::{CellFigures, CellRow, CellStatus};
pub use shard::{Shard, ShardReport};
