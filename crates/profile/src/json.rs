//! The profile as JSON.

use std::time::Duration;

use serde::Serialize;
use stats::Estimate;
use units::Nanos;

use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::proof::FixProof;
use crate::recording::{Frame, ProfileRecording};
use crate::what_if::WhatIfTable;

/// Version of the schema; it increases when the meaning of a field changes.
const SCHEMA_VERSION: u32 = 1;

/// Output of `foreread profile --json`.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileDocument {
    pub schema_version: u32,
    pub target: String,
    pub wall_s: f64,
    /// Duration of the run if only stretches were kept; other times then cover the stretches.
    pub kept_of_s: Option<f64>,
    pub waited_s: f64,
    pub avoidable_s: f64,
    /// Wait time of problems whose fix has no predicted gain.
    pub unpredicted_s: f64,
    pub device_bound_s: f64,
    pub cpu_s: f64,
    pub runnable_s: f64,
    pub other_s: f64,
    pub threads_s: f64,
    pub diagnoses: Vec<DiagnosisEntry>,
    pub files: Vec<FileEntry>,
    pub events: u64,
    pub lost_events: u64,
    pub not_kept_events: u64,
    pub missing_signals: Vec<String>,
    pub no_prediction: Option<String>,
    pub proofs: Vec<ProofEntry>,
    /// Predictions for the settings of `--what-if`.
    pub what_if: Option<WhatIfEntry>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct WhatIfEntry {
    pub not_predictable: Option<String>,
    /// Wait time of the replay under the recorded settings, to compare with `waited_s`.
    pub simulated_s: Option<f64>,
    pub read_bytes: Option<u64>,
    pub settings: Vec<SettingEntry>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SettingEntry {
    pub setting: String,
    pub wall_s: f64,
    /// The same if only those pages of mappings were touched that are known to be touched.
    pub wall_least_s: f64,
    /// True if both durations agree.
    pub is_certain: bool,
    pub waited_s: f64,
    pub read_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProofEntry {
    pub change: String,
    pub predicted_s: Option<f64>,
    /// Median of the differences of the pairs; the next two are its 95 % CI or range.
    pub saved_s: Option<f64>,
    pub least_s: Option<f64>,
    pub most_s: Option<f64>,
    pub plain_s: Vec<f64>,
    pub changed_s: Vec<f64>,
    pub warm_files: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DiagnosisEntry {
    pub rule: &'static str,
    pub code: u8,
    pub is_problem: bool,
    pub file: Option<String>,
    pub waited_s: f64,
    pub cause: String,
    pub fix: String,
    pub snippet: Option<String>,
    pub gain: GainEntry,
    pub location: Option<Frame>,
    pub stack: Vec<Frame>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct GainEntry {
    pub saved_s: Option<f64>,
    pub least_s: Option<f64>,
    pub most_s: Option<f64>,
    /// Gain in addition to the fixes of the diagnoses before it.
    pub marginal_s: Option<f64>,
    pub not_predictable: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FileEntry {
    pub path: String,
    pub is_mapped: bool,
    pub waited_s: f64,
    pub calls: u64,
    pub bytes: u64,
    pub waits: usize,
}

fn entry(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> DiagnosisEntry {
    let stack = one.finding.stack.and_then(|place| recording.stacks.get(place as usize));
    let file = one.stream.map(|place| analysis.streams[place].inode as usize);
    let gain = match &one.gain {
        PredictedGain::Predicted { saved, least, most } => GainEntry {
            saved_s: Some(saved.as_secs_f64()),
            least_s: Some(least.as_secs_f64()),
            most_s: Some(most.as_secs_f64()),
            marginal_s: one.marginal.map(Nanos::as_secs_f64),
            not_predictable: None,
        },
        PredictedGain::NotPredictable(why) => {
            GainEntry { not_predictable: Some(why.clone()), ..GainEntry::default() }
        }
    };
    DiagnosisEntry {
        rule: one.rule.name,
        code: one.rule.code,
        is_problem: one.is_problem(),
        file: file.map(|file| recording.files[file].path.clone()),
        waited_s: one.finding.waited.as_secs_f64(),
        cause: one.finding.cause.clone(),
        fix: one.finding.fix.clone(),
        snippet: one.finding.snippet.clone(),
        gain,
        location: stack.and_then(|stack| stack.code().cloned()),
        stack: stack.map(|stack| stack.user.clone()).unwrap_or_default(),
    }
}

fn what_if_entry(table: &Result<WhatIfTable, String>) -> WhatIfEntry {
    let table = match table {
        Ok(table) => table,
        Err(why) => {
            return WhatIfEntry { not_predictable: Some(why.clone()), ..WhatIfEntry::default() };
        }
    };
    let settings = table.rows.iter().map(|row| SettingEntry {
        setting: row.setting.to_string(),
        wall_s: row.wall.as_secs_f64(),
        wall_least_s: row.wall_least.as_secs_f64(),
        is_certain: row.is_certain(),
        waited_s: row.waited.as_secs_f64(),
        read_bytes: row.read.get(),
    });
    WhatIfEntry {
        not_predictable: None,
        simulated_s: Some(table.replayed.as_secs_f64()),
        read_bytes: Some(table.read.get()),
        settings: settings.collect(),
    }
}

fn proof_entry(proof: &FixProof) -> ProofEntry {
    let seconds =
        |runs: &[Duration]| -> Vec<f64> { runs.iter().map(Duration::as_secs_f64).collect() };
    let saved = proof.runs.saved();
    let bounds = saved.filter(Estimate::is_bounded);
    ProofEntry {
        change: proof.title.clone(),
        predicted_s: proof.predicted.map(Nanos::as_secs_f64),
        saved_s: saved.map(|saved| saved.median),
        least_s: bounds.map(|saved| saved.low()),
        most_s: bounds.map(|saved| saved.high()),
        plain_s: seconds(&proof.runs.plain),
        changed_s: seconds(&proof.runs.changed),
        warm_files: proof.runs.warm.iter().map(|path| path.display().to_string()).collect(),
    }
}

/// Returns the JSON document of a profile.
pub fn profile_json(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    proofs: &[FixProof],
) -> ProfileDocument {
    let files = analysis.streams.iter().map(|stream| FileEntry {
        path: recording.files[stream.inode as usize].path.clone(),
        is_mapped: stream.file == 0,
        waited_s: stream.waited.as_secs_f64(),
        calls: stream.shape.calls,
        bytes: stream.shape.bytes,
        waits: stream.waits.len(),
    });
    ProfileDocument {
        schema_version: SCHEMA_VERSION,
        target: recording.target.clone(),
        wall_s: recording.wall.as_secs_f64(),
        kept_of_s: recording.kept_of.map(Nanos::as_secs_f64),
        waited_s: analysis.waited.as_secs_f64(),
        avoidable_s: analysis.avoidable.as_secs_f64(),
        unpredicted_s: analysis.unpredicted().as_secs_f64(),
        device_bound_s: analysis.device_bound().as_secs_f64(),
        cpu_s: analysis.cpu.as_secs_f64(),
        runnable_s: analysis.runnable.as_secs_f64(),
        other_s: analysis.other.as_secs_f64(),
        threads_s: analysis.threads.as_secs_f64(),
        diagnoses: analysis.diagnoses.iter().map(|one| entry(recording, analysis, one)).collect(),
        files: files.collect(),
        events: recording.taken,
        lost_events: recording.lost,
        not_kept_events: recording.not_kept,
        missing_signals: recording.missing.clone(),
        no_prediction: analysis.no_prediction.clone(),
        proofs: proofs.iter().map(proof_entry).collect(),
        what_if: analysis.what_if.as_ref().map(what_if_entry),
    }
}
