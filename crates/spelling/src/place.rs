//! Where in a text something stands.

use std::fmt;

/// A place in a text, for people: both numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

impl Place {
    /// The place of the character that begins at this byte of `text`; the end if none does.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_as_people_do() {
        let text = "a\nübc\n";
        for (byte, line, column) in [(0, 1, 1), (2, 2, 1), (4, 2, 2), (5, 2, 3), (7, 3, 1)] {
            assert_eq!(Place::of(text, byte), Place { line, column }, "byte {byte}");
        }
        assert_eq!(Place::of(text, 99), Place { line: 3, column: 1 });
        assert_eq!(Place::of("", 0).to_string(), "line 1, column 1");
    }
}
