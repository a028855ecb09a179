//! Reading trace files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use units::Bytes;
use workload::trace::{FORMATS, Format, ImportOptions, Trace, detect, format};

use crate::TraceFileError;

/// The most that a file may have, unpacked.
const LARGEST: Bytes = Bytes::from_gib(4);

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The name of its form; told by its beginning if there is none.
    pub format: Option<String>,
    /// What the importer is told.
    pub import: ImportOptions,
}

/// Where a trace came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The name of the form that it is in.
    pub format: &'static str,
}

/// Reads a trace, packed with zstd or gzip or not at all.
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Trace, Source), TraceFileError> {
    let bytes = unpacked(path)?;
    if bytes.is_empty() {
        return Err(TraceFileError::Empty { path: path.to_owned() });
    }
    let form = form(path, &bytes, options)?;
    let trace = form.parse(&bytes, options.import);
    let trace = trace.map_err(|error| TraceFileError::Broken { path: path.to_owned(), error })?;
    Ok((trace, Source { path: path.to_owned(), format: form.name }))
}

fn form(
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<&'static Format, TraceFileError> {
    if let Some(name) = &options.format {
        return format(name).map_err(|error| TraceFileError::NoFormat(error.problem));
    }
    detect(bytes).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        TraceFileError::UnknownFormat { path: path.to_owned(), known: known.join(", ") }
    })
}

/// The content of a file.
fn unpacked(path: &Path) -> Result<Vec<u8>, TraceFileError> {
    let file = File::open(path).map_err(TraceFileError::io("open", path))?;
    let directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    if directory {
        let problem = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(TraceFileError::io("read", path)(problem));
    }
    let bytes = limited(path, file, &|path, source| TraceFileError::io("read", path)(source))?;
    let packed = |path: &Path, source| TraceFileError::Packed { path: path.to_owned(), source };
    match bytes.get(..4) {
        Some([0x1f, 0x8b, ..]) => {
            limited(path, flate2::read::MultiGzDecoder::new(bytes.as_slice()), &packed)
        }
        Some([0x28, 0xb5, 0x2f, 0xfd]) => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice());
            let decoder = decoder.map_err(|error| packed(path, io::Error::other(error)))?;
            limited(path, decoder, &packed)
        }
        _ => Ok(bytes),
    }
}

fn limited(
    path: &Path,
    from: impl Read,
    problem: &dyn Fn(&Path, io::Error) -> TraceFileError,
) -> Result<Vec<u8>, TraceFileError> {
    let mut bytes = Vec::new();
    let most = LARGEST.get();
    from.take(most + 1).read_to_end(&mut bytes).map_err(|error| problem(path, error))?;
    if bytes.len() as u64 > most {
        return Err(TraceFileError::TooLarge { path: path.to_owned(), most: LARGEST });
    }
    Ok(bytes)
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
