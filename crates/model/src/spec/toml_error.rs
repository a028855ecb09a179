//! Rewords the errors of the TOML parser for people who do not know its types.

use toml::de::Error;
use units::text::SourceLocation;

use super::SpecError;

/// The error in one line, after its position.
pub(crate) fn with_position(text: &str, error: &Error) -> String {
    let message = units::text::explain_serde_message(error.message());
    match error.span() {
        Some(span) => format!("{}: {message}", SourceLocation::from_offset(text, span.start)),
        None => message,
    }
}

/// The error of the table at `path`, with the key if it is one of the table's.
pub(super) fn in_table(path: &str, error: &Error) -> SpecError {
    let shown = error.to_string();
    let key = shown.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let problem = match key {
        Some(key) => format!("{key}: {}", units::text::explain_serde_message(error.message())),
        None => units::text::explain_serde_message(error.message()),
    };
    SpecError::Table { table: path.to_owned(), problem }
}
