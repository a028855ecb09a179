//! The profile as JSON.

use std::time::Duration;

use serde_json::{Value as Json, json};
use stats::Estimate;
use units::Nanos;

use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::proof::FixProof;
use crate::recording::ProfileRecording;
use crate::stream::FileStream;
use crate::what_if::{WhatIf, WhatIfTable};

/// Version of the schema; it increases when the meaning of a field changes.
const SCHEMA_VERSION: u32 = 1;

/// Returns the JSON document of a profile: the output of `foreread profile --json`.
pub fn profile_json(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    proofs: &[FixProof],
) -> Json {
    let diagnosis = |one: &ProfileDiagnosis| diagnosis(recording, analysis, one);
    let file = |stream: &FileStream| {
        json!({
            "path": recording.files[stream.inode as usize].path,
            "is_mapped": stream.file == 0,
            "waited_s": stream.waited.as_secs_f64(),
            "calls": stream.shape.calls,
            "bytes": stream.shape.bytes,
            "waits": stream.waits.len(),
        })
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "target": recording.target,
        "wall_s": recording.wall.as_secs_f64(),
        // Duration of the run if only stretches were kept; other times then cover the stretches.
        "kept_of_s": recording.kept_of.map(Nanos::as_secs_f64),
        "waited_s": analysis.waited.as_secs_f64(),
        "avoidable_s": analysis.avoidable.as_secs_f64(),
        // Wait time of problems whose fix has no predicted gain.
        "unpredicted_s": analysis.unpredicted().as_secs_f64(),
        "device_bound_s": analysis.device_bound().as_secs_f64(),
        "cpu_s": analysis.cpu.as_secs_f64(),
        "runnable_s": analysis.runnable.as_secs_f64(),
        "other_s": analysis.other.as_secs_f64(),
        "threads_s": analysis.threads.as_secs_f64(),
        "diagnoses": analysis.diagnoses.iter().map(diagnosis).collect::<Vec<_>>(),
        "files": analysis.streams.iter().map(file).collect::<Vec<_>>(),
        "events": recording.taken,
        "lost_events": recording.lost,
        "not_kept_events": recording.not_kept,
        "missing_signals": recording.missing,
        "no_prediction": analysis.no_prediction,
        "proofs": proofs.iter().map(proof).collect::<Vec<_>>(),
        // Predictions for the settings of `--what-if`.
        "what_if": analysis.what_if.as_ref().map(what_if),
    })
}

fn diagnosis(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> Json {
    let finding = &one.finding;
    let stack = finding.stack.and_then(|place| recording.stacks.get(place as usize));
    let file = one.stream.map(|place| analysis.streams[place].inode as usize);
    let (bounds, why) = match &one.gain {
        PredictedGain::Predicted { saved, least, most } => {
            (Some([saved, least, most].map(|time| time.as_secs_f64())), None)
        }
        PredictedGain::NotPredictable(why) => (None, Some(why)),
    };
    json!({
        "rule": one.rule.name,
        "code": one.rule.code,
        "is_problem": one.is_problem(),
        "file": file.map(|file| &recording.files[file].path),
        "waited_s": finding.waited.as_secs_f64(),
        "cause": finding.cause,
        "fix": finding.fix,
        "snippet": finding.snippet,
        "gain": {
            "saved_s": bounds.map(|[saved, ..]| saved),
            "least_s": bounds.map(|[_, least, _]| least),
            "most_s": bounds.map(|[.., most]| most),
            // Gain in addition to the fixes of the diagnoses before it.
            "marginal_s": one.marginal.filter(|_| bounds.is_some()).map(Nanos::as_secs_f64),
            "not_predictable": why,
        },
        "location": stack.and_then(|stack| stack.code()),
        "stack": stack.map_or(&[][..], |stack| &stack.user),
    })
}

fn what_if(found: &Result<WhatIfTable, String>) -> Json {
    let (table, why) = match found {
        Ok(table) => (Some(table), None),
        Err(why) => (None, Some(why)),
    };
    let row = |row: &WhatIf| {
        json!({
            "setting": row.setting.to_string(),
            "wall_s": row.wall.as_secs_f64(),
            // The same if only those pages of mappings were touched that are known to be touched.
            "wall_least_s": row.wall_least.as_secs_f64(),
            // True if both durations agree.
            "is_certain": row.is_certain(),
            "waited_s": row.waited.as_secs_f64(),
            "read_bytes": row.read,
        })
    };
    json!({
        "not_predictable": why,
        // Wait time of the replay under the recorded settings, to compare with `waited_s`.
        "simulated_s": table.map(|table| table.replayed.as_secs_f64()),
        "read_bytes": table.map(|table| table.read),
        "settings": table.map_or(&[][..], |table| &table.rows).iter().map(row).collect::<Vec<_>>(),
    })
}

fn proof(proof: &FixProof) -> Json {
    let seconds =
        |runs: &[Duration]| -> Vec<f64> { runs.iter().map(Duration::as_secs_f64).collect() };
    let saved = proof.runs.saved();
    // 95 % CI or range of the differences of the pairs.
    let bounds = saved.filter(Estimate::is_bounded);
    let warm = proof.runs.warm.iter().map(|path| path.display().to_string());
    json!({
        "change": proof.title,
        "predicted_s": proof.predicted.map(Nanos::as_secs_f64),
        "saved_s": saved.map(|saved| saved.median),
        "least_s": bounds.map(|saved| saved.low()),
        "most_s": bounds.map(|saved| saved.high()),
        "plain_s": seconds(&proof.runs.plain),
        "changed_s": seconds(&proof.runs.changed),
        "warm_files": warm.collect::<Vec<_>>(),
    })
}
