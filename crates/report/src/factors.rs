//! Reports a study of several tunables: a row for each combination, and the effect of each tunable.

use anstyle::Style;
use study::{
    CellSettings, Combination, Decision, Design, Difference, FactorEffect, FactorInteraction,
    RunCommand, RunStatus, Target,
};

use crate::clean;
use crate::limits::limits_text;
use crate::names::brief;
use crate::number::{
    ABSENT, certainty, factor_certainty, ratio, short, short_or_absent, times, with_spread,
};
use crate::plot::bar;
use crate::repro_command;
use crate::run_report::RunReport;
use crate::shade::Shades;
use crate::table::SHADES;
use crate::terminal_text::{TermStyle, legend, plain_grid, shaded, trades, verdict_text, wrap};
use crate::verdict_parts::{Clean, VerdictLine, goals, to_apply, unfinished, verdict_markdown};
use units::text::counted;

/// Explains the limits of such a study.
const LIMITS_OF: &str = "Limits apply to read-ahead alone: all other varied tunables have the \
                         target's own values.";

/// Returns the whole study for a terminal.
pub(crate) fn terminal(report: &RunReport<'_>, look: TermStyle) -> String {
    let run = report.run;
    let mut text = format!(
        "Run {}: tunables of {}{}, {} in {}, seed {}\n\n",
        run.summary.id,
        clean::plain(&run.summary.target),
        at_read_ahead(report),
        counted(run.trials.len(), "trial"),
        report.measuring_time(),
        run.seed
    );
    for line in plain_grid(header(report), rows(report, true), |_| false) {
        let line = if look.colour { shaded(&line, Style::new()) } else { line };
        text.push_str(&format!("{line}\n"));
    }
    text.push('\n');
    text.push_str(&wrap(&legend(report), look.width));
    text.push_str(&trades(report, look));
    if !report.analysis.limits.is_empty() {
        text.push_str(&limits_text(&report.analysis.limits));
        text.push_str(&wrap(LIMITS_OF, look.width));
    }
    text.push('\n');
    text.push_str(&ranked(report));
    text.push_str(&verdict_text(verdict(report, clean::plain), look.width));
    text
}

/// Returns the read-ahead of all combinations, if it was not varied.
fn at_read_ahead(report: &RunReport<'_>) -> String {
    match report.settings()[..] {
        [only] => format!(" at read-ahead {only}"),
        _ => String::new(),
    }
}

/// Draws the effects as bars, strongest first, for each workload.
fn ranked(report: &RunReport<'_>) -> String {
    const MAX_BAR_COLUMNS: usize = 32;
    let effects = &report.analysis.effects;
    let longest = effects.iter().map(|effect| effect.strength.ln()).fold(1e-9, f64::max);
    let mut text = String::new();
    let mut workload = None;
    for effect in effects {
        if workload != Some(&effect.workload) {
            let name = clean::plain(&effect.workload);
            text.push_str(&format!("{name} (best level ÷ worst, each tunable alone)\n"));
            workload = Some(&effect.workload);
        }
        let bar = bar(effect.strength.ln() / longest, MAX_BAR_COLUMNS);
        let much = short_or_absent(effect.strength);
        text.push_str(&format!("  {:<16} {bar} ×{much}\n", effect.tunable));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

pub(crate) fn markdown(report: &RunReport<'_>) -> String {
    let cells = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| clean::markdown(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let header = header(report);
    let rule = vec!["---"; header.len()].join(" | ");
    let mut text = cells(header);
    text.push_str(&format!("| {rule} |\n"));
    rows(report, false).into_iter().for_each(|row| text.push_str(&cells(row)));
    text.push('\n');
    text.push_str(&verdict_markdown(verdict(report, clean::markdown)));
    text
}

fn header(report: &RunReport<'_>) -> Vec<String> {
    let names = report.workloads().into_iter().map(|w| clean::plain(&w.workload.name));
    std::iter::once("settings".to_owned()).chain(names).chain([String::new()]).collect()
}

fn rows(report: &RunReport<'_>, shaded: bool) -> Vec<Vec<String>> {
    let cells = &report.analysis.cells;
    let names: Vec<&str> =
        report.workloads().iter().map(|planned| planned.workload.name.as_str()).collect();
    let shades = |name: &&str| {
        let ours = cells.iter().filter(|cell| cell.workload == **name);
        Shades::new(ours.map(|cell| cell.throughput_mib_s.median))
    };
    let ranges: Vec<Shades> = names.iter().map(shades).collect();
    let row = |settings: &CellSettings| {
        let each = names.iter().zip(&ranges).map(|(name, range)| {
            let cell = cells.iter().find(|c| c.settings == *settings && c.workload == *name);
            let Some(cell) = cell else { return ABSENT.to_owned() };
            let shade = range.shade(cell.throughput_mib_s.median, SHADES.len() - 1);
            if shaded { format!("{} {}", SHADES[shade], figures(cell)) } else { figures(cell) }
        });
        let marks = report.marks_of(settings).join(", ");
        let words = brief(&words(report, settings));
        std::iter::once(words).chain(each).chain([marks]).collect()
    };
    report.all_settings().iter().map(row).collect()
}

fn figures(cell: &study::Cell) -> String {
    let mut text = with_spread(&cell.throughput_mib_s);
    if let Some(amplification) = cell.amplification.and_then(|a| short(a.median)) {
        text.push_str(&format!(" ×{amplification}"));
    }
    text
}

/// Returns the sentences: what to set, the effect of each tunable, and their interactions.
pub(crate) fn verdict(report: &RunReport<'_>, clean: Clean) -> Vec<VerdictLine> {
    said(report, clean, true)
}

/// Returns the same without the effect of each tunable, for a page with a table of effects.
pub(crate) fn headlines(report: &RunReport<'_>, clean: Clean) -> Vec<VerdictLine> {
    said(report, clean, false)
}

/// Maximum number of sentences about interactions above the page's table of interactions.
const PAGE_INTERACTIONS: usize = 2;

fn said(report: &RunReport<'_>, clean: Clean, detail: bool) -> Vec<VerdictLine> {
    let analysis = report.analysis;
    let mut sentences = Vec::new();
    if report.run.summary.status != RunStatus::Complete {
        sentences.push(unfinished(report, clean));
    }
    if analysis.cells.is_empty() {
        return sentences.into_iter().map(VerdictLine::Sentence).collect();
    }
    sentences.push(headline(report, clean));
    sentences.extend(unsure(report));
    sentences.extend(ranking(report, clean));
    if detail {
        sentences.extend(analysis.effects.iter().map(|effect| alone(effect, clean)));
    }
    let most = if detail { usize::MAX } else { PAGE_INTERACTIONS };
    sentences.extend(together(report, clean).into_iter().take(most));
    sentences.extend(analysis.notes.iter().map(|note| format!("Note: {}.", clean(note))));
    let mut lines: Vec<VerdictLine> = sentences.into_iter().map(VerdictLine::Sentence).collect();
    if let Some(settings) = analysis.recommendation.to_set() {
        lines.extend(apply(report, &settings, clean));
    }
    lines
}

/// Explains how to set the best combination: tunables with `apply`, other settings elsewhere.
fn apply(report: &RunReport<'_>, best: &CellSettings, clean: Clean) -> Vec<VerdictLine> {
    let mut tunables = best.clone();
    tunables.extra.labels.clear();
    let tunables = words(report, &tunables);
    let mut lines = Vec::new();
    if !tunables.is_empty() {
        lines.extend(to_apply(report, &tunables));
    }
    let labels = &best.extra.labels;
    if labels.get("auto").is_some_and(|level| level == "on")
        && let Target::Path(path) = &report.run.plan.target
        && let Some(path) = repro_command::quoted(&path.display().to_string())
    {
        let text = "To run auto on it (as root):";
        lines.push(VerdictLine::Sentence(text.to_owned()));
        lines.push(VerdictLine::Command(format!("foreread auto {path}")));
    }
    let auto = |name: &str, level: &str| name == "auto" && ["on", "off"].contains(&level);
    let server = labels.iter().filter(|(name, level)| !auto(name, level));
    let names: Vec<&str> = server.map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() && report.run.summary.command == RunCommand::Pg {
        let names = clean(&names.join(", "));
        lines.push(VerdictLine::Sentence(format!(
            "{names}: not a tunable of the storage; set it in the server's configuration."
        )));
    }
    lines
}

/// Returns the settings of the varied tunables, as arguments of `apply`.
fn words(report: &RunReport<'_>, settings: &CellSettings) -> String {
    let windows = report.settings().len() > 1;
    let read_ahead = windows.then(|| format!("read_ahead={}K", settings.read_ahead.get()));
    read_ahead.into_iter().chain(settings.extra.assignments()).collect::<Vec<_>>().join(" ")
}

/// Returns the recommendation in a sentence.
pub(crate) fn headline(report: &RunReport<'_>, clean: Clean) -> String {
    let goals = goals(report, clean);
    let count = report.all_settings().len();
    let Some(Combination { settings, over, ratio: much, .. }) = &report.analysis.combination else {
        return "Too little was measured to estimate the effect of each tunable.".to_owned();
    };
    let (best, base) = (clean(&words(report, settings)), clean(&words(report, over)));
    let sure =
        if much.is_bounded() { format!(" ({})", factor_certainty(much)) } else { String::new() };
    let gain = times(much.median).unwrap_or_default();
    match report.analysis.recommendation.decision {
        Decision::Set(_) => {
            format!("Set {best} for {goals}: throughput {gain}{sure} compared with {base}.")
        }
        Decision::Inconclusive(_) => format!(
            "Inconclusive: the best of {count} combinations for {goals}, {best}, gives \
             {gain}{sure} compared with {base}."
        ),
        _ if settings == over => {
            format!("Keep {base}: for {goals}, none of the {count} combinations is faster.")
        }
        _ => format!(
            "Keep {base}: for {goals}, none of the {count} combinations is at least 10 % faster; \
             the best, {best}, gives {gain}{sure}."
        ),
    }
}

/// Says how to decide if the best combination may be due to chance.
fn unsure(report: &RunReport<'_>) -> Option<String> {
    let doubtful = report.analysis.recommendation.is_inconclusive();
    // The length of a test of a server cannot be chosen.
    let longer =
        if report.run.summary.command == RunCommand::Pg { "" } else { "longer (--duration) " };
    doubtful.then(|| {
        format!("To decide, measure more (--repeats), {longer}or when the system is idle.")
    })
}

/// Returns the tunables of the first workload (all goals together, or the only one), ranked by the
/// size of their effect.
fn ranking(report: &RunReport<'_>, clean: Clean) -> Option<String> {
    let effects = &report.analysis.effects;
    let first = effects.first()?;
    let of_first = effects.iter().filter(|effect| effect.workload == first.workload);
    let parts: Vec<String> = of_first
        .map(|effect| {
            let much = short_or_absent(effect.strength);
            format!(
                "{} ({much} times between its best and its worst level)",
                clean(&effect.tunable)
            )
        })
        .collect();
    let (strongest, others) = parts.split_first()?;
    let then =
        if others.is_empty() { String::new() } else { format!(", then {}", others.join(", ")) };
    Some(format!("For {}, {strongest} matters most{then}.", clean(&first.workload)))
}

/// Returns the separate effect of a tunable.
fn alone(effect: &FactorEffect, clean: Clean) -> String {
    let level = |level: &study::LevelEffect| {
        format!("{} {}", clean(&level.level), judged(&level.ratio, level.difference))
    };
    let levels: Vec<String> = effect.levels.iter().map(level).collect();
    let (workload, baseline) = (clean(&effect.workload), clean(&effect.baseline));
    let levels = levels.join("; ");
    format!("{workload}, {}: compared with {baseline}, {levels}.", clean(&effect.tunable))
}

/// Returns a ratio with its uncertainty, and its meaning if the number alone would mislead.
fn judged(estimate: &stats::Estimate, difference: Difference) -> String {
    let much = ratio(estimate.median).unwrap_or_default();
    let sure = certainty(estimate);
    let word = match difference {
        Difference::Faster | Difference::Slower => "",
        Difference::NoMeasurableDifference => ", no measurable difference",
        Difference::Inconclusive => ", inconclusive",
    };
    format!("{much} ({sure}{word})")
}

/// Returns the interactions: the effects of tunables together beyond their separate effects.
fn together(report: &RunReport<'_>, clean: Clean) -> Vec<String> {
    let found = &report.analysis.interactions;
    if found.is_empty() {
        let one = report.run.plan.design == Design::OneAtATime;
        let text = "Interactions were not measured: each tunable was varied alone (--design full \
                    varies them together).";
        return one.then(|| text.to_owned()).into_iter().collect();
    }
    let sentences: Vec<String> = found.iter().flat_map(|one| surely(one, clean)).collect();
    if sentences.is_empty() {
        return vec!["No two tunables have a measurable interaction.".to_owned()];
    }
    sentences
}

fn surely(interaction: &FactorInteraction, clean: Clean) -> Vec<String> {
    let [a, b] = interaction.tunables.each_ref().map(|name| clean(name));
    let sure = interaction
        .pairs
        .iter()
        .filter(|pair| matches!(pair.difference, Difference::Faster | Difference::Slower));
    sure.map(|pair| {
        let [of_a, of_b] = pair.levels.each_ref().map(|level| clean(level));
        let times = short(pair.ratio.median).unwrap_or_default();
        let (low, high) = (short(pair.ratio.low()), short(pair.ratio.high()));
        let (low, high) = (low.unwrap_or_default(), high.unwrap_or_default());
        format!(
            "{}: {a}={of_a} and {b}={of_b} together have {times} times the throughput that their \
             separate effects predict (95 % CI {low} to {high}).",
            clean(&interaction.workload),
        )
    })
    .collect()
}
