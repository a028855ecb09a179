//! Sanitises names from outside.
//!
//! A file name may contain any byte except `/` and NUL: escape sequences that change the terminal,
//! marks that reverse the direction of text, a `|` that adds a column, a formula that a spreadsheet
//! executes. These functions turn each of them into visible, harmless text.

pub use units::text::plain;

/// Escapes text for Markdown, inside and outside tables: every character that could start markup
/// appears as itself.
pub fn markdown(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => cleaned.push_str("&lt;"),
            '>' => cleaned.push_str("&gt;"),
            '&' => cleaned.push_str("&amp;"),
            '@' => cleaned.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => {
                cleaned.push('\\');
                cleaned.push(c);
            }
            _ => cleaned.push(c),
        }
    }
    // Many sites turn a bare address into a link, so break it.
    cleaned.replace("://", "&#58;//").replace("www.", "www&#46;")
}

/// Escapes a CSV field. Spreadsheets treat text that starts with `=`, `+`, `-` or `@` as a formula,
/// so such text gets a leading apostrophe, which spreadsheets hide.
pub fn csv(text: &str) -> String {
    let cleaned = plain(text);
    let formula = cleaned.trim_start().starts_with(['=', '+', '-', '@']);
    if formula { format!("'{cleaned}") } else { cleaned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_stays_as_it_is() {
        for name in ["/srv/data-1", "virtual:raid10-2008,fs=xfs", "/mnt/Göttingen/数据"] {
            assert_eq!(plain(name), name);
            assert_eq!(csv(name), name);
        }
    }

    #[test]
    fn control_and_direction_characters_become_visible() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\u{a}c");
        assert_eq!(plain("txt\u{202e}gpj"), "txt\\u{202e}gpj");
        assert_eq!(plain("\u{9b}31m"), "\\u{9b}31m", "C1 controls are escapes too");
    }

    #[test]
    fn markup_is_shown_and_not_obeyed() {
        assert_eq!(markdown("virtual:raid10-2008,fs=xfs"), "virtual:raid10-2008,fs=xfs");
        assert_eq!(markdown("a|b"), "a\\|b");
        assert_eq!(markdown("<img src=x>"), "&lt;img src=x&gt;");
        assert_eq!(markdown("[x](http://y)"), "\\[x\\](http&#58;//y)");
        assert_eq!(markdown("`rm`\n# x"), "\\`rm\\`\\\\u{a}\\# x");
    }

    #[test]
    fn a_spreadsheet_finds_no_formula() {
        assert_eq!(csv("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(csv(" +1"), "' +1");
        assert_eq!(csv("\t=1"), "\\u{9}=1");
    }
}
