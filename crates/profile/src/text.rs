//! The one screen that a profile ends with.

use std::fmt::Write as _;

use units::Nanos;

use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::recording::{ProfileRecording, StackTrace};

/// How many places are shown.
const MAX_PLACES: usize = 5;
/// Frames of a stack that are shown.
const STACK_FRAMES: usize = 4;

/// How the screen looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Show the stack of each place.
    pub stacks: bool,
}

pub(crate) fn time(time: Nanos) -> String {
    match time.get() {
        nanos if nanos >= 1_000_000_000 => format!("{:.2} s", time.as_secs_f64()),
        _ => format!("{:.1} ms", time.as_millis_f64()),
    }
}

fn share(part: Nanos, all: Nanos) -> String {
    format!("{:.0} %", 100.0 * part.get() as f64 / all.get().max(1) as f64)
}

/// The line of code, for people.
pub fn code_line(stack: Option<&StackTrace>) -> Option<String> {
    let frame = stack?.code()?;
    Some(match &frame.source {
        Some((file, line)) => format!("{} at {file}:{line}", frame.function),
        None => format!("{} in {} (no line numbers)", frame.function, frame.module),
    })
}

/// The predicted gain in the run's time, or why there is none.
pub fn gain_line(gain: &PredictedGain, wall: Nanos) -> String {
    match gain {
        PredictedGain::Predicted { saved, least, most } if least == most => {
            format!("{} of {} ({})", time(*saved), time(wall), share(*saved, wall))
        }
        PredictedGain::Predicted { saved, least, most } => format!(
            "{} of {} ({}; {} to {})",
            time(*saved),
            time(wall),
            share(*saved, wall),
            time(*least),
            time(*most)
        ),
        PredictedGain::NotPredictable(why) => format!("not predictable: {why}"),
    }
}

/// The screen.
pub fn profile_text(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    options: TextOptions,
) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "profile of {}: {}", recording.target, time(recording.wall));
    let all = analysis.threads;
    let compute = all.saturating_sub(analysis.waited);
    let bound = analysis.waited.saturating_sub(analysis.avoidable);
    let _ = writeln!(
        text,
        "compute {} ({}) · avoidable {} ({}) · device-bound {} ({})",
        time(compute),
        share(compute, all),
        time(analysis.avoidable),
        share(analysis.avoidable, all),
        time(bound),
        share(bound, all)
    );
    let _ = writeln!(
        text,
        "time of {} threads: storage {}, CPU {}, runnable {}, other {}",
        recording.threads.len(),
        time(analysis.waited),
        time(analysis.cpu),
        time(analysis.runnable),
        time(analysis.other)
    );
    for one in analysis.diagnoses.iter().take(MAX_PLACES) {
        diagnosis(&mut text, recording, analysis, one, options);
    }
    unexplained(&mut text, recording, analysis);
    notes(&mut text, recording, analysis);
    text
}

fn diagnosis(
    text: &mut String,
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
    options: TextOptions,
) {
    let finding = &one.finding;
    let file = one.stream.map(|place| analysis.streams[place].inode);
    let file = file.map_or("", |inode| recording.files[inode as usize].path.as_str());
    let waited = format!("{} ({})", time(finding.waited), share(finding.waited, recording.wall));
    let _ = writeln!(text, "\n{} ({})  {waited}  {file}", one.rule.name, one.rule.code);
    let stack = finding.stack.and_then(|place| recording.stacks.get(place as usize));
    let line = code_line(stack).unwrap_or_else(|| "no stack of the program".to_owned());
    let _ = writeln!(text, "  code   {line}");
    let _ = writeln!(text, "  cause  {}", finding.cause);
    let _ = writeln!(text, "  fix    {}", finding.fix);
    for line in finding.snippet.iter().flat_map(|snippet| snippet.lines()) {
        let _ = writeln!(text, "           {line}");
    }
    let _ = writeln!(text, "  gain   {}", gain_line(&one.gain, recording.wall));
    if let (true, Some(stack)) = (options.stacks, stack) {
        let frames = stack.user.iter().take(STACK_FRAMES).map(|frame| frame.function.as_str());
        let _ = writeln!(text, "  stack  {}", frames.collect::<Vec<_>>().join(" ← "));
    }
}

/// Files that cost time and that no rule explains.
fn unexplained(text: &mut String, recording: &ProfileRecording, analysis: &ProfileAnalysis) {
    let room = MAX_PLACES.saturating_sub(analysis.diagnoses.len());
    let is_explained = |place: usize| {
        analysis
            .diagnoses
            .iter()
            .any(|one| one.stream == Some(place) || one.finding.others.contains(&place))
    };
    let rest = analysis.streams.iter().enumerate().filter(|(place, stream)| {
        !is_explained(*place) && stream.waited.get() * 20 >= recording.wall.get().max(1)
    });
    for (index, (_, stream)) in rest.take(room).enumerate() {
        if index == 0 {
            text.push_str("\nwaits that no rule explains:\n");
        }
        let stack = stream.hottest_stack(recording);
        let stack = stack.and_then(|place| recording.stacks.get(place as usize));
        let line = code_line(stack).unwrap_or_else(|| "no stack".to_owned());
        let path = &recording.files[stream.inode as usize].path;
        let _ = writeln!(text, "  {}  {path}  {line}", time(stream.waited));
    }
}

fn notes(text: &mut String, recording: &ProfileRecording, analysis: &ProfileAnalysis) {
    if analysis.diagnoses.is_empty() {
        text.push_str("\nno rule applies\n");
    }
    if let Some(why) = &analysis.no_prediction {
        let _ = writeln!(text, "\nno prediction: {why}");
    }
    if recording.lost > 0 || recording.not_kept > 0 {
        let _ = writeln!(
            text,
            "\n{} events lost, {} not kept, of {}",
            recording.lost,
            recording.not_kept,
            recording.taken + recording.lost
        );
    }
    if !recording.missing.is_empty() {
        let _ = writeln!(text, "\nthis kernel does not report: {}", recording.missing.join(", "));
    }
}
