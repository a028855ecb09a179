//! Escapes external names for a terminal.

use std::fmt::Write;

/// Escapes text for a terminal or a line of a log: control characters, direction marks and
/// invisible characters are written as `\u{1b}`.
pub fn plain(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            let _ = write!(cleaned, "{}", c.escape_unicode());
        } else {
            cleaned.push(c);
        }
    }
    cleaned
}

/// Returns whether a character is invisible or reverses the direction of text (Unicode TR 36:
/// bidirectional controls, zero-width characters, line separators, tags and variation selectors).
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e01ef}'
    )
}
