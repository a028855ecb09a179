//! CSV with a heading, the format that scripts write most easily. Columns in any order: `time_s`,
//! `time_us` or `time_ns`, `file`, `offset`, `length`, `kind` and `process`. Only `offset` and
//! `length` are required.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::lines::{head, number, seconds, times};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "csv",
    summary: "CSV with a heading: time_s, file, offset, length, kind, process",
    detects,
    parse,
};

const COLUMNS: &[&str] =
    &["time_s", "time_us", "time_ns", "file", "offset", "length", "kind", "process"];

fn detects(bytes: &[u8]) -> bool {
    let first = head(bytes, 1).into_iter().next().unwrap_or_default();
    // Spreadsheet programs write a byte order mark first.
    let first = first.trim_start_matches('\u{feff}');
    let names: Vec<&str> = first.split(',').map(|name| name.trim().trim_matches('"')).collect();
    ["offset", "length"].iter().all(|column| names.contains(column))
}

/// Returns the line of a record, whose position is before preceding empty lines.
fn line_of(bytes: &[u8], position: &csv::Position) -> u64 {
    let before = bytes.get(position.byte() as usize..).unwrap_or_default();
    let ends = before.iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() + ends.filter(|byte| **byte == b'\n').count() as u64
}

struct Heading(HashMap<&'static str, usize>);

impl Heading {
    fn of(record: &csv::StringRecord) -> Result<Self, TraceError> {
        let mut columns = HashMap::new();
        for (at, name) in record.iter().enumerate() {
            let known = COLUMNS.iter().find(|known| **known == name.trim());
            let Some(known) = known else {
                let known = COLUMNS.join(", ");
                return Err(TraceError::line(1, format!("column {name:?} is none of {known}")));
            };
            if columns.insert(*known, at).is_some() {
                return Err(TraceError::line(1, format!("column {name:?} is there twice")));
            }
        }
        for needed in ["offset", "length"] {
            if !columns.contains_key(needed) {
                return Err(TraceError::line(1, format!("there is no column {needed:?}")));
            }
        }
        Ok(Self(columns))
    }

    fn get<'a>(&self, record: &'a csv::StringRecord, column: &str) -> Option<&'a str> {
        self.0.get(column).and_then(|at| record.get(*at)).map(str::trim)
    }

    fn time(&self, line: u64, record: &csv::StringRecord) -> Result<Nanos, TraceError> {
        if let Some(word) = self.get(record, "time_s") {
            return seconds(line, "time_s", word);
        }
        let units = [("time_us", 1000), ("time_ns", 1)];
        let Some((column, factor)) = units.into_iter().find(|(name, _)| self.0.contains_key(name))
        else {
            return Ok(Nanos::ZERO);
        };
        let count = number(line, column, self.get(record, column))?;
        Ok(Nanos::new(times(line, column, count, factor)?))
    }

    fn is_timed(&self) -> bool {
        ["time_s", "time_us", "time_ns"].iter().any(|column| self.0.contains_key(column))
    }
}

fn kind(line: u64, word: Option<&str>) -> Result<TraceRecordKind, TraceError> {
    match word.unwrap_or("read").to_ascii_lowercase().as_str() {
        "read" | "r" => Ok(TraceRecordKind::Read),
        "write" | "w" => Ok(TraceRecordKind::Write),
        other => Err(TraceError::line(line, format!("kind: {other:?} is neither read nor write"))),
    }
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut table = csv::ReaderBuilder::new().from_reader(bytes);
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        TraceError::line(line, format!("this is no CSV: {error}"))
    };
    let heading = Heading::of(table.headers().map_err(broken)?)?;
    let mut builder = TraceBuilder::new(heading.is_timed()).sorting(options.sort);
    let mut opens: HashMap<(u64, u32), u32> = HashMap::new();
    for record in table.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, |position| line_of(bytes, position));
        let process =
            heading.get(&record, "process").map(|word| number(line, "process", Some(word)));
        let process: u64 = process.transpose()?.unwrap_or(0);
        let file = builder.file(heading.get(&record, "file").unwrap_or("file"));
        let open_file =
            *opens.entry((process, file)).or_insert_with(|| builder.open(file, AccessMethod::Read));
        let request = TraceRecord {
            took: Nanos::ZERO,
            time: heading.time(line, &record)?,
            open_file,
            process: builder.process(process),
            kind: kind(line, heading.get(&record, "kind"))?,
            offset: Bytes::new(number(line, "offset", heading.get(&record, "offset"))?),
            length: Bytes::new(number(line, "length", heading.get(&record, "length"))?),
        };
        builder.push(TraceLocation::Line(line), request)?;
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TraceThread;

    #[test]
    fn columns_may_be_in_any_order_and_some_may_be_missing() {
        let text = b"length,offset,file,time_s,process\n4096,0,\"a,b\",0.5,7\n10,4096,c,1,8\n";
        assert!(detects(text));
        let trace = parse(text, ImportOptions::default()).unwrap();
        assert_eq!(trace.files()[0].name, "a,b");
        assert_eq!(trace.threads(), [7, 8].map(TraceThread::from));
        assert_eq!(trace.span(), Nanos::from_millis(500));
        let bare = parse(b"offset,length\n0,4096\n", ImportOptions::default()).unwrap();
        assert!(!bare.is_timed());
        let marked = "\u{feff}offset,length\n0,4096\n".as_bytes();
        assert!(detects(marked));
        assert_eq!(parse(marked, ImportOptions::default()).unwrap(), bare);
    }

    #[test]
    fn broken_lines_are_named() {
        let wrong = [
            ("offset,length\n0,4096\n1\n", 3),
            ("offset,length\n0,x\n", 2),
            ("offset,size\n0,1\n", 1),
            ("offset,length,kind\n0,1,read\n0,1,seek\n", 3),
            ("offset,length,time_s\n0,1,2\n\n0,1,1\n", 4),
        ];
        for (text, line) in wrong {
            let error = parse(text.as_bytes(), ImportOptions::default()).unwrap_err();
            assert_eq!(error.place, TraceLocation::Line(line), "{text}: {error}");
        }
    }
}
