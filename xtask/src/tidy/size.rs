//! How much code there is.

use super::source::SourceFile;

/// Lines of Rust that are not tests, comments and blank lines included. It may only be lowered.
const LINES_MAX: usize = 108_300;

/// A complaint if the workspace has grown beyond its size.
pub fn complaints(files: &[SourceFile]) -> Option<String> {
    let lines = lines(files);
    (lines > LINES_MAX).then(|| {
        format!("{lines} lines of Rust that are not tests, at most {LINES_MAX}: remove some first")
    })
}

/// Lines of Rust that are not tests.
pub fn lines(files: &[SourceFile]) -> usize {
    files.iter().map(|file| file.lines).sum()
}
