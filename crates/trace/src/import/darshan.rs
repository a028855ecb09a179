//! Text of `darshan-dxt-parser`: each read and write of each rank with its range and times, for
//! POSIX and MPI-IO. MPI-IO records are skipped if there are POSIX records for the same bytes.

use units::{Bytes, Nanos};

use super::form::{ImportOptions, TraceFormat};
use super::lines::{exact_seconds, head, lines, number};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "darshan-dxt",
    summary: "text of darshan-dxt-parser",
    detects: |bytes| head(bytes, 200).iter().any(|line| line.starts_with("# DXT, file_id:")),
    parse,
};

fn parse(bytes: &[u8], _: ImportOptions) -> Result<Trace, TraceError> {
    let has_posix = lines(bytes).any(|(_, text)| text.starts_with("X_POSIX"));
    // Files follow one another, each with its ranks, so records are not in order of time.
    let mut builder = TraceBuilder::new(true).sorting(true);
    let (mut file, mut open_file) = (None, None);
    for (line, text) in lines(bytes) {
        if let Some(rest) = text.strip_prefix("# DXT, file_id:") {
            let name = rest.split_once("file_name:").map(|(_, name)| name.trim());
            let broken = || TraceError::line(line, "the name of the file is missing");
            file = Some(builder.file(name.ok_or_else(broken)?));
        } else if text.starts_with("# DXT, rank:") {
            open_file = file.map(|file| builder.open(file, AccessMethod::Read));
        }
        let mut words = text.split_whitespace();
        let module = words.next();
        if !module.is_some_and(|word| word == "X_POSIX" || (word == "X_MPIIO" && !has_posix)) {
            continue;
        }
        let rank: u64 = number(line, "rank", words.next())?;
        let kind = match words.next() {
            Some("read") => TraceRecordKind::Read,
            Some("write") => TraceRecordKind::Write,
            _ => return Err(TraceError::line(line, "neither a read nor a write")),
        };
        let _segment: u64 = number(line, "segment", words.next())?;
        let offset = Bytes::new(number(line, "offset", words.next())?);
        let length = Bytes::new(number(line, "length", words.next())?);
        let mut time = |what: &str| -> Result<Nanos, TraceError> {
            let broken = || TraceError::line(line, format!("{what} is missing or no time"));
            words.next().and_then(exact_seconds).ok_or_else(broken)
        };
        let (start, end) = (time("start")?, time("end")?);
        let open_file =
            open_file.ok_or_else(|| TraceError::line(line, "no file was named before"))?;
        let record = TraceRecord {
            time: start,
            open_file,
            process: builder.process(rank),
            kind,
            offset,
            length,
            took: end.saturating_sub(start),
        };
        builder.push(TraceLocation::Line(line), record)?;
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TraceThread;

    const TEXT: &[u8] = b"\
# DXT, file_id: 6966057185861764086, file_name: /data/out.h5
# DXT, rank: 0, hostname: node1
# DXT, write_count: 1, read_count: 2
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]
 X_POSIX       0  write        0               0       262144      0.0029      0.0032
 X_POSIX       0   read        0          262144       262144      0.1029      0.1049
# DXT, rank: 1, hostname: node2
 X_POSIX       1   read        0               0         4096      0.0500      0.0501
# DXT, file_id: 7, file_name: /data/out.h5
# DXT, rank: 1, hostname: node2
 X_MPIIO       1   read        0               0         4096      0.0500      0.0501
";

    #[test]
    fn each_rank_is_a_reader_with_an_open_file() {
        assert!((FORMAT.detects)(TEXT));
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        assert_eq!(trace.files().len(), 1);
        assert_eq!(trace.threads(), [0, 1].map(TraceThread::from));
        let read = trace.reads().last().unwrap();
        assert_eq!((read.offset.get(), read.took), (262_144, Nanos::from_micros(2000)));
        assert_eq!(trace.reads().next().unwrap().open_file, 1);
    }

    #[test]
    fn broken_lines_are_named() {
        let cut =
            b"# DXT, file_id: 1, file_name: a\n# DXT, rank: 0\n X_POSIX 0 read 0 0 4096 0.1\n";
        let error = parse(cut, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(3), "{error}");
    }
}
