//! Finds where programs wait for storage, why, and how much time a change would save.
//!
//! A [`Recorder`] turns the events of the profiler's probes into a [`ProfileRecording`]: accesses,
//! waits, advice and device requests, with stacks and names. [`analyse`] groups the accesses by
//! open file ([`FileStream`]), applies the [`RULES`] and predicts gains by replaying the accesses
//! in the simulator. Recording, importing, looking up symbols, measuring a device
//! ([`learnt_model`]) and proofs do I/O; everything else is pure.

mod advice_values;
mod analysis;
mod callers;
mod classify;
mod code;
mod collect;
mod device;
mod directories;
mod error;
mod evicted;
mod firefox;
mod folded;
mod import;
mod json;
mod limits;
mod maps;
mod names;
mod overhead;
mod pieces;
mod pprof;
mod predict;
mod prefetch_list;
mod proof;
mod proof_plan;
mod recorder;
mod recording;
mod replay;
mod rewrite;
mod rules;
mod samples;
mod shape;
mod spans;
mod steps;
mod stream;
mod stretches;
mod symbols;
mod text;
mod waits;
mod warm;
mod what_if;

pub use analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis, analyse};
pub use device::{DeviceModel, ModelChoice, learnt_model};
pub use error::ProfileError;
pub use firefox::firefox;
pub use folded::folded;
pub use import::imported;
pub use json::profile_json;
pub use pprof::pprof;
pub use prefetch_list::PrefetchList;
pub use proof::{FixProof, ProofRuns, ProofStage, cold_files, prove};
pub use proof_plan::{PlannedProof, ProofChange};
pub use recorder::{RecordTarget, Recorder};
pub use recording::{
    AccessKind, AdviceRecord, FileAccess, Frame, IoRequest, PageEviction, PageTouch,
    ProfileRecording, ProfiledFile, StackTrace, StorageWait, SubmittedPages, ThreadAccount,
    WaitClass,
};
pub use rules::{DiagnosisRule, FixChange, RULES, RuleFinding, explain, list, rule_named};
pub use samples::{SampleKey, SampleValues, wait_samples};
pub use stream::FileStream;
pub use text::{
    TextOptions, code_line, gain_line, notes, others_line, places, profile_text, share,
};
pub use what_if::{ReplaySetting, WhatIf, WhatIfTable};
