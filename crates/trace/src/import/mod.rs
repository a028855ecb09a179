//! Formats of other programs' traces: one module, one entry in [`FORMATS`] and one test each.

mod blkparse;
mod csv_table;
mod darshan;
mod disksim;
mod fio_iolog;
mod form;
mod ftrace;
mod libcachesim;
mod lines;
mod lirs;
mod mqsim;
mod msr;
mod perf_script;
mod stacks;
mod strace;
mod vscsi;

use std::collections::HashMap;

use crate::blocks::BLOCK_MAGIC;
use crate::compact_form::{self, MAGIC};
use crate::error::{TraceError, TraceLocation};
use crate::model::Trace;

pub use form::{ImportOptions, TraceFormat};
pub use stacks::StackedTrace;

const NATIVE: TraceFormat = TraceFormat {
    name: "foreread",
    summary: "foreread's own form (docs/trace-format.md)",
    detects: |head| head.starts_with(BLOCK_MAGIC) || head.starts_with(MAGIC),
    parse: |bytes, _| Trace::decode(bytes),
};

impl Trace {
    /// Decodes foreread's own format, of this version or an older one. Rejects a file that is cut
    /// short or damaged.
    ///
    /// # Errors
    ///
    /// If the file is damaged, or is no trace in this format.
    pub fn decode(bytes: &[u8]) -> Result<Self, TraceError> {
        match bytes.starts_with(MAGIC) {
            true => compact_form::decode(bytes),
            false => Self::decode_blocks(bytes),
        }
    }
}

/// All readable formats. Those with an unmistakable start come first.
pub const FORMATS: &[TraceFormat] = &[
    NATIVE,
    libcachesim::LCS,
    fio_iolog::FORMAT,
    csv_table::FORMAT,
    vscsi::FORMAT,
    libcachesim::ORACLE_GENERAL,
    blkparse::FORMAT,
    ftrace::FORMAT,
    perf_script::FORMAT,
    darshan::FORMAT,
    strace::FORMAT,
    disksim::FORMAT,
    msr::FORMAT,
    mqsim::FORMAT,
    lirs::FORMAT,
];

/// Parses a whole file with its stacks, which most formats lack.
pub(crate) fn parse_with_stacks(
    form: &TraceFormat,
    bytes: &[u8],
    options: ImportOptions,
) -> Result<StackedTrace, TraceError> {
    match form.name {
        "strace" => strace::with_stacks(bytes, options),
        "perf-script" => perf_script::with_stacks(bytes, options),
        _ => Ok(StackedTrace { trace: form.parse(bytes, options)?, stacks: HashMap::new() }),
    }
}

/// Number of bytes that are inspected to detect a file's format.
pub const HEAD_BYTES: usize = 1 << 16;

/// Returns the format with this name; capitals and hyphens do not matter (`oracleGeneral`).
pub fn format(name: &str) -> Result<&'static TraceFormat, TraceError> {
    let plain = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
    FORMATS.iter().find(|format| plain(format.name) == plain(name)).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        TraceError::at(
            TraceLocation::Whole,
            format!("no form of traces is called {name:?}: there are {}", known.join(", ")),
        )
    })
}

/// Detects the format of a file; `None` if it is unknown.
pub fn detect(bytes: &[u8]) -> Option<&'static TraceFormat> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    FORMATS.iter().find(|format| (format.detects)(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_told_apart() {
        for (at, format) in FORMATS.iter().enumerate() {
            assert!(format.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
            assert!(FORMATS[..at].iter().all(|other| other.name != format.name));
            assert!(!format.summary.is_empty());
            assert!(format.parse(b"", ImportOptions::default()).is_err(), "{}", format.name);
        }
        assert!(super::format("blktrace").unwrap_err().to_string().contains("blkparse"));
        assert_eq!(super::format("oracleGeneral").unwrap().name, "oracle-general");
        assert!(detect(b"nothing of the sort").is_none());
        assert!(detect(b"R\nW\n17\n18\n19\n").is_none());
    }

    #[test]
    fn a_broken_line_is_named_and_does_not_hide_the_form() {
        for (name, text) in [
            ("lirs", "17\nx18\n19\n"),
            ("mqsim", "10 0 8 8 1\n20 0 8 8\n30 0 8 8 1\n"),
            ("disksim", "R Miss 16 8 1.5 10.0\nR Miss 16\n"),
            ("msr", "128166372003061629,usr,0,Read,0,4096,1\n128166372003061630,usr,0,Read\n"),
        ] {
            let format = detect(text.as_bytes()).expect(name);
            assert_eq!(format.name, name);
            let error = format.parse(text.as_bytes(), ImportOptions::default()).unwrap_err();
            assert_eq!(error.place, TraceLocation::Line(2), "{error}");
        }
    }
}
