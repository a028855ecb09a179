//! A study of several tunables: a row for each combination, and what each tunable does.

use comfy_table::{ContentArrangement, Table as Grid, presets};
use study::{Difference, Effect, RunStatus, Settings};

use crate::clean;
use crate::findings::Findings;
use crate::number::{ABSENT, counted, plus_minus_text, ratio, ratio_interval, short};

/// Whether the study varied more than read-ahead.
pub(crate) fn varied(findings: &Findings<'_>) -> bool {
    !findings.run.plan.factors.is_empty()
}

/// All that it shows, for a terminal.
pub(crate) fn terminal(findings: &Findings<'_>) -> String {
    let run = findings.run;
    let mut text = format!(
        "Run {}: tunables of {}, {} in {} s of measuring, seed {}\n\n",
        run.summary.id,
        clean::plain(&run.summary.target),
        counted(run.trials.len(), "trial"),
        short(findings.analysis.measured_seconds).unwrap_or_default(),
        run.seed
    );
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    grid.set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(header(findings));
    for row in rows(findings) {
        grid.add_row(row);
    }
    for line in grid.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("MiB/s, ± half the 95 % interval of the median, × amplification.\n\n");
    for sentence in sentences(findings) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

/// The same in Markdown.
pub(crate) fn markdown(findings: &Findings<'_>) -> String {
    let cells = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| clean::markdown(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let header = header(findings);
    let rule = vec!["---"; header.len()].join(" | ");
    let mut text = cells(header);
    text.push_str(&format!("| {rule} |\n"));
    rows(findings).into_iter().for_each(|row| text.push_str(&cells(row)));
    text.push('\n');
    for sentence in sentences(findings) {
        text.push_str(&format!("- {}\n", clean::markdown(sentence.trim_start())));
    }
    text
}

fn header(findings: &Findings<'_>) -> Vec<String> {
    let names = findings.workloads().into_iter().map(|w| clean::plain(&w.workload.name));
    std::iter::once("settings".to_owned()).chain(names).collect()
}

fn rows(findings: &Findings<'_>) -> Vec<Vec<String>> {
    let mut settings: Vec<Settings> =
        findings.analysis.cells.iter().map(|cell| cell.settings).collect();
    settings.sort_unstable();
    settings.dedup();
    let row = |settings: &Settings| {
        let each = findings.workloads().into_iter().map(|planned| {
            let name = &planned.workload.name;
            let mut cells = findings.analysis.cells.iter();
            let cell = cells.find(|c| c.settings == *settings && c.workload == *name);
            cell.map_or_else(|| ABSENT.to_owned(), figures)
        });
        std::iter::once(clean::plain(&settings.to_string())).chain(each).collect()
    };
    settings.iter().map(row).collect()
}

fn figures(cell: &study::Cell) -> String {
    let mut text = short(cell.throughput_mib_s.median).unwrap_or_else(|| ABSENT.to_owned());
    if let Some(interval) = plus_minus_text(&cell.throughput_mib_s) {
        text.push_str(&format!(" ±{interval}"));
    }
    if let Some(amplification) = cell.amplification.and_then(|a| short(a.median)) {
        text.push_str(&format!(" ×{amplification}"));
    }
    text
}

/// What each tunable does, the strongest first, workload by workload.
fn sentences(findings: &Findings<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if findings.run.summary.status != RunStatus::Complete {
        lines.push("This run is not complete; so far:".to_owned());
    }
    let effects = &findings.analysis.effects;
    if effects.is_empty() {
        lines.push("Too little was measured to tell what each tunable does.".to_owned());
    }
    let mut workload = None;
    for effect in effects {
        if workload != Some(&effect.workload) {
            lines.push(format!("{}, strongest first:", clean::plain(&effect.workload)));
            workload = Some(&effect.workload);
        }
        lines.push(line(effect));
    }
    let notes = findings.analysis.notes.iter();
    lines.extend(notes.map(|note| format!("Note: {}.", clean::plain(note))));
    lines
}

fn line(effect: &Effect) -> String {
    let level = |level: &study::LevelEffect| {
        let much = ratio(level.ratio.median).unwrap_or_default();
        let sure = ratio_interval(&level.ratio).map_or_else(
            || "measured once".to_owned(),
            |interval| format!("95 % sure of {interval}"),
        );
        let word = match level.difference {
            Difference::Better | Difference::Worse => "",
            Difference::NoMeasurableDifference => ", no measurable difference",
            Difference::Inconclusive => ", inconclusive",
        };
        format!("{} {much} ({sure}{word})", clean::plain(&level.level))
    };
    let levels: Vec<String> = effect.levels.iter().map(level).collect();
    let baseline = clean::plain(&effect.baseline);
    format!("  {}: compared with {baseline}, {}", effect.tunable, levels.join("; "))
}
