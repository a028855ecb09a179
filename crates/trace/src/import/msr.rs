//! CSV of the MSR Cambridge traces (Narayanan et al., FAST 2008): Windows time in units of 100 ns,
//! host, disk number, `Read` or `Write`, offset and size in bytes, response time.

use units::Nanos;

use super::lines::{head, lines, mostly, number, times};
use crate::builder::OneProcess;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecordKind};

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "msr",
    summary: "CSV of the MSR Cambridge traces: time, host, disk, Read or Write, offset, size, …",
    detects,
    parse,
};

/// Length of a tick of Windows time in nanoseconds.
const TICK_NS: u64 = 100;

fn kind(word: &str) -> Option<TraceRecordKind> {
    match word {
        "Read" => Some(TraceRecordKind::Read),
        "Write" => Some(TraceRecordKind::Write),
        _ => None,
    }
}

fn detects(bytes: &[u8]) -> bool {
    let lines = head(bytes, 20);
    let fits = |line: &String| {
        let words: Vec<&str> = line.split(',').collect();
        words.len() == 7 && words[0].parse::<u64>().is_ok() && kind(words[3]).is_some()
    };
    mostly(&lines, fits)
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut trace = OneProcess::new(true, options.sort);
    let mut start = None;
    for (line, text) in lines(bytes) {
        let mut words = text.split(',').map(str::trim);
        let ticks: u64 = number(line, "time", words.next())?;
        let (Some(host), Some(disk), Some(word)) = (words.next(), words.next(), words.next())
        else {
            return Err(TraceError::line(line, "the line is cut short"));
        };
        let Some(kind) = kind(word) else {
            return Err(TraceError::line(line, format!("{word:?} is neither Read nor Write")));
        };
        let offset = number(line, "offset", words.next())?;
        let length = number(line, "size", words.next())?;
        // Ticks count from 1601: shift them so that nanoseconds fit u64.
        let start = *start.get_or_insert(ticks.saturating_sub(u64::MAX / TICK_NS / 2));
        let time = times(line, "time", ticks.saturating_sub(start), TICK_NS)?;
        let name = format!("{host}-{disk}");
        trace.push(TraceLocation::Line(line), &name, (Nanos::new(time), kind), (offset, length))?;
    }
    trace.builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                          128166372016382155,usr,1,Write,1317441536,8192,1963\n";

    #[test]
    fn lines_of_the_published_traces_are_read() {
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        let [read, write] = trace.records() else { panic!("{trace:?}") };
        assert_eq!((read.offset.get(), read.length.get()), (7_014_609_920, 24_576));
        assert_eq!((write.time.get(), write.kind), (1_332_052_600, TraceRecordKind::Write));
        assert_eq!(trace.files()[1].name, "usr-1");
        assert!(detects(TEXT));
        let error = parse(b"1,usr,0,Seek,0,1,1\n", ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(1));
    }

    #[test]
    fn time_that_runs_backward_is_told_by_how_much() {
        let mut lines: Vec<&[u8]> = TEXT.split_inclusive(|byte| *byte == b'\n').collect();
        lines.reverse();
        let text = lines.concat();
        let error = parse(&text, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2));
        assert!(error.to_string().contains("backward by 1.332052600 s"), "{error}");
        let sorted =
            parse(&text, ImportOptions { sort: true, ..ImportOptions::default() }).unwrap();
        assert_eq!(sorted.records()[1].time.get(), 1_332_052_600);
    }
}
