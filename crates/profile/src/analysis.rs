//! Analyses a recording: diagnoses with predicted gains.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use units::Nanos;

use crate::device::{DeviceModel, ModelChoice, learnt_model};
use crate::predict::{Prediction, marginal_gains, predict};
use crate::recording::{AccessKind, IoRequest, ProfileRecording, WaitClass};
use crate::replay::ProfileReplay;
use crate::rules::{
    CheckStream, DiagnosisRule, FixChange, MIN_COST_SHARE, RULES, RuleCheck, RuleFinding, RunView,
    read_briefly,
};
use crate::stream::{FileStream, in_longest_thread, streams};
use crate::warm::WarmAccesses;
use crate::what_if::{ReplaySetting, WhatIfTable, what_if};

/// Largest share of lost events at which gains are still predicted.
const MAX_LOSS_SHARE: f64 = 0.01;
const NO_MODEL: &str = "no model of the device: give --device MODEL";

/// Time that a fix would save.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictedGain {
    /// Time saved, and its lower and upper bound.
    Predicted { saved: Nanos, least: Nanos, most: Nanos },
    /// Reason why the gain is unknown.
    NotPredictable(String),
}

impl PredictedGain {
    pub fn saved(&self) -> Nanos {
        match self {
            Self::Predicted { saved, .. } => *saved,
            Self::NotPredictable(_) => Nanos::ZERO,
        }
    }

    /// Returns the gain limited to `limit`; the bounds scale with it.
    pub(crate) fn at_most(&self, limit: Nanos) -> Self {
        match *self {
            Self::Predicted { saved, least, most } if saved > limit => {
                let share = limit.get() as f64 / saved.get() as f64;
                Self::Predicted {
                    saved: limit,
                    least: least.scaled(share),
                    most: most.scaled(share),
                }
            }
            _ => self.clone(),
        }
    }
}

/// A rule that applies, its finding and the predicted gain of its fix.
#[derive(Clone, Debug)]
pub struct ProfileDiagnosis {
    pub rule: &'static DiagnosisRule,
    /// Index of the stream; `None` if the diagnosis is about the whole run.
    pub stream: Option<usize>,
    pub finding: RuleFinding,
    pub gain: PredictedGain,
    /// Gain in addition to the fixes of the diagnoses before it; `None` if unknown.
    pub marginal: Option<Nanos>,
}

impl ProfileDiagnosis {
    /// Returns the class of waits of which a diagnosis of the whole run explains all, on any file.
    pub(crate) fn explained_class(&self) -> Option<WaitClass> {
        match self.rule.name {
            "metadata" => Some(WaitClass::Metadata),
            "write-back" => Some(WaitClass::WriteBack),
            "stalling-advice" => Some(WaitClass::Advice),
            _ => None,
        }
    }

    /// Returns whether a change is needed: not if the device or writes are the limit.
    pub fn is_problem(&self) -> bool {
        !matches!(self.rule.name, "device-bound" | "write-back")
    }

    /// Returns the streams that the diagnosis is about.
    fn streams<'a>(&'a self, all: &'a [FileStream]) -> impl Iterator<Item = &'a FileStream> {
        self.stream.iter().chain(&self.finding.others).map(|place| &all[*place])
    }

    /// Sort key: problems first, then by descending wait time.
    fn rank(&self) -> (Reverse<bool>, Reverse<Nanos>) {
        (Reverse(self.is_problem()), Reverse(self.finding.waited))
    }

    /// Returns the gain in addition to earlier fixes, or the full gain if that is unknown.
    fn marginal_or_full_gain(&self) -> Nanos {
        self.marginal.unwrap_or_else(|| self.gain.saved())
    }
}

/// Result of the analysis of a recording.
#[derive(Clone, Debug)]
pub struct ProfileAnalysis {
    pub streams: Vec<FileStream>,
    /// Problems first, then by descending wait time.
    pub diagnoses: Vec<ProfileDiagnosis>,
    pub waited: Nanos,
    /// Predicted savings of all diagnoses, at most `waited`.
    pub avoidable: Nanos,
    pub cpu: Nanos,
    pub runnable: Nanos,
    /// Time of all threads, and the part outside `waited`, `cpu` and `runnable`.
    pub threads: Nanos,
    pub other: Nanos,
    /// Reason why no gain is predicted at all.
    pub no_prediction: Option<String>,
    /// Predictions for the requested settings, or why there are none; `None` if none requested.
    pub what_if: Option<Result<WhatIfTable, String>>,
}

impl ProfileAnalysis {
    /// Returns the time that threads were running or runnable.
    pub fn compute(&self) -> Nanos {
        self.cpu + self.runnable
    }

    /// Denominator of shares: time without idling, because server threads idle a lot.
    pub fn busy(&self) -> Nanos {
        self.compute() + self.waited
    }

    /// Returns the wait time of problems whose fix has no predicted gain.
    pub fn unpredicted(&self) -> Nanos {
        let unknown = self
            .diagnoses
            .iter()
            .filter(|one| one.is_problem() && matches!(one.gain, PredictedGain::NotPredictable(_)));
        let waited: Nanos = unknown.map(|one| one.finding.waited).sum();
        waited.min(self.waited.saturating_sub(self.avoidable))
    }

    /// Returns the wait time that is neither avoidable nor unpredicted.
    pub fn device_bound(&self) -> Nanos {
        self.waited.saturating_sub(self.avoidable + self.unpredicted())
    }
}

/// Predicts gains with one device model for each device.
struct Predictor<'a> {
    recording: &'a ProfileRecording,
    choice: &'a ModelChoice,
    refusal: Option<String>,
    learnt: BTreeMap<host::DevNo, Option<DeviceModel>>,
    warm: WarmAccesses,
}

impl<'a> Predictor<'a> {
    fn new(recording: &'a ProfileRecording, choice: &'a ModelChoice) -> Self {
        let warm = match choice {
            ModelChoice::None => WarmAccesses::default(),
            ModelChoice::Named(_) | ModelChoice::Measured(_) => WarmAccesses::of(recording),
        };
        Self { recording, choice, refusal: refusal(recording), learnt: BTreeMap::new(), warm }
    }

    fn model(&mut self, stream: &FileStream) -> Option<DeviceModel> {
        let file = &self.recording.files[stream.inode as usize];
        let device = file.id.device;
        match self.choice {
            ModelChoice::Named(model) => Some((**model).clone()),
            ModelChoice::None => None,
            ModelChoice::Measured(known) => {
                let found = known.get(&device).or_else(|| self.learnt.get(&device)?.as_ref());
                if found.is_some() {
                    return found.cloned();
                }
                let of_device = self.recording.requests.iter();
                let of_device = of_device.filter(|one| one.device == device);
                let requests: Vec<IoRequest> = of_device.copied().collect();
                let learnt = learnt_model(Path::new(&file.path), &requests);
                self.learnt.insert(device, learnt.clone());
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
            FixChange::Saves(waits) => {
                let saved = self.in_longest_thread(streams, *waits).min(self.recording.wall);
                PredictedGain::Predicted { saved, least: saved, most: saved }
            }
            FixChange::Unpredictable(why) => not(why),
            change => self.simulated(streams, change).unwrap_or_else(PredictedGain::NotPredictable),
        }
    }

    /// Returns the gain of a change of these streams on all their devices. Each device is simulated
    /// separately; work on other devices counts as time between reads. A doubtful prediction is an
    /// error, unless gain plus error is too small to be reported.
    fn simulated(
        &mut self,
        streams: &[&FileStream],
        change: &FixChange,
    ) -> Result<PredictedGain, String> {
        let mut of_devices: BTreeMap<host::DevNo, Vec<&FileStream>> = BTreeMap::new();
        for stream in streams {
            let device = self.recording.files[stream.inode as usize].id.device;
            of_devices.entry(device).or_default().push(stream);
        }
        let mut all: Option<Prediction> = None;
        for streams in of_devices.into_values() {
            let size = |one: &&&FileStream| self.recording.files[one.inode as usize].size;
            let Some(largest) = streams.iter().max_by_key(size) else { continue };
            let waited: Nanos = streams.iter().map(|stream| stream.waited).sum();
            let model = self.model(largest).ok_or_else(|| NO_MODEL.to_owned());
            let one = model
                .and_then(|model| predict(self.recording, streams, change, &self.warm, &model));
            match one {
                Ok(mut one) => {
                    one.doubt =
                        one.doubt.filter(|_| matters(self.recording, one.saved + one.error));
                    all = Some(match all {
                        Some(all) => all.plus(one),
                        None => one,
                    });
                }
                Err(why) if matters(self.recording, waited) => return Err(why),
                Err(_) => {}
            }
        }
        let Prediction { saved, error, doubt } = all.ok_or_else(|| NO_MODEL.to_owned())?;
        // Threads may have waited on several devices at once.
        let saved = saved.min(self.recording.wall);
        let (least, most) = (saved.saturating_sub(error), saved + error);
        doubt.map_or(Ok(PredictedGain::Predicted { saved, least, most }), Err)
    }

    /// Returns the part of `waits` in the thread that waited longest; others wait in parallel.
    fn in_longest_thread(&self, streams: &[&FileStream], waits: Nanos) -> Nanos {
        let all: Nanos = streams.iter().map(|stream| stream.waited).sum();
        let longest = in_longest_thread(self.recording, streams);
        if all > Nanos::ZERO {
            waits.scaled(longest.get() as f64 / all.get() as f64)
        } else {
            waits
        }
    }
}

/// Returns whether a time is long enough to be reported.
fn matters(recording: &ProfileRecording, time: Nanos) -> bool {
    time.get() as f64 >= MIN_COST_SHARE * recording.wall.get() as f64
}

/// Returns whether a finding is reported: its gain is unknown, or large enough and above zero
/// within its error.
fn is_worth(recording: &ProfileRecording, gain: &PredictedGain) -> bool {
    match gain {
        PredictedGain::NotPredictable(_) => true,
        PredictedGain::Predicted { saved, least, .. } => {
            matters(recording, *saved) && *least > Nanos::ZERO
        }
    }
}

/// Applies the rules, predicts their gains and predicts the effect of each of `settings`.
pub fn analyse(
    recording: &ProfileRecording,
    choice: &ModelChoice,
    settings: &[ReplaySetting],
) -> ProfileAnalysis {
    let streams = streams(recording);
    let run = RunView { recording, streams: &streams };
    let mut predictor = Predictor::new(recording, choice);
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
            diagnoses.push(ProfileDiagnosis { rule, stream: None, finding, gain, marginal: None });
        }
    }
    for (place, stream) in streams.iter().enumerate() {
        if explained.contains(&place) {
            continue;
        }
        diagnoses.extend(diagnose(&run, place, stream, &mut predictor, None));
    }
    for places in little_waited(&run, &explained) {
        let Some((rule, finding)) = read_briefly(&run, &places) else { continue };
        let gain = predictor.gain(&[], &finding);
        diagnoses.push(ProfileDiagnosis { rule, stream: None, finding, gain, marginal: None });
    }
    diagnoses.sort_by_key(ProfileDiagnosis::rank);
    let what_if = replay_device(&streams, &mut diagnoses, settings, &mut predictor);
    let (kept, dropped): (Vec<_>, Vec<_>) =
        diagnoses.into_iter().partition(|one| is_worth(recording, &one.gain));
    let mut diagnoses = kept;
    for (place, rule) in dropped.iter().filter_map(|one| Some((one.stream?, one.rule))) {
        let others = diagnose(&run, place, &streams[place], &mut predictor, Some(rule));
        // A gain predicted for the stream alone would be too large again.
        diagnoses.extend(others.into_iter().filter(|one| one.gain.saved() == Nanos::ZERO));
    }
    diagnoses.sort_by_key(ProfileDiagnosis::rank);
    ProfileAnalysis { what_if, ..build_analysis(recording, streams, diagnoses, predictor.refusal) }
}

/// Returns open files whose waits are too short to report, for each file with several of them.
fn little_waited(run: &RunView<'_>, explained: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut of_files: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, stream) in run.streams.iter().enumerate() {
        let is_read = stream.kind == AccessKind::Read && stream.waited > Nanos::ZERO;
        if is_read && !explained.contains(&place) && !run.matters(stream.waited) {
            of_files.entry(stream.inode).or_default().push(place);
        }
    }
    of_files.into_values().filter(|places| places.len() > 1).collect()
}

/// Replays all streams of the device with the longest wait together. Sets the marginal gain of each
/// fix and returns the predictions for `settings`.
fn replay_device(
    streams: &[FileStream],
    diagnoses: &mut [ProfileDiagnosis],
    settings: &[ReplaySetting],
    predictor: &mut Predictor<'_>,
) -> Option<Result<WhatIfTable, String>> {
    let recording = predictor.recording;
    let device = |stream: &FileStream| recording.files[stream.inode as usize].id.device;
    let of_device = |stream: &&FileStream| device(stream) == device(&streams[0]);
    let simulated = |one: &&mut ProfileDiagnosis| {
        one.gain.saved() > Nanos::ZERO
            && !matches!(one.finding.change, FixChange::Saves(_))
            && one.streams(streams).all(|stream| of_device(&stream))
    };
    let mut fixes: Vec<_> = diagnoses.iter_mut().filter(simulated).collect();
    let waiting = streams.iter().filter(of_device).filter(|stream| stream.waited > Nanos::ZERO);
    let is_shared = waiting.count() > 1 && !fixes.is_empty();
    if settings.is_empty() && fixes.len() < 2 && !is_shared {
        return None;
    }
    let model = match (&predictor.refusal, streams.first()) {
        (Some(refusal), _) => Err(refusal.clone()),
        (None, None) => Err("nothing was read".to_owned()),
        (None, Some(first)) => predictor.model(first).ok_or_else(|| NO_MODEL.to_owned()),
    };
    let replay = model.as_ref().map_err(Clone::clone).and_then(|model| {
        let streams = streams.iter().filter(of_device).collect();
        let replay = ProfileReplay::new(recording, streams, &predictor.warm, model)?;
        replay.check().map(|()| replay)
    });
    if let Ok(replay) = &replay {
        let keys = |one: &ProfileDiagnosis| one.streams(streams).map(FileStream::key).collect();
        let changes: Vec<_> = fixes.iter().map(|one| (keys(one), &one.finding.change)).collect();
        if let Ok(gains) = marginal_gains(replay, &changes) {
            let most = gains.iter().copied().sum::<Nanos>() + replay.error;
            let are_several = fixes.len() > 1;
            for (one, gain) in fixes.iter_mut().zip(gains) {
                one.marginal = are_several.then(|| gain.min(one.gain.saved()));
                // Each gain was predicted as if the stream had the device to itself.
                if is_shared {
                    one.gain = one.gain.at_most(most);
                }
            }
        }
    }
    let asked = !settings.is_empty();
    asked.then(|| replay.and_then(|replay| what_if(&replay, settings, recording.wall)))
}

/// Returns the first rule for the waits and the first rule for the calls of a stream that apply and
/// are worth reporting. Skips the rule `except`.
fn diagnose(
    run: &RunView<'_>,
    place: usize,
    stream: &FileStream,
    predictor: &mut Predictor<'_>,
    except: Option<&DiagnosisRule>,
) -> Vec<ProfileDiagnosis> {
    let mut apply = |rule: &'static DiagnosisRule, check: CheckStream| {
        let finding = check(run, stream)?;
        let gain = predictor.gain(&[stream], &finding);
        let is_known = matches!(gain, PredictedGain::Predicted { .. });
        let worth =
            is_worth(run.recording, &gain) && (is_known || !run.needs_prediction(rule, stream));
        let stream = Some(place);
        worth.then_some(ProfileDiagnosis { rule, stream, finding, gain, marginal: None })
    };
    let rules = || RULES.iter().filter(|rule| except.is_none_or(|it| it.code != rule.code));
    let waits = rules().find_map(|rule| match rule.check {
        RuleCheck::Stream(check) => apply(rule, check),
        _ => None,
    });
    let calls = rules().find_map(|rule| match rule.check {
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

fn build_analysis(
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
    let avoidable: Nanos = diagnoses.iter().map(ProfileDiagnosis::marginal_or_full_gain).sum();
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
        what_if: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_gain_keeps_its_relative_error() {
        let [least, saved, most] = [80, 100, 130].map(Nanos::new);
        let gain = PredictedGain::Predicted { saved, least, most };
        let [least, saved, most] = [40, 50, 65].map(Nanos::new);
        assert_eq!(gain.at_most(saved), PredictedGain::Predicted { saved, least, most });
        assert_eq!(gain.at_most(Nanos::new(100)), gain);
    }
}
