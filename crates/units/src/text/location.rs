//! Line and column of an error in a text.

use std::fmt;

/// A position in a text, both numbers counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    pub line: usize,
    pub column: usize,
}

impl SourceLocation {
    /// Returns the position of the character that starts at byte `offset` of `text`; the end of the
    /// text if no character starts there.
    pub fn from_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one() {
        let text = "a\nübc\n";
        for (offset, line, column) in [(0, 1, 1), (2, 2, 1), (4, 2, 2), (5, 2, 3), (7, 3, 1)] {
            let expected = SourceLocation { line, column };
            assert_eq!(SourceLocation::from_offset(text, offset), expected, "byte {offset}");
        }
        assert_eq!(SourceLocation::from_offset(text, 99), SourceLocation { line: 3, column: 1 });
        assert_eq!(SourceLocation::from_offset("", 0).to_string(), "line 1, column 1");
    }
}
