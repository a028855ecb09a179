//! Shows the progress of a study on stderr: a bar on a terminal, occasional lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use report::clean;
use study::{Progress, ProgressEvent, StudyPhase};

use crate::json_lines::TrialLinePrinter;
use crate::output::{is_ascii, note, shown};

/// Interval between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);

pub struct StudyProgress {
    quiet: bool,
    lines: Option<TrialLinePrinter>,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl StudyProgress {
    /// Creates the display, which shows nothing if `quiet`, but prints the trials with `lines`.
    pub fn new(quiet: bool, lines: Option<TrialLinePrinter>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && terminal).then(|| {
            let bar = ProgressBar::new(0).with_style(style());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { quiet, lines, bar, last_line: Instant::now() }
    }

    /// Returns why the lines of JSON could not be printed.
    pub fn failure(&mut self) -> Option<anyhow::Error> {
        self.lines.as_mut().and_then(TrialLinePrinter::failure)
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    /// Shows a line that the next one may replace.
    fn state(&mut self, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(shown(&text).into_owned()),
            None if !self.quiet && self.last_line.elapsed() >= LINE_EVERY => {
                self.last_line = Instant::now();
                note(&text);
            }
            None => {}
        }
    }

    fn position(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    fn phase(&mut self, phase: &StudyPhase) {
        let text = match phase {
            StudyPhase::Preparing => "inspecting target",
            StudyPhase::CreatingDisk => "creating virtual disk",
            StudyPhase::LayingOut => "creating files",
            StudyPhase::Probing => "probing device",
            StudyPhase::Measuring => "measuring",
            StudyPhase::Restoring => "restoring settings",
        };
        self.position(0, 0);
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => self.say(text),
        }
    }
}

impl Progress for StudyProgress {
    fn step(&mut self, step: &ProgressEvent) {
        if let Some(lines) = &mut self.lines {
            match &self.bar {
                Some(bar) => bar.suspend(|| lines.step(step)),
                None => lines.step(step),
            }
        }
        match step {
            ProgressEvent::Phase(phase) => self.phase(phase),
            ProgressEvent::LaidOut { done, total } => {
                self.position(*done, *total);
                let mib = |bytes: u64| bytes >> 20;
                self.state(format!("creating files: {} of {} MiB", mib(*done), mib(*total)));
            }
            ProgressEvent::Probed { done, total } => {
                self.position(*done as u64, *total as u64);
                self.state(format!("probing device: {done} of {total} probes"));
            }
            ProgressEvent::Measured { done, total } => {
                self.position(*done as u64, *total as u64);
                self.state(format!("measuring: {done} of {total} measurements"));
            }
            ProgressEvent::Resumed { run, trials } => {
                self.say(&format!("resuming run {run}: {trials} trials are already done"));
            }
            ProgressEvent::TrialStarted { number, expected, settings, workload, eta } => {
                self.position(number.saturating_sub(1) as u64, (*expected).max(*number) as u64);
                let left = eta.map_or_else(String::new, |eta| format!(", {} left", rough(eta)));
                let workload = clean::plain(workload);
                self.state(format!("trial {number} of {expected}{left}: {workload}, {settings}"));
            }
            ProgressEvent::TrialDone { number, settings, workload, figures } => {
                self.position(*number as u64, *number as u64);
                tracing::info!(
                    number,
                    %settings,
                    workload,
                    throughput_mib_s = figures.throughput_mib_s,
                    amplification = figures.amplification,
                    "trial done"
                );
            }
            ProgressEvent::TrialSpoiled { number, reasons, again } => {
                let reasons = clean::plain(&reasons.join("; "));
                let then = if *again { "it will be repeated" } else { "it counts as disturbed" };
                self.say(&format!("trial {number} was disturbed ({reasons}): {then}"));
            }
            ProgressEvent::Note(text) => self.say(&format!("note: {}", clean::plain(text))),
        }
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner} {bar:24} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    if is_ascii() { style.progress_chars("#> ").tick_chars("|/-\\ ") } else { style }
}

/// Formats a rough remaining time, as in `3 min` or `40 s`.
fn rough(time: Duration) -> String {
    match time.as_secs() {
        0..=90 => format!("{} s", time.as_secs().max(1)),
        91..=5400 => format!("{} min", (time.as_secs() + 30) / 60),
        _ => format!("{:.1} h", time.as_secs_f64() / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_rough() {
        assert_eq!(rough(Duration::from_millis(10)), "1 s");
        assert_eq!(rough(Duration::from_secs(90)), "90 s");
        assert_eq!(rough(Duration::from_secs(200)), "3 min");
        assert_eq!(rough(Duration::from_secs(9000)), "2.5 h");
    }
}
