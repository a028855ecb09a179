//! Page numbers, one per line, as in the traces of the LIRS paper (Jiang and Zhang, SIGMETRICS
//! 2002). There are no times. Lines that are empty or contain a star are break points and are
//! skipped.

use units::Nanos;

use super::lines::{head, lines, mostly, number, times};
use crate::builder::OneProcess;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecordKind};

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "lirs",
    summary: "page numbers, one a line, without times (traces of the LIRS paper)",
    detects,
    parse,
};

fn is_break(line: &str) -> bool {
    line.chars().all(|c| c == '*')
}

fn detects(bytes: &[u8]) -> bool {
    let lines = head(bytes, 100);
    let number = |line: &String| is_break(line) || line.bytes().all(|byte| byte.is_ascii_digit());
    mostly(&lines, number)
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut trace = OneProcess::new(false, options.sort);
    let page = options.page.map_or(4096, units::Bytes::get);
    for (line, text) in lines(bytes) {
        if is_break(&text) {
            continue;
        }
        let offset = times(line, "page number", number(line, "page number", Some(&text))?, page)?;
        let place = TraceLocation::Line(line);
        trace.push(place, "pages", (Nanos::ZERO, TraceRecordKind::Read), (offset, page))?;
    }
    trace.builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_and_break_points_skipped() {
        let trace = parse(b"3\n*\n4\r\n\n3\n", ImportOptions::default()).unwrap();
        let offsets: Vec<u64> = trace.reads().map(|read| read.offset.get() / 4096).collect();
        assert_eq!(offsets, [3, 4, 3]);
        assert!(!trace.is_timed() && detects(b"3\n*\n4\n"));
        let error = parse(b"3\nx\n", ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2));
    }
}
