//! Parses `FILE[,pace=asap|recorded|think][,compact]`, which names a trace as a workload.

use std::path::Path;
use std::sync::Arc;

use units::text::{NamedSettings, SettingError, parse_choice};
use workload::ReplayPace;
use workload::Workload;

use crate::{ReadOptions, TraceFileError, open_long, read};

const PACES: &[(&str, ReplayPace)] =
    &[("asap", ReplayPace::Asap), ("recorded", ReplayPace::Recorded), ("think", ReplayPace::Think)];

/// Returns the workload that `spec` names: the text after `trace:` on the command line.
///
/// # Errors
///
/// If the file cannot be read or is no trace, or if a setting is invalid.
pub fn workload(spec: &str) -> Result<Workload, TraceFileError> {
    let wrong = |problem: String| TraceFileError::Spec { spec: spec.to_owned(), problem };
    let bare = |_, word| (word == "compact").then_some(("compact", "true"));
    let parsed = NamedSettings::parse_with(spec, ',', bare);
    let NamedSettings { name: path, settings } = parsed.map_err(|e| wrong(e.to_string()))?;
    if path.is_empty() {
        return Err(wrong("no file is named: write trace:FILE".to_owned()));
    }
    let (mut pace, mut compact) = (ReplayPace::Asap, false);
    for (key, value) in settings {
        let result = match key {
            "pace" => parse_choice(key, value, PACES).map(|chosen| pace = chosen),
            "compact" => parse_choice(key, value, &[("true", true), ("false", false)])
                .map(|chosen| compact = chosen),
            _ => Err(SettingError::unknown_key(key, &["pace", "compact"])),
        };
        result.map_err(|error| wrong(error.to_string()))?;
    }
    let check_times = |is_timed: bool| match is_timed || pace == ReplayPace::Asap {
        true => Ok(()),
        false => Err(wrong("it has no times, so it has no recorded pace".to_owned())),
    };
    let path_text = match path {
        "-" => path.into(),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.into()),
    };
    let name = name_of(Path::new(path));
    let stream = if compact { None } else { open_long(Path::new(path))? };
    if let Some(stream) = stream {
        check_times(stream.is_timed())?;
        stream.check().map_err(|damage| damage.in_file(path))?;
        return Ok(Arc::new(stream).to_workload(name, path_text.to_string_lossy(), pace)?);
    }
    let (trace, _) = read(Path::new(path), &ReadOptions::default())?;
    check_times(trace.is_timed())?;
    Ok(trace.to_workload(name, path_text.to_string_lossy(), pace, compact)?)
}

/// Returns a valid workload name from the name of a file, without the extensions that only say what
/// kind of file it is.
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
        assert_eq!(compact.replay.unwrap().pace, ReplayPace::Recorded);
        for wrong in ["", ",pace=asap", &format!("{text},pace=slow"), "/no/such/trace"] {
            assert!(workload(wrong).is_err(), "{wrong}");
        }
        std::fs::write(&path, "offset,length\n0,4096\n").unwrap();
        let error = workload(&format!("{text},pace=recorded")).unwrap_err();
        assert!(error.to_string().contains("no times"), "{error}");
    }
}
