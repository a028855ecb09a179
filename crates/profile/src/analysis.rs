//! From a recording to diagnoses with predicted gains.

use std::collections::BTreeSet;
use std::path::Path;

use model::Spec;
use units::Nanos;

use crate::device::{ModelChoice, learnt_model};
use crate::predict::predict;
use crate::recording::{IoRequest, ProfileRecording};
use crate::rules::{
    CheckStream, DiagnosisRule, FixChange, MIN_COST_SHARE, RULES, RuleCheck, RuleFinding, RunView,
};
use crate::stream::{FileStream, streams};

/// Above this share of lost events nothing is predicted.
const MAX_LOSS_SHARE: f64 = 0.01;

/// What a fix would win.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictedGain {
    /// Time saved, from the least to the most.
    Predicted { saved: Nanos, least: Nanos, most: Nanos },
    /// Why it is not known.
    NotPredictable(String),
}

impl PredictedGain {
    pub fn saved(&self) -> Nanos {
        match self {
            Self::Predicted { saved, .. } => *saved,
            Self::NotPredictable(_) => Nanos::ZERO,
        }
    }
}

/// A rule that applies, to what, and what its fix would win.
#[derive(Clone, Debug)]
pub struct ProfileDiagnosis {
    pub rule: &'static DiagnosisRule,
    /// The place of the stream; `None` if it is about the whole run.
    pub stream: Option<usize>,
    pub finding: RuleFinding,
    pub gain: PredictedGain,
}

impl ProfileDiagnosis {
    /// Whether there is anything to change: not where the device is the limit or writes are.
    pub fn is_problem(&self) -> bool {
        !matches!(self.rule.name, "device-bound" | "write-back")
    }
}

/// What came of a recording.
#[derive(Clone, Debug)]
pub struct ProfileAnalysis {
    pub streams: Vec<FileStream>,
    /// The most expensive first.
    pub diagnoses: Vec<ProfileDiagnosis>,
    pub waited: Nanos,
    /// Predicted to be saved, at most what was waited.
    pub avoidable: Nanos,
    pub cpu: Nanos,
    pub runnable: Nanos,
    /// Time of all threads, and what of it is none of the above.
    pub threads: Nanos,
    pub other: Nanos,
    /// Why nothing is predicted at all.
    pub no_prediction: Option<String>,
}

impl ProfileAnalysis {
    /// Waits with a problem whose fix has no predicted gain.
    pub fn unpredicted(&self) -> Nanos {
        let unknown = self
            .diagnoses
            .iter()
            .filter(|one| one.is_problem() && matches!(one.gain, PredictedGain::NotPredictable(_)));
        let waited: Nanos = unknown.map(|one| one.finding.waited).sum();
        waited.min(self.waited.saturating_sub(self.avoidable))
    }

    /// The rest of the waits.
    pub fn device_bound(&self) -> Nanos {
        self.waited.saturating_sub(self.avoidable + self.unpredicted())
    }
}

/// Predicts gains with one device model for each device.
struct Predictor<'a> {
    recording: &'a ProfileRecording,
    choice: &'a ModelChoice,
    refusal: Option<String>,
    learnt: std::collections::BTreeMap<host::DevNo, Option<Spec>>,
}

impl Predictor<'_> {
    fn model(&mut self, stream: &FileStream) -> Option<Spec> {
        let file = &self.recording.files[stream.inode as usize];
        match self.choice {
            ModelChoice::Named(spec) => Some((**spec).clone()),
            ModelChoice::None => None,
            ModelChoice::Measured => {
                let known = self.learnt.get(&file.id.device).cloned().flatten();
                if known.is_some() {
                    return known;
                }
                let of_device = self.recording.requests.iter();
                let of_device = of_device.filter(|one| one.device == file.id.device);
                let requests: Vec<IoRequest> = of_device.copied().collect();
                let learnt = learnt_model(Path::new(&file.path), &requests);
                self.learnt.insert(file.id.device, learnt.clone());
                learnt
            }
        }
    }

    fn gain(&mut self, streams: &[&FileStream], finding: &RuleFinding) -> PredictedGain {
        let not = |why: &str| PredictedGain::NotPredictable(why.to_owned());
        if let Some(refusal) = &self.refusal {
            return not(refusal);
        }
        match &finding.change {
            FixChange::Saves(saved) => {
                PredictedGain::Predicted { saved: *saved, least: *saved, most: *saved }
            }
            FixChange::Unpredictable(why) => not(why),
            change => {
                let largest =
                    streams.iter().max_by_key(|one| self.recording.files[one.inode as usize].size);
                let Some(model) = largest.and_then(|stream| self.model(stream)) else {
                    return not("no model of the device: give --device MODEL");
                };
                match predict(self.recording, streams.to_vec(), change, &model) {
                    Err(why) => PredictedGain::NotPredictable(why),
                    Ok(prediction) => {
                        let error = prediction.saved.scaled(prediction.error.max(0.05));
                        PredictedGain::Predicted {
                            saved: prediction.saved,
                            least: prediction.saved.saturating_sub(error),
                            most: prediction.saved + error,
                        }
                    }
                }
            }
        }
    }
}

/// Whether a finding is worth a report: its gain is unknown, or large enough.
fn is_worth(recording: &ProfileRecording, gain: &PredictedGain) -> bool {
    match gain {
        PredictedGain::NotPredictable(_) => true,
        PredictedGain::Predicted { saved, .. } => {
            saved.get() as f64 >= MIN_COST_SHARE * recording.wall.get() as f64
        }
    }
}

/// Applies the rules and predicts gains.
pub fn analyse(recording: &ProfileRecording, choice: &ModelChoice) -> ProfileAnalysis {
    let streams = streams(recording);
    let run = RunView { recording, streams: &streams };
    let refusal = refusal(recording);
    let mut predictor =
        Predictor { recording, choice, refusal: refusal.clone(), learnt: Default::default() };
    let mut diagnoses: Vec<ProfileDiagnosis> = Vec::new();
    let mut explained: BTreeSet<usize> = BTreeSet::new();
    for rule in RULES {
        let RuleCheck::Run(check) = rule.check else { continue };
        let Some(finding) = check(&run) else { continue };
        if finding.others.iter().any(|place| explained.contains(place)) {
            continue;
        }
        let touched: Vec<&FileStream> = finding.others.iter().map(|one| &streams[*one]).collect();
        let gain = predictor.gain(&touched, &finding);
        if is_worth(recording, &gain) {
            explained.extend(&finding.others);
            diagnoses.push(ProfileDiagnosis { rule, stream: None, finding, gain });
        }
    }
    for (place, stream) in streams.iter().enumerate() {
        if explained.contains(&place) {
            continue;
        }
        diagnoses.extend(diagnose(&run, place, stream, &mut predictor));
    }
    diagnoses.sort_by_key(|one| {
        (std::cmp::Reverse(one.is_problem()), std::cmp::Reverse(one.finding.waited))
    });
    account(recording, streams, diagnoses, refusal)
}

/// The first rules that apply to the waits and to the calls of a stream, and whose fix is worth it.
fn diagnose(
    run: &RunView<'_>,
    place: usize,
    stream: &FileStream,
    predictor: &mut Predictor<'_>,
) -> Vec<ProfileDiagnosis> {
    let mut apply = |rule: &'static DiagnosisRule, check: CheckStream| {
        let finding = check(run, stream)?;
        let gain = predictor.gain(&[stream], &finding);
        let worth = is_worth(run.recording, &gain);
        worth.then_some(ProfileDiagnosis { rule, stream: Some(place), finding, gain })
    };
    let waits = RULES.iter().find_map(|rule| match rule.check {
        RuleCheck::Stream(check) => apply(rule, check),
        _ => None,
    });
    let calls = RULES.iter().find_map(|rule| match rule.check {
        RuleCheck::Calls(check) => apply(rule, check),
        _ => None,
    });
    waits.into_iter().chain(calls).collect()
}

fn refusal(recording: &ProfileRecording) -> Option<String> {
    let share = recording.loss_share();
    (share > MAX_LOSS_SHARE)
        .then(|| format!("{:.1} % of the events were lost or not kept", 100.0 * share))
}

fn account(
    recording: &ProfileRecording,
    streams: Vec<FileStream>,
    diagnoses: Vec<ProfileDiagnosis>,
    no_prediction: Option<String>,
) -> ProfileAnalysis {
    let sum = |part: fn(&crate::recording::ThreadAccount) -> Nanos| -> Nanos {
        recording.threads.iter().map(part).sum()
    };
    let (waited, cpu, runnable) = (recording.waited(), sum(|one| one.cpu), sum(|one| one.runnable));
    let threads = sum(|one| one.span).max(waited + cpu + runnable);
    let avoidable: Nanos = diagnoses.iter().map(|one| one.gain.saved()).sum();
    ProfileAnalysis {
        streams,
        diagnoses,
        waited,
        avoidable: avoidable.min(waited),
        cpu,
        runnable,
        threads,
        other: threads.saturating_sub(waited + cpu + runnable),
        no_prediction,
    }
}
