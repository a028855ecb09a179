//! Reading trace files.

use std::path::{Path, PathBuf};

use crate::import::{FORMATS, ImportOptions, TraceFormat, detect, format};
use crate::model::Trace;

use crate::{TraceFileError, unpack};

#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The name of its form; told by its beginning if there is none.
    pub format: Option<String>,
    pub import: ImportOptions,
}

/// Where a trace came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSource {
    pub path: PathBuf,
    /// The name of the form that it is in.
    pub format: &'static str,
}

/// Reads a trace, packed with zstd or gzip or not at all; `-` is standard input.
///
/// # Errors
///
/// If it cannot be read, is larger than 1 GiB, packed or unpacked, or is no trace.
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Trace, TraceSource), TraceFileError> {
    let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
    let trace = form.parse(&bytes, options.import);
    let trace = trace.map_err(|error| TraceFileError::Broken { path: path.to_owned(), error })?;
    Ok((trace, TraceSource { path: path.to_owned(), format: form.name }))
}

fn form(
    path: &Path,
    head: &[u8],
    options: &ReadOptions,
) -> Result<&'static TraceFormat, TraceFileError> {
    if head.is_empty() {
        return Err(TraceFileError::Empty { path: path.to_owned() });
    }
    if let Some(name) = &options.format {
        return format(name).map_err(|error| TraceFileError::NoFormat(error.problem));
    }
    detect(head).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        TraceFileError::UnknownFormat { path: path.to_owned(), known: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    const TEXT: &[u8] = b"offset,length\n0,4096\n4096,4096\n";

    #[test]
    fn packed_files_are_unpacked_and_the_form_is_told() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(TEXT).unwrap();
        let packed = packed.finish().unwrap();
        let (plain, source) = read(written(TEXT).path(), &ReadOptions::default()).unwrap();
        assert_eq!(source.format, "csv");
        let file = written(&packed);
        assert_eq!(read(file.path(), &ReadOptions::default()).unwrap().0, plain);
        let cut = written(&packed[..packed.len() - 9]);
        let error = read(cut.path(), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, TraceFileError::Packed { .. }), "{error}");
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        let file = written(b"offset,length\n0,4096\n1\n");
        let error = read(file.path(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:3: ", file.path().display())), "{error}");
        let unknown = written(b"what is this?");
        let error = read(unknown.path(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("--format") && error.contains("strace"), "{error}");
        let options = ReadOptions { format: Some("nosuch".into()), ..ReadOptions::default() };
        assert!(read(file.path(), &options).unwrap_err().to_string().contains("nosuch"));
    }
}
