//! Plans proofs of the fixes that can be applied from outside, with their predicted gains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sys::advice_filter::MutedAdvice;
use units::{Bytes, Nanos};

use crate::advice_values::{DONTNEED_VALUE, RANDOM_VALUE};
use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::prefetch_list::PrefetchList;
use crate::recording::ProfileRecording;
use crate::rules::FixChange;

/// The change in one of the two runs of each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofChange {
    /// This advice of the program has no effect.
    Muted(MutedAdvice),
    /// This file is in the page cache.
    Cached(PathBuf),
    /// The bdi of this file has this read-ahead, and so have all files that are opened there.
    Window { path: PathBuf, window: Bytes },
    /// These ranges are prefetched from the start of the command on.
    Prefetched(PrefetchList),
    /// `foreread run` adapts to the command and issues the requests of the fix.
    Adaptive,
}

/// A proof to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedProof {
    pub change: ProofChange,
    /// Text for output, after "cold runs each, in random order,".
    pub title: String,
    /// Gain that the diagnoses predict; `None` if they predict none.
    pub predicted: Option<Nanos>,
}

/// A window of one page, so that a fault reads only its page.
const PAGE_WINDOW: Bytes = Bytes::from_kib(4);

impl PlannedProof {
    /// Plans proofs for all fixes that can be applied from outside: one for all advice to be
    /// deleted, then one for each window, each prefetch list and `foreread run`.
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

/// Plans a proof without the advice that diagnoses say to delete. Its predicted gain is the sum of
/// theirs; `None` if one of them is unpredictable.
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

/// Returns the window of the bdi that has the effect of the fix; `None` if there is none.
fn window(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> Option<ProofChange> {
    let window = match (&one.finding.change, one.rule.name) {
        (FixChange::SetWindow(window), _) => *window,
        // The kernel submits advice only up to the window.
        (FixChange::Chunks(asked), "cut-advice") => *asked,
        // Slower if the program uses more than a page per fault.
        (FixChange::SinglePages, _) if predicted(one).is_some() => PAGE_WINDOW,
        _ => return None,
    };
    let stream = &analysis.streams[one.stream?];
    let path = Path::new(&recording.files[stream.inode as usize].path);
    path.is_absolute().then(|| ProofChange::Window { path: path.to_owned(), window })
}

/// Returns the ranges to prefetch for the fix; `None` if it is not one that prefetches.
fn prefetch(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> Option<ProofChange> {
    // The prediction does not hold for a list of only a part of the run.
    if recording.kept_of.is_some() || !matches!(one.rule.name, "cold-start" | "small-files") {
        return None;
    }
    let inodes = one.finding.others.iter().map(|place| analysis.streams[*place].inode).collect();
    let list = PrefetchList::of(recording, &inodes);
    (list.len() > 0).then_some(ProofChange::Prefetched(list))
}
