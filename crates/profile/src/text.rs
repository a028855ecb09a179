//! The text report of a profile, one screen long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use units::text::counted;
use units::{Bytes, Nanos};

use crate::analysis::{PredictedGain, ProfileAnalysis, ProfileDiagnosis};
use crate::recording::{ProfileRecording, StackTrace, WaitClass};
use crate::stretches::STRETCH_TIME;

/// Maximum number of places shown.
const MAX_PLACES: usize = 5;
/// Maximum number of stack frames shown.
const STACK_FRAMES: usize = 4;

/// Options of the report.
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

/// Formats a part in percent.
pub fn share(part: Nanos, all: Nanos) -> String {
    format!("{:.0} %", 100.0 * part.get() as f64 / all.get().max(1) as f64)
}

/// Formats the line of code; `None` without frames of the program.
pub fn code_line(stack: Option<&StackTrace>) -> Option<String> {
    let frame = stack?.code()?;
    if let Some(interpreter) = frame.interpreter() {
        let function = &frame.function;
        return Some(format!("interpreter {interpreter}: {function} (no lines of the script)"));
    }
    Some(match &frame.source {
        Some((file, line)) => format!("{} at {file}:{line}", frame.function),
        None => format!("{} in {} (no line numbers)", frame.function, frame.module),
    })
}

/// Formats the predicted gain in the run's time, or the reason why there is none.
pub fn gain_line(one: &ProfileDiagnosis, wall: Nanos) -> String {
    let gain = match &one.gain {
        PredictedGain::Predicted { saved, least, most } => {
            let interval =
                interval(*least, *most).map_or(String::new(), |text| format!("; {text}"));
            format!("{} of {} ({}{interval})", time(*saved), time(wall), share(*saved, wall))
        }
        PredictedGain::NotPredictable(why) => format!("not predictable: {why}"),
    };
    match one.marginal.map(|left| (left, one.gain.at_most(left))) {
        Some((left, PredictedGain::Predicted { least, most, .. }))
            if left.get() < one.gain.saved().get() / 10 * 9 =>
        {
            let interval = interval(least, most).map_or(String::new(), |text| format!(" ({text})"));
            format!("{gain}; {}{interval} after the fixes above", time(left))
        }
        _ => gain,
    }
}

fn interval(least: Nanos, most: Nanos) -> Option<String> {
    (least != most).then(|| format!("{} to {}", time(least), time(most)))
}

/// Formats the whole report.
pub fn profile_text(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    options: TextOptions,
) -> String {
    let mut text = String::new();
    let whole = recording.kept_of.map(|whole| format!(" of {}", time(whole)));
    let kept = whole.unwrap_or_default();
    let _ = writeln!(text, "profile of {}: {}{kept}", recording.target, time(recording.wall));
    let all = analysis.busy();
    let parts = [
        ("compute", analysis.compute()),
        ("avoidable", analysis.avoidable),
        ("not predictable", analysis.unpredicted()),
        ("device-bound", analysis.device_bound()),
    ];
    let shown =
        parts.iter().filter(|(name, part)| *name != "not predictable" || *part > Nanos::ZERO);
    let parts: Vec<String> = shown
        .map(|(name, part)| format!("{name} {} ({})", time(*part), share(*part, all)))
        .collect();
    let _ = writeln!(text, "{}", parts.join(" · "));
    let _ = writeln!(
        text,
        "time of {}: storage {}, CPU {}, runnable {}, other {}",
        counted(recording.threads.len(), "thread"),
        time(analysis.waited),
        time(analysis.cpu),
        time(analysis.runnable),
        time(analysis.other)
    );
    let places = places(recording, analysis);
    for (one, others) in places.iter().take(MAX_PLACES) {
        diagnosis(&mut text, recording, analysis, one, options);
        if let Some(others) = others_line(one, others) {
            let _ = writeln!(text, "  also   {others}");
        }
    }
    let room = MAX_PLACES.saturating_sub(places.len());
    unexplained(&mut text, recording, analysis, room);
    what_if(&mut text, recording, analysis);
    if analysis.diagnoses.is_empty() {
        text.push_str("\nno rule applies\n");
    }
    for note in notes(recording, analysis) {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

/// Returns the diagnoses, each with those of other open files that share rule, file and code.
pub fn places<'a>(
    recording: &ProfileRecording,
    analysis: &'a ProfileAnalysis,
) -> Vec<(&'a ProfileDiagnosis, Vec<&'a ProfileDiagnosis>)> {
    let key = |one: &ProfileDiagnosis| {
        let stack = one.finding.stack.and_then(|place| recording.stacks.get(place as usize));
        let file = one.stream.map(|place| analysis.streams[place].inode);
        (one.rule.code, file, code_line(stack))
    };
    let mut places: Vec<(_, (&ProfileDiagnosis, Vec<&ProfileDiagnosis>))> = Vec::new();
    for one in &analysis.diagnoses {
        let key = key(one);
        match places.iter_mut().find(|(known, _)| one.stream.is_some() && *known == key) {
            Some((_, (_, others))) => others.push(one),
            None => places.push((key, (one, Vec::new()))),
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// Formats the wait time of a place's other open files, and the savings of the fix in all.
pub fn others_line(one: &ProfileDiagnosis, others: &[&ProfileDiagnosis]) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let waited: Nanos = others.iter().map(|one| one.finding.waited).sum();
    let files = counted(others.len(), "more open file");
    let mut line = format!("{files} at this line, {} together", time(waited));
    // Each marginal gain adds to those before it, so the sum is saved.
    let all = others.iter().chain([&one]).map(|one| one.marginal);
    if let Some(saved) = all.sum::<Option<Nanos>>().filter(|saved| *saved > Nanos::ZERO) {
        let count = others.len() + 1;
        let _ = write!(line, "; the fix saves {} for all {count} open files", time(saved));
    }
    Some(line)
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
    let waited = cost(finding.waited, recording, analysis, one);
    let _ = writeln!(text, "\n{} ({})  {waited}  {file}", one.rule.name, one.rule.code);
    let stack = finding.stack.and_then(|place| recording.stacks.get(place as usize));
    let line = code_line(stack).unwrap_or_else(|| "no stack of the program".to_owned());
    let _ = writeln!(text, "  code   {line}");
    let _ = writeln!(text, "  cause  {}", finding.cause);
    let _ = writeln!(text, "  fix    {}", finding.fix);
    for line in finding.snippet.iter().flat_map(|snippet| snippet.lines()) {
        let _ = writeln!(text, "           {line}");
    }
    let _ = writeln!(text, "  gain   {}", gain_line(one, recording.wall));
    if let (true, Some(stack)) = (options.stacks, stack) {
        let frames = stack.user.iter().take(STACK_FRAMES).map(|frame| frame.function.as_str());
        let _ = writeln!(text, "  stack  {}", frames.collect::<Vec<_>>().join(" ← "));
    }
}

/// Formats a time with its share of the run, or with its threads if it exceeds the run.
fn cost(
    waited: Nanos,
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
) -> String {
    if waited <= recording.wall {
        return format!("{} ({})", time(waited), share(waited, recording.wall));
    }
    let places = one.stream.iter().chain(&one.finding.others);
    let threads: BTreeSet<u32> =
        places.flat_map(|place| &analysis.streams[*place].tids).copied().collect();
    format!("{} in {}", time(waited), counted(threads.len(), "thread"))
}

/// Adds places that cost at least 5 % of the run and that no rule explains: the waits of all open
/// files of one file at one line of code.
fn unexplained(
    text: &mut String,
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    room: usize,
) {
    let is_explained = |place: usize| {
        analysis
            .diagnoses
            .iter()
            .any(|one| one.stream == Some(place) || one.finding.others.contains(&place))
    };
    // Such a wait also belongs to the stream of its file, but must not be counted twice.
    let classes = analysis.diagnoses.iter().filter_map(ProfileDiagnosis::explained_class);
    let classes: Vec<WaitClass> = classes.collect();
    let mut rest: BTreeMap<(&str, String), (Nanos, usize)> = BTreeMap::new();
    for (place, stream) in analysis.streams.iter().enumerate() {
        if is_explained(place) {
            continue;
        }
        let (waited_here, stack) = stream.waited_except(recording, &classes);
        let stack = stack.and_then(|place| recording.stacks.get(place as usize));
        let line = code_line(stack).unwrap_or_else(|| "no stack".to_owned());
        let path = recording.files[stream.inode as usize].path.as_str();
        let (waited, open_files) = rest.entry((path, line)).or_default();
        (*waited, *open_files) = (*waited + waited_here, *open_files + 1);
    }
    let mut rest: Vec<_> = rest.into_iter().collect();
    rest.retain(|(_, (waited, _))| waited.get() * 20 >= recording.wall.get().max(1));
    rest.sort_by_key(|(_, (waited, _))| Reverse(*waited));
    for (index, ((path, line), (waited, open_files))) in rest.iter().take(room).enumerate() {
        if index == 0 {
            text.push_str("\nwaits that no rule explains:\n");
        }
        let several = match open_files {
            1 => String::new(),
            _ => format!("  ({open_files} open files)"),
        };
        let _ = writeln!(text, "  {}  {path}  {line}{several}", time(*waited));
    }
}

fn mebibytes(bytes: Bytes) -> String {
    format!("{:.1} MiB", bytes.get() as f64 / f64::from(1 << 20))
}

/// Adds the predictions for other settings.
fn what_if(text: &mut String, recording: &ProfileRecording, analysis: &ProfileAnalysis) {
    let table = match &analysis.what_if {
        None => return,
        Some(Err(why)) => {
            let _ = writeln!(text, "\nother settings: not predictable: {why}");
            return;
        }
        Some(Ok(table)) => table,
    };
    let _ = writeln!(
        text,
        "\nother settings, by simulation (waits recorded {}, simulated {}):",
        time(table.recorded),
        time(table.replayed)
    );
    for row in &table.rows {
        if !row.is_certain() {
            let _ = writeln!(
                text,
                "  {:<8} not predictable: run {} → {} or {}, depending on mapped pages that were \
                 not seen",
                row.setting,
                time(recording.wall),
                time(row.wall),
                time(row.wall_least)
            );
            continue;
        }
        let _ = writeln!(
            text,
            "  {:<8} run {} → {} ({:.2} times as fast)  waits {}  reads {} (now {})",
            row.setting,
            time(recording.wall),
            time(row.wall),
            recording.wall.as_secs_f64() / row.wall.as_secs_f64(),
            time(row.waited),
            mebibytes(row.read),
            mebibytes(table.read)
        );
    }
}

/// Returns what to know about the recording and the predictions, besides the places.
pub fn notes(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &analysis.no_prediction {
        notes.push(format!("no prediction: {why}"));
    }
    if let Some(whole) = recording.kept_of {
        notes.push(format!(
            "{} of {} are kept, in stretches of {} ms chosen at random: all times are of these",
            time(recording.wall),
            time(whole),
            STRETCH_TIME.as_millis_f64()
        ));
    }
    let (lost, not_kept) = (recording.lost, recording.not_kept);
    if lost > 0 || not_kept > 0 {
        let all = recording.taken + lost;
        notes.push(format!("{lost} events lost, {not_kept} not kept, of {all}"));
    }
    if !recording.missing.is_empty() {
        notes.push(format!("not recorded: {}", recording.missing.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelChoice;
    use crate::recording::{FileAccess, ProfiledFile, StorageWait};

    #[test]
    fn a_wait_that_a_diagnosis_of_the_run_explains_is_not_listed_again() {
        let wait = |blocked, class| StorageWait {
            end: Nanos::from_millis(90),
            blocked: Nanos::from_millis(blocked),
            tid: 1,
            pid: 0,
            stack: 0,
            class,
            inode: Some(0),
            file: 7,
            offset: Bytes::ZERO,
        };
        let text = |waits| {
            let recording = ProfileRecording {
                wall: Nanos::from_millis(100),
                files: vec![ProfiledFile {
                    id: observe::InodeId { device: host::DevNo { major: 7, minor: 1 }, inode: 1 },
                    path: "/bin/tool".to_owned(),
                    size: Bytes::from_kib(4),
                    start: None,
                    jumps: Vec::new(),
                }],
                accesses: vec![FileAccess::cached(Nanos::from_millis(1), Nanos::from_millis(2))],
                waits,
                ..ProfileRecording::default()
            };
            let analysis = crate::analyse(&recording, &ModelChoice::None, &[]);
            profile_text(&recording, &analysis, TextOptions::default())
        };
        let metadata = wait(50, WaitClass::Metadata);
        let explained = text(vec![metadata]);
        assert!(explained.contains("metadata (18)"), "{explained}");
        assert!(!explained.contains("no rule explains"), "{explained}");
        let both = text(vec![metadata, wait(30, WaitClass::InFlight)]);
        assert!(both.contains("no rule explains:\n  30.0 ms  /bin/tool"), "{both}");
    }
}
