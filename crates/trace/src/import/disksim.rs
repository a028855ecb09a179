//! DiskSim's validation traces: R or W, `Hit` or the like, first block (512 bytes each), number of
//! blocks, measured service time, and the gap between the end of this request and the next one.
//! Times are in µs. A request starts when the previous one and its gap are over.

use units::{Nanos, SECTOR_BYTES};

use super::lines::{head, lines, mostly, number, times};
use crate::builder::OneProcess;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecordKind};

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "disksim",
    summary: "DiskSim's validation traces: R or W, Hit, block, blocks, service time, gap",
    detects,
    parse,
};

fn detects(bytes: &[u8]) -> bool {
    let lines = head(bytes, 20);
    let fits = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 6
            && matches!(words[0], "R" | "W")
            && words[2..4].iter().all(|word| word.parse::<u64>().is_ok())
            && words[4..].iter().all(|word| word.parse::<f64>().is_ok())
    };
    mostly(&lines, fits)
}

/// Parses a time in microseconds: not negative, and less than 1e15.
fn micros(line: u64, what: &str, word: Option<&str>) -> Result<Nanos, TraceError> {
    let micros: f64 = number(line, what, word)?;
    if micros < 0.0 {
        return Err(TraceError::line(line, format!("{what}: {micros} runs backward")));
    }
    if micros.is_nan() || micros >= 1e15 {
        return Err(TraceError::line(line, format!("{what}: {micros} is no time")));
    }
    Ok(Nanos::new((micros * 1e3) as u64))
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut trace = OneProcess::new(true, options.sort);
    let mut time = Nanos::ZERO;
    for (line, text) in lines(bytes) {
        let mut words = text.split_whitespace();
        let kind = match words.next() {
            Some("R") => TraceRecordKind::Read,
            Some("W") => TraceRecordKind::Write,
            other => {
                let problem = format!("a line begins with R or W, not with {other:?}");
                return Err(TraceError::line(line, problem));
            }
        };
        words.next();
        let first = number(line, "first block", words.next())?;
        let blocks = number(line, "blocks", words.next())?;
        let service = micros(line, "service time", words.next())?;
        let gap = micros(line, "gap", words.next())?;
        let offset = times(line, "first block", first, SECTOR_BYTES)?;
        let length = times(line, "blocks", blocks, SECTOR_BYTES)?;
        trace.push(TraceLocation::Line(line), "disk", (time, kind), (offset, length))?;
        time = Nanos::new(time.get().saturating_add(service.get()).saturating_add(gap.get()));
    }
    trace.builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"R Hit    100   4  10.5  20.0\nW Hit    104   4    1.0  2.0\n";

    #[test]
    fn a_request_comes_when_service_and_gap_are_over() {
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        let [read, write] = trace.records() else { panic!("{trace:?}") };
        assert_eq!((read.offset.get(), read.length.get()), (51_200, 2048));
        assert_eq!((write.time.get(), write.kind), (30_500, TraceRecordKind::Write));
        assert!(detects(TEXT));
    }

    #[test]
    fn broken_lines_are_named() {
        for text in ["R Hit 1 2 3\n", "X Hit 1 2 3 4\n", "R Hit 1 2 3 -4\n", "R Hit 1 2 nan 4\n"] {
            let error = parse(text.as_bytes(), ImportOptions::default()).unwrap_err();
            assert_eq!(error.place, TraceLocation::Line(1), "{text}: {error}");
        }
    }
}
