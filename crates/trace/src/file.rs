//! Reading and writing trace files.

use std::fs::File;
use std::io::{self, Read, Write};
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

/// Writes a trace in foreread's own form. The file is there in whole or not at all: it is written
/// beside its place and renamed when it is safe on the disk. What stands there and is no regular
/// file stays.
pub fn write(path: &Path, trace: &Trace) -> Result<(), TraceFileError> {
    let problem = |source| TraceFileError::io("write", path)(source);
    let place = place(path).map_err(problem)?;
    let dir = match place.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let named = tempfile::Builder::new().prefix(".foreread-trace-").tempfile_in(dir);
    let mut file = named.map_err(problem)?;
    file.write_all(&trace.encode()).map_err(problem)?;
    file.as_file().sync_all().map_err(problem)?;
    readable(file.as_file()).map_err(problem)?;
    file.persist(&place).map_err(|error| problem(error.error))?;
    Ok(())
}

/// Where a file that is to stand at `path` belongs: there, or where a link there leads to.
///
/// # Errors
///
/// If a device, a pipe or a directory stands there, as behind `/dev/stdout` may: the renaming would
/// put a file in its place. And if a link there leads nowhere.
pub fn place(path: &Path) -> io::Result<PathBuf> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
        Ok(_) => {
            let place = path.canonicalize()?;
            if place.metadata()?.is_file() {
                return Ok(place);
            }
            Err(io::Error::other("what is there is no regular file"))
        }
    }
}

/// A trace is no secret: whoever may read new files may read it.
fn readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // Asking for the mask changes it, so it is set to what is safe and put back.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    file.set_permissions(std::fs::Permissions::from_mode(0o666 & !mask.as_raw_mode()))
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_written_trace_is_read_back_and_a_failure_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, _) = read(written(TEXT).path(), &ReadOptions::default()).unwrap();
        let path = dir.path().join("mine.trace");
        write(&path, &trace).unwrap();
        let (again, source) = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!((again, source.format), (trace.clone(), "foreread"));
        // A directory stands in its place.
        let taken = dir.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write(&taken, &trace).is_err());
        assert!(write(&dir.path().join("no/such/place"), &trace).is_err());
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn only_regular_files_are_replaced_and_links_are_followed() {
        use std::os::unix::fs::FileTypeExt;
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (trace, _) = read(written(TEXT).path(), &ReadOptions::default()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        symlink(at("socket"), at("leads-to-a-socket")).unwrap();
        symlink(at("nothing"), at("leads-nowhere")).unwrap();
        for name in ["socket", "leads-to-a-socket", "leads-nowhere"] {
            assert!(write(&at(name), &trace).is_err(), "{name}");
        }
        assert!(at("socket").symlink_metadata().unwrap().file_type().is_socket());
        assert!(at("leads-to-a-socket").is_symlink() && at("leads-nowhere").is_symlink());
        std::fs::write(at("old"), "old").unwrap();
        symlink(at("old"), at("leads-to-old")).unwrap();
        write(&at("leads-to-old"), &trace).unwrap();
        assert!(at("leads-to-old").is_symlink());
        assert_eq!(read(&at("old"), &ReadOptions::default()).unwrap().0, trace);
    }
}
