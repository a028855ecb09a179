//! Lists the files below a directory, so that they can be evicted before a command.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use units::Bytes;

use crate::BenchError;
use crate::dataset::DataFile;

/// Maximum number of files: evicting more would take longer than most trials.
const FILES_MAX: usize = 100_000;

/// Returns all files below `top` on its own file system; none if `top` is not a directory.
pub(super) fn files_below(top: &Path) -> Result<Vec<DataFile>, BenchError> {
    let look = BenchError::io("look at", top);
    let metadata = std::fs::metadata(top).map_err(look)?;
    let mut found = Vec::new();
    if !metadata.is_dir() {
        return Ok(found);
    }
    let mut open: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        // Skips files that appear, vanish or are inaccessible.
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(about) = std::fs::symlink_metadata(&path) else { continue };
            if about.dev() != metadata.dev() {
                continue;
            }
            if about.is_dir() {
                open.push(path);
            } else if about.is_file() && about.len() > 0 && is_readable(&path) {
                found.push(DataFile { path, start: Bytes::ZERO, length: Bytes::new(about.len()) });
            }
            if found.len() > FILES_MAX {
                let why = format!(
                    "{} holds more than {FILES_MAX} files, which cannot all be evicted before \
                     each trial: name a smaller directory, or use --drop-caches",
                    top.display()
                );
                return Err(super::problem("sh", why));
            }
        }
    }
    Ok(found)
}

fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_levels_are_found_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        for name in ["a", "below/b", "empty"] {
            let content = if name == "empty" { "" } else { "data" };
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let mut names: Vec<_> =
            files_below(dir.path()).unwrap().into_iter().map(|file| file.path).collect();
        names.sort();
        assert_eq!(names, [dir.path().join("a"), dir.path().join("below/b")]);
        assert_eq!(files_below(Path::new("/dev/null")).unwrap(), []);
    }
}
