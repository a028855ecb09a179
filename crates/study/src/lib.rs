//! Studies: plan, run, store, analyse, recommend.
//!
//! A study is a set of [`Settings`] × a set of workloads, run as randomised, repeated trials on a
//! [`Target`]. [`sweep`] measures a whole grid, [`tune`] chooses its own next measurements; both
//! write every trial into the [`Store`] before they begin the next, and [`analyse`] turns the
//! record of a run into a [`Verdict`]. Conclusions are never stored, always recomputed.

mod analyse;
mod budget;
mod calibrate;
mod compare;
mod conditions;
#[cfg(test)]
mod coverage;
mod engine;
mod environment;
mod error;
mod factors;
mod grid;
mod import;
mod limit;
mod plan;
mod progress;
mod session;
mod settings;
mod store;
mod strategy;
mod sweep;
#[cfg(test)]
mod synthetic;
mod target;
mod trial;
mod tune;

pub use analyse::{
    Alternative, Analysis, Caveat, Cell, Change, Combination, Condition as CostCondition, Cost,
    Decision, Difference, Doubt, Effect, Gain, Interaction, LatencyChange, LevelEffect, LevelPair,
    Quantiles, Recommendation, Saving, VerdictKind, WorkloadVerdict, analyse,
};
pub use bench::Cancel;
pub use budget::{Budget, BudgetError};
pub use calibrate::{Calibrated, CurvePoint, calibrate, predict_curve};
pub use compare::{CellPair, Comparison, OwnBest, Together, compare};
pub use conditions::Condition;
pub use environment::Environment;
pub use error::StudyError;
pub use factors::{Design, Factor};
pub use grid::{FULL_GRID_TOP, Grid};
pub use import::{
    ImportError, RateUnit, Table, TableColumn, Tables, import, reports, table_of, tables,
};
pub use limit::limit;
pub use plan::{Plan, PlannedWorkload, Purpose, Repeats, Role, default_trial};
pub use progress::{Phase, Progress, Silent, Step};
pub use settings::{Beside, Others, Settings};
pub use stats::{Estimate, Spread};
pub use store::{
    Beginning, Command, Recording, Run, RunId, RunStatus, RunSummary, Store, StoreError,
};
pub use sweep::{Outcome, sweep};
pub use target::{
    Forecast, LimitPhase, SettingOutcome, Target, TargetError, WorkloadLimits, describe_storage,
    limits, simulated_machine,
};
pub use trial::{Figures, Record, Trial, TrialRequest, TrialStatus, Trials};
pub use tune::{Predicted, predict, tune};
