//! fio's iolog, versions 2 and 3 (`--write_iolog`; fio's HOWTO, "Trace file format"). Version 2 has
//! no timestamps, but waits in microseconds between actions. Version 3 has a timestamp in
//! microseconds before each action.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::lines::{lines, number, times};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "fio-iolog",
    summary: "fio's iolog, versions 2 and 3 (--write_iolog)",
    detects: |bytes| bytes.starts_with(b"fio version "),
    parse,
};

struct Log {
    builder: TraceBuilder,
    process: u32,
    /// The open file of each added file; `None` while the file is closed.
    files: HashMap<String, Option<u32>>,
    time: Nanos,
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut lines = lines(bytes);
    let timed = match lines.next().as_ref().map(|(line, text)| (*line, text.as_ref())) {
        Some((_, "fio version 2 iolog")) => false,
        Some((_, "fio version 3 iolog")) => true,
        _ => {
            let wanted = "it should be \"fio version 2 iolog\" or \"fio version 3 iolog\"";
            return Err(TraceError::line(1, wanted));
        }
    };
    let mut builder = TraceBuilder::new(true).sorting(options.sort);
    let process = builder.process(0);
    let mut log = Log { builder, process, files: HashMap::new(), time: Nanos::ZERO };
    for (line, text) in lines {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if timed {
            let micros = number(line, "time", words.first().copied())?;
            log.time = Nanos::new(times(line, "time", micros, 1000)?);
            words.remove(0);
        }
        log.act(line, &words, timed)?;
    }
    log.builder.finish()
}

impl Log {
    fn act(&mut self, line: u64, words: &[&str], timed: bool) -> Result<(), TraceError> {
        let wrong = |problem: String| Err(TraceError::line(line, problem));
        match words {
            // In version 2, a wait has no file name or a meaningless one.
            ["wait", micros] | [_, "wait", micros] | [_, "wait", micros, _] if !timed => {
                let micros = number(line, "wait", Some(micros))?;
                let wait = times(line, "wait", micros, 1000)?;
                self.time = Nanos::new(self.time.get().saturating_add(wait));
                Ok(())
            }
            [name, "add"] => {
                self.files.entry((*name).to_owned()).or_insert(None);
                Ok(())
            }
            [name, "open"] => {
                let file = self.builder.file(name);
                let open = self.builder.open(file, AccessMethod::Read);
                self.files.insert((*name).to_owned(), Some(open));
                Ok(())
            }
            [name, "close"] => {
                self.files.insert((*name).to_owned(), None);
                Ok(())
            }
            [name, "read", offset, length] => {
                self.request(line, name, TraceRecordKind::Read, offset, length)
            }
            [name, "write", offset, length] => {
                self.request(line, name, TraceRecordKind::Write, offset, length)
            }
            [_, "sync" | "datasync" | "sync_file_range" | "trim", ..] => Ok(()),
            [_] | [] => wrong("the line is cut short".to_owned()),
            [_, action, ..] => wrong(format!("{action:?} is no action with its numbers")),
        }
    }

    fn request(
        &mut self,
        line: u64,
        name: &str,
        kind: TraceRecordKind,
        offset: &str,
        length: &str,
    ) -> Result<(), TraceError> {
        let open_file = match self.files.get(name) {
            Some(Some(open)) => *open,
            // fio opens files that were added but not opened.
            Some(None) => {
                let file = self.builder.file(name);
                let open = self.builder.open(file, AccessMethod::Read);
                self.files.insert(name.to_owned(), Some(open));
                open
            }
            None => {
                let problem = format!("{name} was neither added nor opened before");
                return Err(TraceError::line(line, problem));
            }
        };
        let record = TraceRecord {
            took: Nanos::ZERO,
            time: self.time,
            open_file,
            process: self.process,
            kind,
            offset: Bytes::new(number(line, "offset", Some(offset))?),
            length: Bytes::new(number(line, "length", Some(length))?),
        };
        self.builder.push(TraceLocation::Line(line), record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, TraceError> {
        parse(text.as_bytes(), ImportOptions::default())
    }

    #[test]
    fn version_3_has_times() {
        let text = "fio version 3 iolog\n25 /x add\n158 /x open\n163 /x read 61440 4096\n\
                    381 /x write 774144 4096\n776 /x close\n777 /x open\n800 /x read 0 512\n";
        let trace = read(text).unwrap();
        assert_eq!((trace.files().len(), trace.open_files().len()), (1, 2));
        assert_eq!(trace.span(), Nanos::from_micros(800 - 163));
        assert_eq!(trace.records()[1].kind, TraceRecordKind::Write);
    }

    #[test]
    fn version_2_has_waits() {
        let text = "fio version 2 iolog\n/x add\n/x open\n/x read 0 4096\nwait 500\n/x wait 0 0\n\
                    /x read 4096 4096\n/x datasync 0 0\n/x close\n";
        let trace = read(text).unwrap();
        assert_eq!((trace.records().len(), trace.span()), (2, Nanos::from_micros(500)));
    }

    #[test]
    fn broken_lines_are_named() {
        for (text, line) in [
            ("fio version 1 iolog\n", 1),
            ("fio version 2 iolog\n/x read 0 4096\n", 2),
            ("fio version 2 iolog\n/x add\n/x read 0\n", 3),
            ("fio version 3 iolog\n/x add\n", 2),
            ("fio version 3 iolog\n5 /x add\n4 /x read 0 1\n3 /x read 0 1\n", 4),
            ("fio version 3 iolog\n5\n", 2),
        ] {
            assert_eq!(read(text).unwrap_err().place, TraceLocation::Line(line), "{text}");
        }
    }
}
