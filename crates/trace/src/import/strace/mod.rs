//! Text of strace(1), as `strace -f -ttt -y -o FILE` writes it: reads with process, open file,
//! offset and length. The offset of a `read` is the position of its open file, which depends on all
//! earlier calls. So the importer follows open files through `dup`, `fork` and `clone`.
//!
//! Reads through mappings and io_uring are not in the text. A trace cannot store the stacks of
//! `-k`; [`with_stacks`] returns them.

mod call;
mod descriptors;

use std::collections::HashMap;

use units::Nanos;

use self::call::{StraceCall, StraceLine, split};
use self::descriptors::Descriptors;
use super::lines::{exact_seconds, head, lines};
use super::stacks::{CallStacks, StackedTrace};
use crate::error::TraceError;
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::Trace;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "strace",
    summary: "text of strace(1), best with -f -ttt -y -o FILE",
    detects,
    parse,
};

/// Start of a line of a stack (`-k`).
const FRAME: &str = "> ";

fn detects(bytes: &[u8]) -> bool {
    let mut lines = head(bytes, 200);
    lines.retain(|line| !line.starts_with(FRAME));
    let fits =
        |line: &String| matches!(split(line).1, StraceLine::StraceCall(_) | StraceLine::Begun(_));
    let calls = lines.iter().filter(|line| fits(line)).count();
    calls > 0 && calls * 2 >= lines.len()
}

/// Parses the time of a line from `-ttt` or `-tt`; `None` if there is no time.
fn time(word: Option<&str>) -> Option<Nanos> {
    let word = word?;
    if let Some(seconds) = exact_seconds(word) {
        return Some(seconds);
    }
    let mut parts = word.split(':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds = exact_seconds(parts.next()?)?;
    let whole = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
    whole.checked_mul(1_000_000_000)?.checked_add(seconds.get()).map(Nanos::new)
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    Ok(with_stacks(bytes, options)?.trace)
}

/// Parses a trace with the stack of each call.
pub(super) fn with_stacks(
    bytes: &[u8],
    options: ImportOptions,
) -> Result<StackedTrace, TraceError> {
    let timed = lines(bytes).take(50).any(|(_, text)| time(split(&text).0.time).is_some());
    let mut descriptors = Descriptors::new(timed);
    let mut begun: HashMap<u64, (Nanos, String)> = HashMap::new();
    let mut last = Nanos::ZERO;
    let mut stacks = CallStacks::default();
    for (line, text) in lines(bytes) {
        if let Some(frame) = text.strip_prefix(FRAME) {
            stacks.add(frame);
            continue;
        }
        let (stamp, what) = split(&text);
        let now = time(stamp.time).unwrap_or(last);
        if now < last && !options.sort {
            let (last, now) = (last.as_secs_f64(), now.as_secs_f64());
            return Err(TraceError::line(
                line,
                format!("time runs backward, from {last:.6} to {now:.6} s: --sort allows it"),
            ));
        }
        last = now;
        let process = stamp.process;
        match what {
            StraceLine::Nothing => {}
            StraceLine::Begun(first) => {
                begun.insert(process, (now, first.to_owned()));
            }
            StraceLine::Resumed(rest) => {
                // The start of a call before the recording is unknown: skip the call.
                if let Some((since, first)) = begun.remove(&process) {
                    let whole = format!("{first}{rest}");
                    let call = StraceCall::of(&whole).map_err(|why| TraceError::line(line, why))?;
                    descriptors.follow(line, since, process, &call)?;
                    stacks.begin(process, since);
                }
            }
            StraceLine::StraceCall(text) => {
                let call = StraceCall::of(text).map_err(|why| TraceError::line(line, why))?;
                descriptors.follow(line, now, process, &call)?;
                stacks.begin(process, now);
            }
            StraceLine::Broken => {
                let problem = format!("{text:?} is no line of strace, or it is cut short");
                return Err(TraceError::line(line, problem));
            }
        }
    }
    let stacks = stacks.since(descriptors.origin());
    Ok(StackedTrace { trace: descriptors.finish()?, stacks })
}

#[cfg(test)]
mod tests;
