//! `FILE[,pace=asap|recorded][,compact]`: a trace as a workload.

use std::path::Path;

use workload::Workload;
use workload::trace::Pace;

use crate::{ReadOptions, TraceFileError, read};

/// The workload that these words (what follows `trace:`) name.
pub fn workload(words: &str) -> Result<Workload, TraceFileError> {
    let wrong = |problem: String| TraceFileError::Words { words: words.to_owned(), problem };
    let mut parts = words.split(',');
    let path = parts.next().unwrap_or_default();
    if path.is_empty() {
        return Err(wrong("no file is named: write trace:FILE".to_owned()));
    }
    let (mut pace, mut compact) = (Pace::Asap, false);
    for part in parts {
        match part {
            "pace=asap" => pace = Pace::Asap,
            "pace=recorded" => pace = Pace::Recorded,
            "compact" | "compact=true" => compact = true,
            other => {
                return Err(wrong(format!(
                    "{other:?} is none of pace=asap, pace=recorded, compact"
                )));
            }
        }
    }
    let (trace, _) = read(Path::new(path), &ReadOptions::default())?;
    if pace == Pace::Recorded && !trace.is_timed() {
        return Err(wrong("it has no times, so it has no recorded pace".to_owned()));
    }
    let path_text = match path {
        "-" => path.into(),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.into()),
    };
    let name = name_of(Path::new(path));
    Ok(Workload::of_trace(name, path_text.to_string_lossy(), &trace, pace, compact)?)
}

/// A name that a workload may have, from that of the file: without the ends that only say what
/// sort of file it is.
fn name_of(path: &Path) -> String {
    if sys::input::is_stdin(path) {
        return "trace-stdin".to_owned();
    }
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for end in [
        ".zst",
        ".gz",
        ".bin",
        ".oracleGeneral",
        ".lcs",
        ".trace",
        ".txt",
        ".csv",
        ".vscsi",
        ".iolog",
    ] {
        if let Some(stem) = name.strip_suffix(end).filter(|stem| !stem.is_empty()) {
            name = stem.to_owned();
        }
    }
    let known = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(known).take(58).collect();
    format!("trace-{name}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn words_choose_pace_and_compactness() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my load (1).csv");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"offset,length,time_s\n0,4096,0\n1073741824,4096,1\n").unwrap();
        let text = path.to_str().unwrap();
        let plain = workload(text).unwrap();
        assert_eq!(plain.name, "trace-my_load__1_");
        let compact = workload(&format!("{text},pace=recorded,compact")).unwrap();
        assert!(compact.data_files(units::Bytes::ZERO) < plain.data_files(units::Bytes::ZERO));
        assert_eq!(compact.replay.unwrap().pace, Pace::Recorded);
        for wrong in ["", ",pace=asap", &format!("{text},pace=slow"), "/no/such/trace"] {
            assert!(workload(wrong).is_err(), "{wrong}");
        }
        std::fs::write(&path, "offset,length\n0,4096\n").unwrap();
        let error = workload(&format!("{text},pace=recorded")).unwrap_err();
        assert!(error.to_string().contains("no times"), "{error}");
    }
}
