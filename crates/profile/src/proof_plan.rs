//! Which fixes can be applied from outside, and what each is predicted to win.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sys::advice_filter::MutedAdvice;
use units::{Bytes, Nanos};

use crate::advice_values::{DONTNEED_VALUE, RANDOM_VALUE};
use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::prefetch_list::PrefetchList;
use crate::recording::ProfileRecording;
use crate::rules::FixChange;

/// What is different in the second run of each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofChange {
    /// The program gives none of this advice.
    Muted(MutedAdvice),
    /// This file is in memory.
    Cached(PathBuf),
    /// The read-ahead of this file's bdi, and so of all files that are opened there.
    Window { path: PathBuf, window: Bytes },
    /// This is read ahead from the start of the command on.
    Prefetched(PrefetchList),
    /// `foreread run` adapts to the command: it asks for what the fix would ask for.
    Adaptive,
}

/// A fix to be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedProof {
    pub change: ProofChange,
    /// For people, after "cold runs each, in random order,".
    pub title: String,
    /// The gain that the diagnoses predict, if they do.
    pub predicted: Option<Nanos>,
}

/// A window of one page: a fault reads just that.
const PAGE_WINDOW: Bytes = Bytes::from_kib(4);

impl PlannedProof {
    /// Of all diagnoses whose fix can be applied from outside: advice that is to be deleted, in one
    /// proof, then each window and each list of what to prefetch.
    pub fn of_diagnoses(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<Self> {
        let mut planned: Vec<Self> = muted(analysis).into_iter().collect();
        for one in &analysis.diagnoses {
            let rule = one.rule.name;
            let change = window(recording, analysis, one)
                .or_else(|| prefetch(recording, analysis, one))
                .or_else(|| matches!(rule, "backward" | "stride").then_some(ProofChange::Adaptive));
            let Some(change) = change else { continue };
            let title = match &change {
                ProofChange::Window { path, window } => {
                    let path = units::text::plain(&path.display().to_string());
                    format!("with a read-ahead of {window} for the file system of {path} ({rule})")
                }
                ProofChange::Prefetched(list) => {
                    format!("with {} prefetched in {} ranges ({rule})", list.bytes(), list.len())
                }
                ProofChange::Adaptive => format!("under foreread run ({rule})"),
                ProofChange::Muted(_) | ProofChange::Cached(_) => continue,
            };
            let is_new = planned.iter().all(|planned| planned.change != change);
            if is_new {
                planned.push(Self { change, title, predicted: predicted(one) });
            }
        }
        for one in &mut planned {
            one.predicted = one.predicted.map(|saved| recording.in_whole_run(saved));
        }
        planned
    }
}

fn predicted(one: &ProfileDiagnosis) -> Option<Nanos> {
    match &one.gain {
        PredictedGain::Predicted { saved, .. } => Some(*saved),
        PredictedGain::NotPredictable(_) => None,
    }
}

/// The advice that diagnoses say to delete, with the gain predicted for all of them if it is
/// predictable.
fn muted(analysis: &ProfileAnalysis) -> Option<PlannedProof> {
    let mut muted = MutedAdvice::default();
    let (mut sum, mut rules) = (Some(Nanos::ZERO), Vec::new());
    let (mut fadvise, mut madvise) = (BTreeSet::new(), BTreeSet::new());
    for one in &analysis.diagnoses {
        match one.rule.name {
            "needless-random" => fadvise.insert(RANDOM_VALUE),
            "self-eviction" => fadvise.insert(DONTNEED_VALUE),
            "mapped-sequential" => madvise.insert(RANDOM_VALUE),
            _ => continue,
        };
        sum = sum.and_then(|sum| Some(sum + predicted(one)?));
        if !rules.contains(&one.rule.name) {
            rules.push(one.rule.name);
        }
    }
    muted.fadvise.extend(fadvise);
    muted.madvise.extend(madvise);
    (!muted.is_empty()).then(|| PlannedProof {
        change: ProofChange::Muted(muted),
        title: format!("without the advice of {}", rules.join(", ")),
        predicted: sum,
    })
}

/// Fixes that a window of the file system makes.
fn window(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> Option<ProofChange> {
    let window = match (&one.finding.change, one.rule.name) {
        (FixChange::SetWindow(window), _) => *window,
        // Advice is submitted up to the window.
        (FixChange::Chunks(asked), "cut-advice") => *asked,
        // Harmful if faults use more than a page.
        (FixChange::SinglePages, _) if predicted(one).is_some() => PAGE_WINDOW,
        _ => return None,
    };
    let stream = &analysis.streams[one.stream?];
    let path = Path::new(&recording.files[stream.inode as usize].path);
    path.is_absolute().then(|| ProofChange::Window { path: path.to_owned(), window })
}

/// Fixes that prefetch what was recorded.
fn prefetch(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> Option<ProofChange> {
    // A list of part of the run is not what was predicted.
    if recording.kept_of.is_some() || !matches!(one.rule.name, "cold-start" | "small-files") {
        return None;
    }
    let inodes = one.finding.others.iter().map(|place| analysis.streams[*place].inode).collect();
    let list = PrefetchList::of(recording, &inodes);
    (list.len() > 0).then_some(ProofChange::Prefetched(list))
}
