//! Text of `perf script` after `perf record -g -e filemap:mm_filemap_get_pages -e
//! filemap:mm_filemap_fault -e sched:sched_switch`: the reads of threads, the time that each waited
//! for them in uninterruptible sleep, and stacks. Offsets are whole pages, and files are device and
//! inode.

use std::collections::HashMap;

use units::Nanos;

use super::form::{ImportOptions, TraceFormat};
use super::ftrace::{FilePages, PageReads};
use super::lines::{exact_seconds, head, lines};
use super::stacks::{CallStacks, StackedTrace};
use crate::error::TraceError;
use crate::model::Trace;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "perf-script",
    summary: "perf script of filemap:mm_filemap_get_pages, mm_filemap_fault and sched:sched_switch",
    detects,
    parse,
};

const GET_PAGES: &str = " filemap:mm_filemap_get_pages: ";
const FAULT: &str = " filemap:mm_filemap_fault: ";
const SWITCH: &str = " sched:sched_switch: ";

fn detects(bytes: &[u8]) -> bool {
    let of_perf = |line: &String| [GET_PAGES, FAULT, SWITCH].iter().any(|name| line.contains(name));
    head(bytes, 400).iter().any(of_perf)
}

/// Parses `COMMAND THREAD [CPU] SECONDS:`, or `PROCESS/THREAD` instead of `THREAD`.
fn stamp(text: &str) -> Option<(u64, u64, Nanos)> {
    let (task, rest) = text.split_once(" [")?;
    let time = exact_seconds(rest.split_once(']')?.1.trim().trim_end_matches(':'))?;
    let number = task.split_whitespace().next_back()?;
    let (process, thread) = number.split_once('/').unwrap_or((number, number));
    Some((process.parse().ok()?, thread.parse().ok()?, time))
}

/// The start of a thread's uninterruptible sleep, and the record that the thread waits for.
struct Sleep {
    since: Nanos,
    record: usize,
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    Ok(with_stacks(bytes, options)?.trace)
}

/// Parses a trace with the stack of each record: that of its wait, if it waited.
pub(super) fn with_stacks(
    bytes: &[u8],
    options: ImportOptions,
) -> Result<StackedTrace, TraceError> {
    let mut reads = PageReads::new(options);
    let mut stacks = CallStacks::default();
    let mut latest: HashMap<u64, (usize, Nanos)> = HashMap::new();
    let mut sleeping: HashMap<u64, Sleep> = HashMap::new();
    for (line, text) in lines(bytes) {
        let names = [GET_PAGES, FAULT, SWITCH];
        let Some(name) = names.into_iter().find(|name| text.contains(name)) else {
            // Stack frames start with an address. Any other line belongs to another event.
            match text.split_whitespace().next().is_some_and(is_address) {
                true => stacks.add(&text),
                false => stacks.end(),
            }
            continue;
        };
        let broken = || TraceError::line(line, "the line is cut short or not that of perf");
        let (before, after) = text.split_once(name).ok_or_else(broken)?;
        let (process, thread, time) = stamp(before).ok_or_else(broken)?;
        // An event of a thread shows that the thread is awake.
        if let Some(sleep) = sleeping.remove(&thread) {
            reads.waited(sleep.record, time.saturating_sub(sleep.since));
        }
        if name == SWITCH {
            if let Some(woken) = field(after, "next_pid=")
                && let Some(sleep) = sleeping.remove(&woken)
            {
                reads.waited(sleep.record, time.saturating_sub(sleep.since));
            }
            let waits = after.contains("prev_state=D") && field(after, "prev_pid=") == Some(thread);
            match latest.get(&thread).filter(|_| waits) {
                Some((record, at)) => {
                    sleeping.insert(thread, Sleep { since: time, record: *record });
                    stacks.replace(thread, *at);
                }
                None => stacks.end(),
            }
            continue;
        }
        let pages = FilePages::of(after).ok_or_else(broken)?;
        match reads.push(line, (process, thread, time), &pages)? {
            Some(record) => {
                latest.insert(thread, (record, time));
                stacks.begin(thread, time);
            }
            None => stacks.end(),
        }
    }
    let stacks = stacks.since(reads.origin());
    Ok(StackedTrace { trace: reads.finish()?, stacks })
}

fn is_address(word: &str) -> bool {
    word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.split_once(name)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
cat  12/13 [001]  100.000001:  filemap:mm_filemap_get_pages: dev=8:1 ino=ff ofs=0-4095
\tffffffff81592c92 filemap_get_pages+0x172 ([kernel.kallsyms])
\t    55d0c0de1192 backward+0x39 (/usr/bin/cat)

cat  12/13 [001]  100.000003:  sched:sched_switch: prev_comm=cat prev_pid=13 \
prev_prio=120 prev_state=D ==> next_comm=x y next_pid=0 next_prio=120
\tffffffff821facd8 __schedule+0x618 ([kernel.kallsyms])
\t    55d0c0de1192 backward+0x39 (/usr/bin/cat)

a b      20 [000]  100.000503:  sched:sched_switch: prev_comm=a prev_pid=20 \
prev_prio=120 prev_state=S ==> next_comm=cat next_pid=13 next_prio=120
\tffffffff821facd8 __schedule+0x618 ([kernel.kallsyms])

cat  12/13 [001]  100.000600:  filemap:mm_filemap_fault: dev=8:1 ino=ff ofs=8192
\tffffffff81592c92 filemap_fault+0x172 ([kernel.kallsyms])
";

    #[test]
    fn a_read_takes_as_long_as_its_thread_sleeps() {
        assert!(detects(TEXT));
        let found = with_stacks(TEXT, ImportOptions::default()).unwrap();
        let records = found.trace.records();
        let seen: Vec<(u64, u64, u64)> = records
            .iter()
            .map(|record| (record.offset.get(), record.length.get(), record.took.get()))
            .collect();
        assert_eq!(seen, [(0, 4096, 500_000), (8192, 4096, 0)]);
        assert_eq!(found.trace.threads().first().map(|it| (it.process, it.thread)), Some((12, 13)));
        // Expect the stack of the wait, not that of the read.
        let stack = &found.stacks[&(13, Nanos::ZERO)];
        assert_eq!(stack.len(), 2);
        assert!(stack[0].contains("__schedule") && stack[1].contains("backward+0x39"));
    }

    #[test]
    fn broken_lines_are_named() {
        let cut = b"cat  12/13 [001]  100.0:  filemap:mm_filemap_get_pages: dev=8:1 ino=ff ofs=\n";
        let error = parse(cut, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, crate::error::TraceLocation::Line(1), "{error}");
    }
}
