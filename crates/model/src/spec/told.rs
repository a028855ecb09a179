//! What the reader of TOML complains of, in words for people who never saw its types.

use toml::de::Error;
use units::text::SourceLocation;

use super::SpecError;

/// What is wrong with a text, in one line, after the place where it is.
pub(crate) fn placed(text: &str, error: &Error) -> String {
    let message = units::text::explain_serde_message(error.message());
    match error.span() {
        Some(span) => format!("{}: {message}", SourceLocation::from_offset(text, span.start)),
        None => message,
    }
}

/// What is wrong with the table at `path`, with the key where it is one of the table's.
pub(super) fn broken(path: &str, error: &Error) -> SpecError {
    let shown = error.to_string();
    let key = shown.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let problem = match key {
        Some(key) => format!("{key}: {}", units::text::explain_serde_message(error.message())),
        None => units::text::explain_serde_message(error.message()),
    };
    SpecError::Table { table: path.to_owned(), problem }
}
