//! Rewords the errors of the TOML parser for users who do not know its types.

use toml::de::Error;
use units::text::SourceLocation;

use super::SpecError;

/// Formats an error as one line that starts with the position.
pub(crate) fn with_position(text: &str, error: &Error) -> String {
    let message = units::text::explain_serde_message(error.message());
    match error.span() {
        Some(span) => format!("{}: {message}", SourceLocation::from_offset(text, span.start)),
        None => message,
    }
}

/// Converts an error in the table at `path`; names the key if the table has it.
pub(super) fn in_table(path: &str, error: &Error) -> SpecError {
    let shown = error.to_string();
    let key = shown.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let problem = match key {
        Some(key) => format!("{key}: {}", units::text::explain_serde_message(error.message())),
        None => units::text::explain_serde_message(error.message()),
    };
    SpecError::Table { table: path.to_owned(), problem }
}
