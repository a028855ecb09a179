//! Text of blkparse(1) in its default format: device, processor, number, seconds, process, action,
//! request type (RWBS), first sector `+` sectors. The importer takes queued requests (action Q) or,
//! if there are none, requests issued to the device (D).

use std::collections::HashMap;

use units::{Bytes, Nanos, SECTOR_BYTES};

use super::lines::{head, lines, number, seconds, times};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "blkparse",
    summary: "text of blkparse(1): requests queued (Q), or issued (D) if there are no others",
    detects,
    parse,
};

/// Returns whether a word has the form `8,0`: major and minor number.
fn is_device(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| number(major) && number(minor))
}

fn detects(bytes: &[u8]) -> bool {
    let lines = head(bytes, 20);
    let fits = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() >= 6 && is_device(words[0]) && words[3].parse::<f64>().is_ok()
    };
    lines.first().is_some_and(fits)
}

/// Returns whether a line belongs to the totals at the end of the text.
fn is_total(text: &str) -> bool {
    text.starts_with("CPU") || text.starts_with("Total") || text.starts_with("Throughput")
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let action = |text: &str| text.split_whitespace().nth(5).map(str::to_owned);
    let queued = lines(bytes).any(|(_, text)| action(&text).as_deref() == Some("Q"));
    let wanted = if queued { "Q" } else { "D" };
    let mut builder = TraceBuilder::new(true).sorting(options.sort);
    let mut opens = HashMap::new();
    for (line, text) in lines(bytes) {
        if is_total(&text) {
            break;
        }
        let Some(event) = Event::read(line, &text, wanted)? else { continue };
        let process = builder.process(event.process);
        let open_file = match opens.get(event.device) {
            Some(open) => *open,
            None => {
                let file = builder.file(event.device);
                let open = builder.open(file, AccessMethod::Read);
                opens.insert(event.device.to_owned(), open);
                open
            }
        };
        let record = TraceRecord {
            took: Nanos::ZERO,
            time: seconds(line, "time", event.time)?,
            open_file,
            process,
            kind: event.kind,
            offset: Bytes::new(times(line, "sector", event.sector, SECTOR_BYTES)?),
            length: Bytes::new(times(line, "sectors", event.sectors, SECTOR_BYTES)?),
        };
        builder.push(TraceLocation::Line(line), record)?;
    }
    builder.finish()
}

struct Event<'a> {
    device: &'a str,
    time: &'a str,
    process: u64,
    kind: TraceRecordKind,
    sector: u64,
    sectors: u64,
}

impl<'a> Event<'a> {
    /// Parses a line; `None` unless it is a read or write with the action `wanted`.
    fn read(line: u64, text: &'a str, wanted: &str) -> Result<Option<Self>, TraceError> {
        let mut words = text.split_whitespace();
        let mut word = |what: &str| {
            let cut =
                || TraceError::line(line, format!("{what} is missing: the line is cut short"));
            words.next().ok_or_else(cut)
        };
        let device = word("device")?;
        if !is_device(device) {
            return Err(TraceError::line(line, format!("{device:?} is no device as in 8,0")));
        }
        word("processor")?;
        word("sequence number")?;
        let time = word("time")?;
        let process = number(line, "process", Some(word("process")?))?;
        if word("action")? != wanted {
            return Ok(None);
        }
        let what = word("RWBS")?;
        // Discards and empty flushes transfer no data.
        let kind = match what {
            _ if what.contains(['D', 'N']) => return Ok(None),
            _ if what.contains('R') => TraceRecordKind::Read,
            _ if what.contains('W') => TraceRecordKind::Write,
            _ => return Ok(None),
        };
        let sector = number(line, "sector", Some(word("sector")?))?;
        match word("sectors")? {
            "+" => {}
            // A flush of a write without data.
            _ if what.starts_with('F') => return Ok(None),
            other => return Err(TraceError::line(line, format!("{other:?} should be a +"))),
        }
        let sectors = number(line, "sectors", Some(word("sectors")?))?;
        Ok(Some(Self { device, time, process, kind, sector, sectors }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TraceThread;

    const TEXT: &[u8] = b"  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [cat]
  8,0    3        2     0.000001829   697  G   R 223490 + 8 [cat]
  8,0    3        3     0.000002197   697  P   N [cat]
  8,0    3        4     0.000010000   697  D   R 223490 + 8 [cat]
  8,0    3        5     0.000020000   698  Q  WS 100 + 16 [a b c]
  8,0    3        6     0.000030000   698  Q  FN [a b c]
  8,0    1        7     0.500000000     0  C   R 223490 + 8 [0]
CPU0 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           1,        8KiB
";

    #[test]
    fn queued_requests_are_taken() {
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        let [read, write] = trace.records() else { panic!("{trace:?}") };
        assert_eq!((read.offset.get(), read.length.get()), (223_490 * 512, 4096));
        assert_eq!((write.time.get(), write.kind), (20_000, TraceRecordKind::Write));
        assert_eq!(trace.threads(), [697, 698].map(TraceThread::from));
        assert_eq!(trace.files()[0].name, "8,0");
        assert!(detects(TEXT));
    }

    #[test]
    fn broken_lines_are_named() {
        let cut = b"8,0 0 1 0.1 1 Q R 8 + 8 [x]\n8,0 0 2 0.2 1 Q R 8 +\n";
        let error = parse(cut, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2), "{error}");
        let odd = b"8,0 0 1 0.1 1 Q R 8 + 8 [x]\nwhat is this\n";
        assert_eq!(parse(odd, ImportOptions::default()).unwrap_err().place, TraceLocation::Line(2));
        let backward = b"8,0 0 1 0.2 1 Q R 8 + 8 [x]\n8,0 0 2 0.1 1 Q R 8 + 8 [x]\n";
        assert_eq!(
            parse(backward, ImportOptions::default()).unwrap_err().place,
            TraceLocation::Line(2)
        );
        assert!(parse(backward, ImportOptions { sort: true, ..Default::default() }).is_ok());
    }
}
