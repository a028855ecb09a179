//! Converts text for terminals that show only ASCII.
//!
//! All text for people is converted here on output if the locale is not UTF-8, so no plot, bar or
//! sign needs a second form elsewhere. Documents (JSON, CSV, Markdown, TOML, HTML) are always UTF-8
//! and are not converted.

use std::borrow::Cow;
use std::io::{self, Write};

/// Returns whether the locale is UTF-8. `LC_ALL` overrides `LC_CTYPE`, which overrides `LANG`; an
/// empty variable counts as unset (locale(7)). If none is set, the locale is POSIX, not UTF-8.
pub fn locale_is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let Some(locale) = named.into_iter().find(|value| !value.is_empty()) else { return false };
    let Some((_, codeset)) = locale.split_once('.') else { return false };
    let codeset = codeset.split('@').next().unwrap_or_default();
    let codeset: String = codeset.chars().filter(char::is_ascii_alphanumeric).collect();
    codeset.eq_ignore_ascii_case("utf8")
}

/// Converts text to ASCII. A character without a substitute is escaped, as in `\u{e4}`.
pub fn of(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => written.push(c),
            '±' => plus_minus(&mut written),
            c => match likeness(c) {
                Some(like) => written.push_str(like),
                None => written.extend(c.escape_unicode()),
            },
        }
    }
    Cow::Owned(written)
}

/// `113 ±7` becomes `113+-7`, which has the same width, so table columns stay aligned.
fn plus_minus(written: &mut String) {
    let after_figure = written.ends_with(' ')
        && written.trim_end_matches(' ').len() + 1 == written.len()
        && written.trim_end().ends_with(|c: char| c.is_ascii_digit());
    if after_figure {
        written.pop();
    }
    written.push_str("+-");
}

/// Returns the ASCII substitute. Signs used in tables and plots are one character wide.
fn likeness(c: char) -> Option<&'static str> {
    Some(match c {
        '×' => "x",
        '÷' => "/",
        '−' | '–' | '‐' | '‑' => "-",
        '—' => "--",
        '…' => "...",
        '→' => "->",
        '←' => "<-",
        '↑' => "^",
        '↓' => "v",
        '◀' => "<",
        '▶' => ">",
        '✓' => "+",
        '✗' => "!",
        '‰' => "/1000",
        '≥' => ">=",
        '≤' => "<=",
        '≈' => "~",
        '≠' => "!=",
        '·' => ".",
        '•' => "*",
        '√' => "sqrt ",
        'µ' | 'μ' => "u",
        'σ' => "sigma",
        '₀' => "0",
        '₂' => "2",
        '²' => "^2",
        '³' => "^3",
        '⁴' => "^4",
        'ⁿ' => "^n",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '\u{a0}' | '\u{202f}' | '\u{2009}' => " ",
        '░' => ".",
        '▒' => ":",
        '▓' => "+",
        '█' | '▉' | '▊' | '▋' | '▌' => "#",
        '▍' | '▎' | '▏' => "-",
        '▀'..='▟' => "#",
        '─' | '━' | '═' | '╌' | '┄' => "-",
        '│' | '┃' | '║' | '╎' | '┆' => "|",
        '\u{2500}'..='\u{257f}' => "+",
        '\u{2800}'..='\u{28ff}' => braille(c),
        _ => return None,
    })
}

/// Returns the substitute of a cell of 2 × 4 dots, chosen by the rows that contain a dot.
fn braille(c: char) -> &'static str {
    let dots = u32::from(c) - 0x2800;
    let rows = [0x09, 0x12, 0x24, 0xc0].map(|row| dots & row != 0);
    match rows {
        [false, false, false, false] => " ",
        [true, false, false, false] | [true, true, false, false] => "'",
        [false, true, false, false] | [false, true, true, false] | [false, false, true, false] => {
            "-"
        }
        [false, false, false, true] | [false, false, true, true] => ".",
        [true, true, true, true] => "|",
        _ => ":",
    }
}

/// A writer that converts text to ASCII. An incomplete character waits for its remaining bytes.
#[derive(Debug)]
pub struct AsciiWriter<W> {
    inner: W,
    rest: Vec<u8>,
}

impl<W: Write> AsciiWriter<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, rest: Vec::new() }
    }
}

impl<W: Write> Write for AsciiWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        self.inner.write_all(of(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(variables: &[(&str, &str)]) -> bool {
        locale_is_utf8(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        assert!(utf8(&[("LANG", "en_GB.UTF-8")]));
        assert!(utf8(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(utf8(&[("LC_ALL", ""), ("LANG", "de_DE.UTF-8@euro")]));
        assert!(!utf8(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(!utf8(&[("LC_CTYPE", "POSIX"), ("LANG", "en_GB.UTF-8")]));
        assert!(!utf8(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!utf8(&[("LANG", "de_DE")]));
        assert!(!utf8(&[]));
    }

    #[test]
    fn every_sign_has_a_likeness_of_ascii() {
        assert_eq!(of("113 ±7 ×1.02"), "113+-7 x1.02");
        assert_eq!(of("MiB/s, ± half"), "MiB/s, +- half");
        assert_eq!(of("128 → 754 µs …"), "128 -> 754 us ...");
        assert_eq!(of("░▒▓█ ▏▌"), ".:+# -#");
        assert_eq!(of("⠁⠂⡀⣿⠀"), "'-.| ");
        assert_eq!(of("┌─┐│"), "+-+|");
        assert_eq!(of("Göttingen 数"), "G\\u{f6}ttingen \\u{6570}");
        assert!(matches!(of("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut written = Vec::new();
        let mut writer = AsciiWriter::new(&mut written);
        for byte in "a → b".as_bytes() {
            writer.write_all(&[*byte]).unwrap();
        }
        assert_eq!(written, b"a -> b");
    }
}
