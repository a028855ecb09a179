//! Reading trace files.

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
    /// The name of its form; told by its beginning if there is none.
    pub format: Option<String>,
    pub import: ImportOptions,
    /// Read a trace in foreread's own form up to where it is damaged, instead of refusing it.
    pub salvage: bool,
}

/// Where a trace came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSource {
    pub path: PathBuf,
    /// The name of the form that it is in.
    pub format: &'static str,
    /// Where it is damaged, if [`ReadOptions::salvage`] let it be read nevertheless.
    pub damage: Option<TraceDamage>,
}

/// Reads a trace, packed with zstd or gzip or not at all; `-` is standard input.
///
/// # Errors
///
/// If it cannot be read, is larger than 1 GiB, packed or unpacked, or is no trace.
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Trace, TraceSource), TraceFileError> {
    let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
    let broken = |error| TraceFileError::Broken { path: path.to_owned(), error };
    let (path, format) = (path.to_owned(), form.name);
    if bytes.starts_with(BLOCK_MAGIC) && options.salvage {
        let stream = TraceStream::open(Arc::new(bytes)).map_err(broken)?;
        let (trace, damage) = Trace::from_stream(&stream).map_err(broken)?;
        return Ok((trace, TraceSource { path, format, damage }));
    }
    let trace = form.parse(&bytes, options.import).map_err(broken)?;
    Ok((trace, TraceSource { path, format, damage: None }))
}

/// Reads a trace, as [`read`] does, with the stacks that its recorder printed; records are put in
/// order of time.
///
/// # Errors
///
/// As those of [`read`].
pub fn read_with_stacks(
    path: &Path,
    options: &ReadOptions,
) -> Result<StackedTrace, TraceFileError> {
    let (bytes, form) = unpack::content(path, |head| form(path, head, options))?;
    let options = ImportOptions { sort: true, ..options.import };
    let parsed = parse_with_stacks(form, &bytes, options);
    parsed.map_err(|error| TraceFileError::Broken { path: path.to_owned(), error })
}

/// Opens a file in blocks that is to be read in a stream; none if it is in another form, packed, or
/// no regular file.
///
/// # Errors
///
/// If it cannot be read, or nothing in it can.
pub fn open_stream(path: &Path) -> Result<Option<TraceStream>, TraceFileError> {
    let Some(file) = blocks_of(path)? else { return Ok(None) };
    let broken = |error| TraceFileError::Broken { path: path.to_owned(), error };
    TraceStream::open(Arc::new(file)).map(Some).map_err(broken)
}

/// A trace with more records is read block by block while it is replayed: 100 MB in memory.
const LOADED_MAX: u64 = 1 << 20;

/// As [`open_stream`], of a trace that is too long to be kept in memory.
///
/// # Errors
///
/// As those of [`open_stream`], or if it is damaged as far as its index shows.
pub fn open_long(path: &Path) -> Result<Option<TraceStream>, TraceFileError> {
    let Some(stream) = open_stream(path)?.filter(|it| it.len() > LOADED_MAX) else {
        return Ok(None);
    };
    match stream.damage() {
        Some(damage) => Err(damage.in_file(path)),
        None => Ok(Some(stream)),
    }
}

/// The file, if it is a regular one that begins as a trace in blocks.
fn blocks_of(path: &Path) -> Result<Option<File>, TraceFileError> {
    if sys::input::is_stdin(path) {
        return Ok(None);
    }
    // Opened by whoever reads pipes and devices, if it is one.
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(TraceFileError::io("read", path))?;
    let mut start = [0; BLOCK_MAGIC.len()];
    let is_blocks = file.read_exact(&mut start).is_ok() && start == *BLOCK_MAGIC;
    Ok(is_blocks.then_some(file))
}

/// Checks a trace: each block of one in foreread's own form, otherwise whether it can be read.
///
/// # Errors
///
/// If it cannot be read, or is damaged and in a form without blocks.
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
                let broken = |error| TraceFileError::Broken { path: path.to_owned(), error };
                let records = trace.map_err(broken)?.records().len() as u64;
                return Ok(TraceVerification { blocks: 1, records, ..Default::default() });
            }
            Arc::new(bytes)
        }
    };
    verify(source).map_err(|error| TraceFileError::Broken { path: path.to_owned(), error })
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
