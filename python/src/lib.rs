//! Python bindings of the simulator. This layer only converts: what simulates, plans and stores is
//! the crate `batch`, which the binary uses as well. Everything that takes time runs without the
//! interpreter's lock.

mod arrow;
mod error;
mod experiment;
mod simulation;
mod trace_object;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::experiment::{
        manifest, plan_shards, poison_shard, result_set, result_table, run_shard, shard_is_finished,
    };
    #[pymodule_export]
    use super::simulation::{check_cell, devices, limits, policies, simulate};
    #[pymodule_export]
    use super::trace_object::Trace;

    #[pymodule_export]
    const SIMULATOR_VERSION: &str = batch::SIMULATOR_VERSION;
}
