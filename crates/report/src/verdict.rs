//! Formats the recommendation in sentences; it decides nothing.

use study::{
    Alternative, Caveat, CostChange, Decision, Gain, InconclusiveReason, Recommendation, RunStatus,
    StudyPurpose, Target, WorkloadVerdict,
};
use units::Kib;
use workload::AccessMethod;

use crate::factors;
use crate::number::{factor_certainty, setting, short, time, times};
use crate::run_report::RunReport;
use crate::verdict_parts::{Clean, VerdictLine, goals, join, to_apply, unfinished};
use units::text::counted;

/// Returns the recommendation: what to set and under which condition, its gain and costs with their
/// uncertainty, what was not measured, and how to set it. `clean` sanitises names for the output
/// format.
pub fn verdict(report: &RunReport<'_>, clean: Clean) -> Vec<VerdictLine> {
    if report.varied() {
        return factors::verdict(report, clean);
    }
    let mut sentences = Vec::new();
    if report.run.summary.status != RunStatus::Complete {
        sentences.push(unfinished(report, clean));
    }
    if report.analysis.cells.is_empty() {
        return sentences.into_iter().map(VerdictLine::Sentence).collect();
    }
    let words = Words { report, advice: &report.analysis.recommendation, clean };
    sentences.push(words.headline());
    sentences.extend(words.otherwise());
    sentences.extend(words.caveats());
    sentences.extend(words.to_be_sure());
    sentences.extend(words.larger());
    sentences.extend(words.each_goal());
    sentences.extend(words.cost());
    sentences.extend(dilated(report.analysis.dilation));
    sentences.extend(report.analysis.notes.iter().map(|note| format!("Note: {}.", clean(note))));
    let mut lines: Vec<VerdictLine> = sentences.into_iter().map(VerdictLine::Sentence).collect();
    lines.extend(how_to_apply(report));
    lines
}

/// Returns the recommendation in one sentence: the first one of [`verdict`].
pub(crate) fn headline(report: &RunReport<'_>, clean: Clean) -> String {
    if report.varied() {
        return factors::headline(report, clean);
    }
    Words { report, advice: &report.analysis.recommendation, clean }.headline()
}

/// Builds the sentences of a recommendation.
struct Words<'a> {
    report: &'a RunReport<'a>,
    advice: &'a Recommendation,
    clean: Clean,
}

impl Words<'_> {
    /// Returns the decision with its condition, gain and cost.
    fn headline(&self) -> String {
        let goals = goals(self.report, self.clean);
        match self.advice.decision {
            Decision::Set(kib) => self.set(kib, &goals),
            Decision::Keep(kib) => self.keep(kib, &goals),
            Decision::NoDifference => {
                let keep = self.report.run.found.map(setting);
                let keep = keep.map_or_else(String::new, |found| format!(" Keep {found}."));
                format!("No measurable difference between {} for {goals}.{keep}", self.range())
            }
            Decision::Inconclusive(InconclusiveReason::NothingToCompare) => {
                format!("Only one setting was measured for {goals}: there is nothing to compare.")
            }
            Decision::Inconclusive(InconclusiveReason::TooNoisy) => format!(
                "Inconclusive: the measurements of {goals} vary too much to compare {}.",
                self.range()
            ),
            Decision::Inconclusive(doubt) => format!("Inconclusive: {doubt}."),
        }
    }

    fn set(&self, kib: Kib, goals: &str) -> String {
        let what = format!("Set read-ahead to {}{}", setting(kib), self.condition());
        if let Some(saving) = &self.advice.saving {
            let over = self.advice.gain.as_ref().map_or_else(String::new, compared_with);
            let faster = saving.changes.iter().filter_map(|change| self.change(change));
            let memory = short(saving.memory_mib).filter(|_| saving.memory_mib >= 1.0);
            let less = memory.map(|memory| {
                let streams = self.advice.cost.as_ref().map_or(1, |cost| cost.streams);
                let streams = counted(streams as usize, "stream");
                format!("up to {memory} MiB less memory for {streams}")
            });
            let saved = join(&faster.chain(less).collect::<Vec<_>>());
            return format!("{what}: {goals} as fast as{over}, with {saved}.");
        }
        let gain = self.advice.gain.as_ref().and_then(gain_words).unwrap_or_default();
        let lost = self.advice.conditions.iter().filter_map(|condition| {
            let ratio = times(condition.throughput_ratio.median)?;
            Some(format!("{} {ratio}", (self.clean)(&condition.workload)))
        });
        let lost = join(&lost.collect::<Vec<_>>());
        let lost = if lost.is_empty() { lost } else { format!(", but {lost}") };
        format!("{what}: throughput of {goals} {gain}{lost}.")
    }

    fn keep(&self, kib: Kib, goals: &str) -> String {
        let better = self.advice.best.as_ref().filter(|best| best.read_ahead_kib != kib);
        let best = better.and_then(|best| {
            let much = times(best.gain.ratio.median)?;
            let sure = factor_certainty(&best.gain.ratio);
            Some(format!(
                "the best of {}, {}, gives {much} ({sure}) for {goals}, less than the 10 % that \
                 justify a change",
                self.range(),
                best.read_ahead_kib
            ))
        });
        let none = || format!("none of {} is at least 10 % faster for {goals}", self.range());
        format!("Keep read-ahead at {}: {}.", setting(kib), best.unwrap_or_else(none))
    }

    /// Returns `the 25 settings from 4 KiB to 65536 KiB`.
    fn range(&self) -> String {
        let settings = self.report.settings();
        match (settings.first(), settings.last()) {
            (Some(first), Some(last)) => {
                format!("the {} settings from {first} to {last}", settings.len())
            }
            _ => "the settings".to_owned(),
        }
    }

    /// Returns the condition of the setting, as text that follows the setting.
    fn condition(&self) -> String {
        let uses = self.advice.conditions.iter().map(|it| self.use_of(&it.workload));
        let uses: Vec<String> = uses.collect();
        if uses.is_empty() {
            String::new()
        } else {
            format!(" if no process {}", uses.join(" or "))
        }
    }

    /// Returns the behaviour of a process that resembles this workload.
    fn use_of(&self, workload: &str) -> String {
        let planned = self.report.run.plan.workloads.iter();
        let found = planned.map(|planned| &planned.workload).find(|it| it.name == workload);
        match found.filter(|it| it.has_random_part()).map(|it| it.access) {
            Some(AccessMethod::Mmap) => "reads mapped files at random".to_owned(),
            Some(AccessMethod::Read) => "reads files at random".to_owned(),
            None => format!("reads like {}", (self.clean)(workload)),
        }
    }

    /// Returns what to do if the condition does not hold.
    fn otherwise(&self) -> Option<String> {
        if self.advice.conditions.is_empty() {
            return None;
        }
        let Some(other) = &self.advice.without_conditions else {
            return Some(match self.report.run.found {
                Some(found) if self.is_alternative_open() => {
                    format!("Otherwise keep {}.", setting(found))
                }
                Some(found) => format!(
                    "Otherwise keep {}: no measured setting gains 10 % without that cost.",
                    setting(found)
                ),
                None => "No measured setting gains without that cost.".to_owned(),
            });
        };
        let much = times(other.gain.ratio.median)?;
        let changes = other.changes.iter();
        let costly = changes.filter(|change| self.is_condition(&change.workload));
        let parts = costly.filter_map(|change| self.change(change));
        let parts: Vec<String> = std::iter::once(much).chain(parts).collect();
        Some(format!("Otherwise set {}: {}.", setting(other.read_ahead_kib), parts.join(", ")))
    }

    /// Returns whether a setting that might avoid the condition has an unmeasured cost.
    fn is_alternative_open(&self) -> bool {
        let open = |caveat: &Caveat| match caveat {
            Caveat::CostNotMeasured { read_ahead_kib, .. } => {
                self.advice.value() != Some(*read_ahead_kib)
            }
            _ => false,
        };
        self.advice.caveats.iter().any(open)
    }

    fn is_condition(&self, workload: &str) -> bool {
        self.advice.conditions.iter().any(|condition| condition.workload == workload)
    }

    /// Returns `rand-mmap ×0.55`.
    fn change(&self, change: &CostChange) -> Option<String> {
        let ratio = times(change.throughput_ratio.median)?;
        Some(format!("{} {ratio}", (self.clean)(&change.workload)))
    }

    /// Returns what was not measured and could change the decision.
    fn caveats(&self) -> Vec<String> {
        let sentence = |caveat: &Caveat| match caveat {
            Caveat::EdgeOfRange { read_ahead_kib } => format!(
                "{read_ahead_kib} is at the edge of the tried settings: settings beyond it \
                 (--vary read_ahead=…) may be better."
            ),
            Caveat::CostNotMeasured { read_ahead_kib, workload } => format!(
                "The effect of {read_ahead_kib} on {} was not measured: a larger --budget \
                 measures it.",
                (self.clean)(workload)
            ),
            Caveat::PresentNotMeasured { read_ahead_kib } => format!(
                "The current {read_ahead_kib} was not measured, so the gain over it is unknown."
            ),
            Caveat::FilesUsedUp { read_ahead_kib, workload } => format!(
                "{} had half of its files in the cache at the end of a trial at {read_ahead_kib}, \
                 so it looks faster than it is: use larger files (--size).",
                (self.clean)(workload)
            ),
        };
        self.advice.caveats.iter().map(sentence).collect()
    }

    /// Returns what to do if the measurements do not decide.
    fn to_be_sure(&self) -> Option<String> {
        let advice = match self.report.run.plan.target {
            Target::Imported(_) => {
                "The figures have no repeats. If the author states a spread, import them with \
                 --spread."
            }
            _ => {
                "Measure more (--repeats, --budget), longer (--duration) or when the system is \
                  idle."
            }
        };
        self.advice.is_inconclusive().then(|| advice.to_owned())
    }

    /// Returns a larger setting with more gain that was not recommended.
    fn larger(&self) -> Option<String> {
        let Decision::Set(chosen) = self.advice.decision else { return None };
        let best = self.advice.best.as_ref().filter(|best| best.read_ahead_kib > chosen)?;
        let economical = self.advice.economical.as_ref()?.gain.ratio.median;
        (best.gain.ratio.median >= economical * NAMED_FROM).then(|| self.alternative(best))?
    }

    fn alternative(&self, best: &Alternative) -> Option<String> {
        let much = times(best.gain.ratio.median)?;
        let changes = best.changes.iter().filter_map(|change| self.change(change));
        let parts: Vec<String> = std::iter::once(much).chain(changes).collect();
        Some(format!("The fastest setting is {}: {}.", best.read_ahead_kib, parts.join(", ")))
    }

    /// Returns the decision for each goal alone.
    fn each_goal(&self) -> Vec<String> {
        let goals = &self.report.analysis.per_workload;
        // If all goals are inconclusive, the headline already states that.
        let unknown = |goal: &WorkloadVerdict| matches!(goal.decision, Decision::Inconclusive(_));
        if goals.len() < 2 || goals.iter().all(unknown) {
            return Vec::new();
        }
        let line = |goal: &WorkloadVerdict| {
            let name = (self.clean)(&goal.workload);
            match goal.decision {
                Decision::Set(kib) => {
                    let gain = goal.gain.as_ref().and_then(gain_words).unwrap_or_default();
                    format!("{name} alone: {kib}, {gain}.")
                }
                Decision::Keep(kib) => format!("{name} alone: keep {kib}."),
                Decision::NoDifference => format!("{name} alone: no measurable difference."),
                Decision::Inconclusive(_) => format!("{name} alone: inconclusive."),
            }
        };
        goals.iter().map(line).collect()
    }

    /// Returns the costs of the recommended setting besides its conditions.
    fn cost(&self) -> Option<String> {
        let (Decision::Set(kib), Some(cost)) = (&self.advice.decision, &self.advice.cost) else {
            return None;
        };
        let memory = short(cost.memory_mib)?;
        let streams = counted(cost.streams as usize, "stream");
        let mut parts = vec![format!("up to {memory} MiB of memory for {streams}")];
        if let Some(amplification) = cost.amplification.and_then(more_than_asked) {
            parts.push(format!("the device reads {amplification} times the requested data"));
        }
        parts.extend(cost.changes.iter().filter_map(|change| self.detail(change)));
        let weighed = match self.advice.purpose {
            StudyPurpose::Streaming => " (not weighed: --purpose streaming)",
            _ => "",
        };
        Some(format!("Cost of {kib}{weighed}: {}.", parts.join("; ")))
    }

    fn detail(&self, change: &CostChange) -> Option<String> {
        let ratio = &change.throughput_ratio;
        let mut part = self.change(change)?;
        // A change that may be due to chance is not a cost.
        let (low, high) = ratio.decision_bounds();
        if ratio.is_bounded() && low < 1.0 && high > 1.0 && !self.is_condition(&change.workload) {
            part.push_str(&format!(", within the noise ({})", factor_certainty(ratio)));
        }
        if let Some(latency) = change.latency
            && let (Some(before), Some(after)) =
                (time(latency.before_us.p99), time(latency.after_us.p99))
            && before != after
        {
            part.push_str(&format!(" (p99 latency {before} → {after})"));
        }
        if let Some(amplification) = change.amplification.and_then(more_than_asked) {
            part.push_str(&format!(", reading {amplification} times the requested data"));
        }
        Some(part)
    }
}

/// A larger setting is mentioned if it is this many times as fast as the economical one.
const NAMED_FROM: f64 = 1.02;

/// Returns `×2.53 (95 % CI 2.40–2.60) compared with the current 128 KiB`.
fn gain_words(gain: &Gain) -> Option<String> {
    let (much, sure) = (times(gain.ratio.median)?, factor_certainty(&gain.ratio));
    Some(format!("{much} ({sure}) compared with{}", compared_with(gain)))
}

/// Returns ` the current 128 KiB`.
fn compared_with(gain: &Gain) -> String {
    let which = if gain.baseline_is_current { "the current" } else { "the smallest setting," };
    format!(" {which} {}", gain.baseline_kib)
}

/// Returns the amplification if it is at least 1.05.
fn more_than_asked(amplification: f64) -> Option<String> {
    short(amplification).filter(|_| amplification >= 1.05)
}

/// Describes the dilation of a virtual disk.
fn dilated(dilation: f64) -> Option<String> {
    let how = if dilation > 1.0 {
        format!(
            "{} times slower than its model, so that this machine could keep up",
            short(dilation)?
        )
    } else if dilation < 1.0 {
        format!("{} times faster than its model", short(1.0 / dilation)?)
    } else {
        return None;
    };
    Some(format!("The virtual disk ran {how}; all figures are in the model's own time."))
}

/// Returns how to apply the recommended setting.
fn how_to_apply(report: &RunReport<'_>) -> Vec<VerdictLine> {
    match report.analysis.recommendation.decision {
        Decision::Set(kib) => to_apply(report, &format!("read_ahead={}K", kib.get())),
        _ => Vec::new(),
    }
}
