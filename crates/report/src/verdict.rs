//! The verdict as a person would say it.

use std::collections::BTreeSet;

use study::{
    Difference, Estimate, Gain, LatencyChange, Price, Role, RunStatus, Target, VerdictKind,
    WorkloadVerdict,
};
use units::Kib;

use crate::clean;
use crate::factors;
use crate::findings::Findings;
use crate::number::{certainty, ratio, setting, short, time};

/// A piece of the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A sentence or a few.
    Sentence(String),
    /// Something to type.
    Command(String),
}

/// How names from outside are made harmless for where the sentences go.
pub(crate) type Clean = fn(&str) -> String;

/// The verdict: which setting, what it gains, how sure that is, what it costs elsewhere, what was
/// not measured, how to set it. `clean` makes names harmless for where the sentences go.
pub fn verdict(findings: &Findings<'_>, clean: Clean) -> Vec<Line> {
    if factors::varied(findings) {
        return factors::verdict(findings, clean);
    }
    let mut sentences = Vec::new();
    if findings.run.summary.status != RunStatus::Complete {
        sentences.push(unfinished(findings, clean));
    }
    if findings.analysis.cells.is_empty() {
        return sentences.into_iter().map(Line::Sentence).collect();
    }
    sentences.push(headline(findings, clean));
    sentences.extend(to_be_sure(findings));
    sentences.extend(conservative(findings));
    sentences.extend(each_goal(findings, clean));
    let prices = findings.analysis.verdict.price.iter();
    let kept = findings.kept();
    // What is kept costs nothing that it did not cost before.
    let asked = prices.filter(|price| kept.is_none_or(|kept| price.read_ahead_kib < kept));
    sentences.extend(asked.filter_map(|p| price(findings, p, clean)));
    sentences.extend(dilated(findings.analysis.dilation));
    sentences.extend(findings.analysis.notes.iter().map(|note| format!("Note: {}.", clean(note))));
    let mut lines: Vec<Line> = sentences.into_iter().map(Line::Sentence).collect();
    lines.extend(how_to_apply(findings));
    lines
}

/// What is to be known first of a run that is not complete.
pub(crate) fn unfinished(findings: &Findings<'_>, clean: Clean) -> String {
    let summary = &findings.run.summary;
    match summary.status {
        RunStatus::Complete => String::new(),
        RunStatus::Running => "This run is still being measured; so far:".to_owned(),
        RunStatus::Interrupted => {
            "This run was interrupted: the same command goes on with it. So far:".to_owned()
        }
        RunStatus::Failed => match summary.error.as_deref().filter(|error| error.len() < 400) {
            Some(error) => format!("This run ended with an error ({}); up to there:", clean(error)),
            None => "This run ended with an error; up to there:".to_owned(),
        },
    }
}

/// The setting and its gain, in one or two sentences.
fn headline(findings: &Findings<'_>, clean: Clean) -> String {
    let verdict = &findings.analysis.verdict;
    let goals = goals(findings, clean);
    let settings = findings.settings();
    let range = match (settings.first(), settings.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("the {} settings from {first} to {last}", settings.len())
        }
        _ => {
            return format!(
                "One setting alone was measured for {goals}: there is nothing to compare it with."
            );
        }
    };
    if let Some(doubt) = &verdict.doubt {
        return format!("Inconclusive: {doubt}. Measure again, at a quieter time.");
    }
    match (verdict.kind, verdict.full_kib) {
        (VerdictKind::Inconclusive, _) => {
            format!("Inconclusive: the intervals are too wide to tell {range} apart for {goals}.")
        }
        (VerdictKind::NoMeasurableDifference, _) | (VerdictKind::Better, None) => {
            let stay = findings
                .run
                .found
                .map_or_else(String::new, |found| format!(" Leave it at {}.", setting(found)));
            format!("No measurable difference between {range} for {goals}.{stay}")
        }
        (VerdictKind::Better, Some(full)) if findings.run.found == Some(full) => format!(
            "Keep read-ahead at {}: for {goals}, none of {range} is measurably better.",
            setting(full)
        ),
        (VerdictKind::Better, Some(full)) => match findings.kept() {
            Some(found) => format!(
                "Keep read-ahead at {}: for {goals}, none of {range} is measurably better.{}",
                setting(found),
                verdict.gain.as_ref().and_then(|gain| runner_up(full, gain)).unwrap_or_default()
            ),
            None => {
                let gain = verdict.gain.as_ref().and_then(gain_words).unwrap_or_default();
                format!("Set read-ahead to {} for {goals}{gain}.", setting(full))
            }
        },
    }
}

/// What to do where the intervals are too wide.
fn to_be_sure(findings: &Findings<'_>) -> Option<String> {
    let verdict = &findings.analysis.verdict;
    let wide = verdict.kind == VerdictKind::Inconclusive && verdict.doubt.is_none();
    let advice = match findings.run.plan.target {
        Target::Imported(_) => {
            "Each figure stands alone. If their author says how well they repeat, import them with \
             --spread."
        }
        _ => "Measure more (--repeats, --budget), longer (--duration) or at a quieter time.",
    };
    (wide && findings.settings().len() > 1).then(|| advice.to_owned())
}

/// The goals by name.
pub(crate) fn goals(findings: &Findings<'_>, clean: Clean) -> String {
    let workloads = findings.workloads();
    let goals = workloads.iter().filter(|planned| planned.role == Role::Goal);
    let names: Vec<String> = goals.map(|planned| clean(&planned.workload.name)).collect();
    match names.split_last() {
        None => "what was measured".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// What a setting gains, to follow its name.
fn gain_words(gain: &Gain) -> Option<String> {
    let than = if gain.over_found { "the present" } else { "the lowest tried," };
    let over = gain.over_kib;
    if gain.difference == Difference::NoMeasurableDifference {
        return Some(format!(", which is as good as {than} {over}"));
    }
    Some(format!(": {} compared with {than} {over}", much_and_how_sure(&gain.ratio)?))
}

/// How many times as much, and how far that can be trusted.
fn much_and_how_sure(gained: &Estimate) -> Option<String> {
    let much = ratio(gained.median)?;
    Some(format!("{much} ({})", certainty(gained)))
}

/// What was measured of the setting that comes nearest to being better than the present one.
fn runner_up(full: Kib, gain: &Gain) -> Option<String> {
    Some(format!(" {full} got {}.", much_and_how_sure(&gain.ratio)?))
}

/// The smaller setting that has most of the gain.
fn conservative(findings: &Findings<'_>) -> Option<String> {
    let verdict = &findings.analysis.verdict;
    let (small, full) = (verdict.conservative_kib?, verdict.full_kib?);
    // Whoever keeps what there is needs no word about a setting that is as large or larger.
    let kept = findings.kept().is_some_and(|kept| small >= kept);
    if verdict.kind != VerdictKind::Better || small == full || kept {
        return None;
    }
    let gain = verdict.conservative_gain.as_ref().and_then(gain_words).unwrap_or_default();
    Some(format!(
        "If memory is short or others share the device, {} already has at least 80 % of the \
         possible gain{gain}.",
        setting(small)
    ))
}

/// Goals that would be served by another setting than the one for all.
fn each_goal(findings: &Findings<'_>, clean: Clean) -> Vec<String> {
    let verdict = &findings.analysis.verdict;
    // That nothing is known of any has been said.
    let unknown = |goal: &WorkloadVerdict| goal.kind == VerdictKind::Inconclusive;
    if verdict.per_workload.len() < 2 || verdict.per_workload.iter().all(unknown) {
        return Vec::new();
    }
    let line = |goal: &WorkloadVerdict| {
        let name = clean(&goal.workload);
        match (goal.kind, goal.full_kib) {
            (VerdictKind::Better, Some(full)) => {
                let gain = goal.gain.as_ref().and_then(gain_words).unwrap_or_default();
                format!("{name} alone: {full}{gain}.")
            }
            (VerdictKind::Inconclusive, _) => format!("{name} alone: inconclusive."),
            _ => format!("{name} alone: no measurable difference."),
        }
    };
    verdict.per_workload.iter().map(line).collect()
}

/// How a virtual disk's time went by.
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

/// What a setting costs.
fn price(findings: &Findings<'_>, price: &Price, clean: Clean) -> Option<String> {
    let memory = short(price.memory_mib)?;
    let streams = match price.streams {
        1 => "one stream".to_owned(),
        streams => format!("{streams} streams"),
    };
    let mut parts = vec![format!("up to {memory} MiB of memory for {streams}")];
    if let Some(amplification) = price.amplification.and_then(more_than_asked) {
        parts.push(format!("the device reads {amplification} times what is asked for"));
    }
    parts.extend(price.random.iter().filter_map(|change| random_price(change, clean)));
    parts.extend(not_priced(findings, price, clean));
    Some(format!("The price of {}: {}.", price.read_ahead_kib, parts.join("; ")))
}

/// Random reads that were measured, but not under this setting.
fn not_priced(findings: &Findings<'_>, price: &Price, clean: Clean) -> Option<String> {
    let priced = |name: &str| price.random.iter().any(|change| change.workload == name);
    let random = findings.analysis.cells.iter().filter(|cell| cell.random_latency_us.is_some());
    let names: BTreeSet<String> =
        random.filter(|cell| !priced(&cell.workload)).map(|cell| clean(&cell.workload)).collect();
    let names = Vec::from_iter(names).join(" and ");
    (!names.is_empty()).then(|| format!("what {names} pay was not measured at this value"))
}

/// What random reads pay, or that they pay nothing.
fn random_price(change: &LatencyChange, clean: Clean) -> Option<String> {
    let change_of = &change.throughput_ratio;
    let much = ratio(change_of.median)?;
    // What chance may well have made is no price.
    let doubtful = change_of.is_bounded() && change_of.low() < 1.0 && change_of.high() > 1.0;
    let much = match () {
        () if much.starts_with("0 %") => "as much as before".to_owned(),
        () if doubtful => format!("{much}, which may be chance ({})", certainty(change_of)),
        () => much,
    };
    let mut part = format!("{} gets {much}", clean(&change.workload));
    if let (Some(before), Some(after)) = (time(change.before_us.p99), time(change.after_us.p99))
        && before != after
    {
        part.push_str(&format!(" (p99 latency {before} → {after})"));
    }
    if let Some(amplification) = change.amplification.and_then(more_than_asked) {
        part.push_str(&format!(", reading {amplification} times what it asks for"));
    }
    Some(part)
}

/// How many times what is asked for is read, where that is worth a word.
fn more_than_asked(amplification: f64) -> Option<String> {
    short(amplification).filter(|_| amplification >= 1.05)
}

/// What to type to have the recommended setting now.
fn how_to_apply(findings: &Findings<'_>) -> Vec<Line> {
    let full = findings.analysis.verdict.full_kib.filter(|_| findings.kept().is_none());
    match full.filter(|_| findings.analysis.verdict.kind == VerdictKind::Better) {
        Some(full) => to_apply(findings, &format!("read_ahead={}K", full.get())),
        None => Vec::new(),
    }
}

/// What to type to have these settings now. A virtual disk is gone by then.
pub(crate) fn to_apply(findings: &Findings<'_>, settings: &str) -> Vec<Line> {
    let Target::Path(_) = &findings.run.plan.target else { return Vec::new() };
    let Some(bdi) = bdi(findings) else { return Vec::new() };
    // A level of a tunable may be any word; what could run something is not put into a command.
    if settings.chars().any(|c| !(c.is_ascii_alphanumeric() || "=:-_., ".contains(c))) {
        return Vec::new();
    }
    vec![
        Line::Sentence(
            "To set it now, until the next boot, for files opened from then on (as root):"
                .to_owned(),
        ),
        Line::Command(format!("foreread apply {settings} --on {bdi}")),
        Line::Sentence("To see whether it is still so, and to undo it:".to_owned()),
        Line::Command("foreread verify".to_owned()),
        Line::Command("foreread rollback".to_owned()),
    ]
}

/// The bdi that the record names, if it is a name that can stand in a command.
fn bdi(findings: &Findings<'_>) -> Option<String> {
    let name = findings.run.device_before.pointer("/storage/bdi")?.as_str()?;
    let harmless = |c: char| c.is_ascii_alphanumeric() || ":-_.".contains(c);
    (name.chars().all(harmless) && !name.is_empty()).then(|| clean::plain(name))
}
