//! Reads trace files.

use std::path::{Path, PathBuf};

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use crate::blocks::{BLOCK_MAGIC, TraceBytes, TraceDamage, TraceStream, TraceVerification, verify};
use crate::import::{
    FORMATS, ImportOptions, StackedTrace, TraceFormat, detect, format, parse_with_stacks,
};
use crate::model::Trace;

use crate::{TraceFileError, unpack};

#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Name of the trace format; detected from the start of the file if `None`.
    pub format: Option<String>,
    pub import: ImportOptions,
    /// Read a damaged trace in foreread's own format up to the damage, instead of rejecting it.
    pub salvage: bool,
}

/// The source of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSource {
    pub path: PathBuf,
    /// Name of the trace format.
    pub format: &'static str,
    /// The damage, if [`ReadOptions::salvage`] allowed reading in spite of it.
    pub damage: Option<TraceDamage>,
}

/// Reads a trace, which may be compressed with zstd or gzip; `-` is standard input.
///
/// # Errors
///
/// If the file cannot be read, is larger than 1 GiB, compressed or unpacked, or is no trace.
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Trace, TraceSource), TraceFileError> {
    let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
    let broken = TraceFileError::broken(path);
    let (path, format) = (path.to_owned(), form.name);
    if bytes.starts_with(BLOCK_MAGIC) && options.salvage {
        let stream = TraceStream::open(Arc::new(bytes));
        let (trace, damage) =
            stream.and_then(|stream| Trace::from_stream(&stream)).map_err(broken)?;
        return Ok((trace, TraceSource { path, format, damage }));
    }
    let trace = form.parse(&bytes, options.import).map_err(broken)?;
    Ok((trace, TraceSource { path, format, damage: None }))
}

/// Reads a trace like [`read`], with the stacks that its recorder printed. Records are sorted by
/// time.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_with_stacks(
    path: &Path,
    options: &ReadOptions,
) -> Result<StackedTrace, TraceFileError> {
    let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
    let options = ImportOptions { sort: true, ..options.import };
    parse_with_stacks(form, &bytes, options).map_err(TraceFileError::broken(path))
}

/// Opens a file in blocks for streaming. Returns `None` if it is in another format, compressed, or
/// not a regular file.
///
/// # Errors
///
/// If the file cannot be read, or nothing in it is readable.
pub fn open_stream(path: &Path) -> Result<Option<TraceStream>, TraceFileError> {
    let Some(file) = blocks_of(path)? else { return Ok(None) };
    TraceStream::open(Arc::new(file)).map(Some).map_err(TraceFileError::broken(path))
}

/// Maximum number of records of a trace that is replayed from memory (100 MB).
const LOADED_MAX: u64 = 1 << 20;

/// Like [`open_stream`], but only for a trace that is too long to be loaded into memory.
///
/// # Errors
///
/// Those of [`open_stream`], and if opening finds damage.
pub fn open_long(path: &Path) -> Result<Option<TraceStream>, TraceFileError> {
    let Some(stream) = open_stream(path)?.filter(|it| it.len() > LOADED_MAX) else {
        return Ok(None);
    };
    match stream.damage() {
        Some(damage) => Err(damage.in_file(path)),
        None => Ok(Some(stream)),
    }
}

/// Opens a regular file that starts as a trace in blocks; `None` for others.
fn blocks_of(path: &Path) -> Result<Option<File>, TraceFileError> {
    if sys::input::is_stdin(path) {
        return Ok(None);
    }
    // Do not open pipes and devices here; another function reads them.
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(TraceFileError::io("read", path))?;
    let mut start = [0; BLOCK_MAGIC.len()];
    let is_blocks = file.read_exact(&mut start).is_ok() && start == *BLOCK_MAGIC;
    Ok(is_blocks.then_some(file))
}

/// Checks a trace: every block in foreread's own format, otherwise whether it can be parsed.
///
/// # Errors
///
/// If the file cannot be read, or is damaged and in a format without blocks.
pub fn verify_file(
    path: &Path,
    options: &ReadOptions,
) -> Result<TraceVerification, TraceFileError> {
    let source: Arc<dyn TraceBytes> = match blocks_of(path)? {
        Some(file) => Arc::new(file),
        None => {
            let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
            if !bytes.starts_with(BLOCK_MAGIC) {
                let trace = form.parse(&bytes, options.import);
                let trace = trace.map_err(TraceFileError::broken(path))?;
                let records = trace.records().len() as u64;
                return Ok(TraceVerification { blocks: 1, records, ..Default::default() });
            }
            Arc::new(bytes)
        }
    };
    verify(source).map_err(TraceFileError::broken(path))
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
