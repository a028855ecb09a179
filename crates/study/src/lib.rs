//! Studies: plan, run, store, analyse, recommend.
//!
//! A study is a set of [`CellSettings`] × a set of workloads, run as randomised, repeated trials on
//! a [`Target`]. [`sweep`] measures a whole grid; [`tune`] chooses each next measurement. Both
//! write each trial to the [`Store`] before they start the next one. [`analyse`] turns the record
//! of a run into an [`Analysis`], which is never stored, but always recomputed.

mod analyse;
mod budget;
mod calibrate;
mod check;
mod compare;
mod conditions;
mod conduct;
#[cfg(test)]
mod coverage;
mod environment;
mod error;
mod factors;
mod findings;
mod grid;
mod import;
mod limit;
mod plan;
mod progress;
mod run_id;
mod seed;
mod session;
mod settings;
mod storage;
mod store;
mod strategy;
mod sweep;
#[cfg(test)]
mod synthetic;
mod target;
mod trial;
mod trial_loop;
mod tune;

pub use analyse::{
    Alternative, Analysis, Caveat, Cell, Combination, CostChange, CostCondition, Decision,
    Difference, FactorEffect, FactorInteraction, Gain, InconclusiveReason, LatencyChange,
    LevelEffect, LevelPair, Recommendation, RecommendationCost, Saving, VerdictKind,
    WorkloadVerdict, analyse,
};
pub use bench::Cancel;
pub use budget::{Budget, BudgetError};
pub use calibrate::{CalibrationResult, CurvePoint, calibrate, predict_curve};
pub use compare::{CellPair, MeanRatio, OwnBest, RunComparison, compare};
pub use conditions::RunDifference;
pub use conduct::StudyOutcome;
pub use environment::Environment;
pub use error::{StoreError, StudyError, TargetError};
pub use factors::{Design, Factor};
pub use findings::{Findings, ResultColumn, ResultCurve, ResultPlot, ResultTable, ResultValue};
pub use grid::{FULL_GRID_TOP, Grid};
pub use import::{
    ImportError, ImportTable, RateUnit, TableColumn, Tables, import, reports, table_of, tables,
};
pub use limit::limit;
pub use plan::{Plan, PlannedWorkload, Repeats, Role, StudyPurpose, default_trial};
pub use progress::{Progress, ProgressEvent, Silent, StudyPhase};
pub use run_id::RunId;
pub use seed::drawn_seed;
pub use session::TargetFacts;
pub use settings::{CellSettings, ExtraSettings, Labels};
pub use stats::{Estimate, Spread};
pub use storage::{
    Forecast, LimitPhase, LiveTarget, SettingOutcome, WorkloadLimits, describe_storage, limits,
};
pub use store::{NewRun, Run, RunCommand, RunRecording, RunStatus, RunSummary, Store};
pub use sweep::sweep;
pub use target::{FromSpec, Target, TargetSpec};
pub use trial::{
    Quantiles, Trial, TrialFigures, TrialRecord, TrialRequest, TrialRunner, TrialStatus,
};
pub use tune::{PredictedPoint, predict, tune};
