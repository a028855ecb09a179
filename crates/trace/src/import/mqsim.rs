//! MQSim's text, five numbers per line: arrival in nanoseconds, device, first sector, number of
//! sectors, and 1 for a read or 0 for a write.

use units::{Nanos, SECTOR_BYTES};

use super::lines::{head, lines, mostly, number, times};
use crate::builder::OneProcess;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecordKind};

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "mqsim",
    summary: "MQSim's text: nanoseconds, device, first sector, sectors, 1 read or 0 write",
    detects,
    parse,
};

fn detects(bytes: &[u8]) -> bool {
    let lines = head(bytes, 20);
    let fits = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 5
            && words.iter().all(|word| word.parse::<u64>().is_ok())
            && matches!(words[4], "0" | "1")
    };
    mostly(&lines, fits)
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut trace = OneProcess::new(true, options.sort);
    for (line, text) in lines(bytes) {
        let mut words = text.split_whitespace();
        let time = number(line, "arrival", words.next())?;
        let device: u32 = number(line, "device", words.next())?;
        let first = number(line, "first sector", words.next())?;
        let sectors = number(line, "sectors", words.next())?;
        let kind = match (words.next(), words.next()) {
            (Some("1"), None) => TraceRecordKind::Read,
            (Some("0"), None) => TraceRecordKind::Write,
            (kind, _) => {
                let problem = format!("five numbers end with 1 or 0, not {kind:?}");
                return Err(TraceError::line(line, problem));
            }
        };
        let offset = times(line, "first sector", first, SECTOR_BYTES)?;
        let length = times(line, "sectors", sectors, SECTOR_BYTES)?;
        let name = format!("device-{device}");
        trace.push(TraceLocation::Line(line), &name, (Nanos::new(time), kind), (offset, length))?;
    }
    trace.builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"1000 0 8 16 1\n2500 1 0 32 0\n";

    #[test]
    fn sectors_and_devices_are_told_apart() {
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        assert_eq!(trace.files().len(), 2);
        let [read, write] = trace.records() else { panic!("{trace:?}") };
        assert_eq!(
            (read.offset.get(), read.length.get(), read.kind),
            (4096, 8192, TraceRecordKind::Read)
        );
        assert_eq!((write.time.get(), write.kind), (1500, TraceRecordKind::Write));
        assert!(detects(TEXT) && !detects(b"1 2 3\n"));
    }

    #[test]
    fn broken_lines_are_named() {
        for (text, line) in [("1 0 8 16 2\n", 1), ("1 0 8 16 1\n2 0 8\n", 2), ("x 0 8 16 1\n", 1)] {
            let error = parse(text.as_bytes(), ImportOptions::default()).unwrap_err();
            assert_eq!(error.place, TraceLocation::Line(line), "{text}");
        }
        let error = parse(b"5 0 8 16 1\n4 0 8 16 1\n", ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2));
    }
}
