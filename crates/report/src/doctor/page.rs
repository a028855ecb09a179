//! Lines for a terminal: sanitised, wrapped, indented and, if supported, coloured.

use std::fmt::Write;

use anstyle::Style;

use crate::clean;
use crate::terminal_text::{TermStyle, wrapped};

/// A text under construction. It sanitises all input.
pub(crate) struct TextPage {
    text: String,
    look: TermStyle,
}

/// Column of values, if there is space.
const VALUE_COLUMN: usize = 46;

impl TextPage {
    pub fn new(look: TermStyle) -> Self {
        Self { text: String::new(), look }
    }

    /// Returns the text without trailing blank lines.
    pub fn text(mut self) -> String {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    fn width(&self) -> usize {
        self.look.width.clamp(40, 100)
    }

    fn put(&mut self, style: Style, text: &str) {
        if self.look.colour && style != Style::new() {
            let _ = write!(self.text, "{style}{text}{style:#}");
        } else {
            self.text.push_str(text);
        }
    }

    /// Adds a blank line, but never two in a row.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a line that is not wrapped.
    pub fn line(&mut self, indent: usize, style: Style, text: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.put(style, &clean::plain(text));
        self.text.push('\n');
    }

    /// Adds a line of a tree: foreread draws the lines, the name comes from outside.
    pub fn branch(&mut self, drawing: &str, name: &str, value: &str, counts: bool) {
        let name = clean::plain(name);
        self.text.push_str("  ");
        self.put(super::dim(), drawing);
        let length = 2 + drawing.chars().count() + name.chars().count();
        self.put(if counts { super::bold() } else { Style::new() }, &name);
        if !value.is_empty() {
            let gap = VALUE_COLUMN.saturating_sub(length).max(2);
            self.text.push_str(&" ".repeat(gap));
            self.put(if counts { super::bold() } else { super::dim() }, value);
            if counts {
                self.put(super::green(), " ◀ counts");
            }
        }
        self.text.push('\n');
    }

    /// Adds a name on the left and its value on the right.
    pub fn heading(&mut self, name: &str, value: &str, style: Style) {
        let name = clean::plain(name);
        let length = name.chars().count();
        self.put(super::bold(), &name);
        if length + 2 + value.chars().count() > self.width() {
            self.text.push_str("\n  ");
        } else {
            self.text.push_str(&" ".repeat(VALUE_COLUMN.saturating_sub(length).max(2)));
        }
        self.put(style, value);
        self.text.push('\n');
    }

    /// Adds a word followed by a wrapped, indented text.
    pub fn hanging(&mut self, indent: usize, word: &str, style: Style, text: &str) {
        self.broken(indent, word, style, Style::new(), text);
    }

    /// Like `hanging`, with the text in the style of the word.
    pub fn marked(&mut self, indent: usize, word: &str, style: Style, text: &str) {
        self.broken(indent, word, style, style, text);
    }

    /// Adds a command on its own line, never wrapped, so that it can be copied.
    pub fn command(&mut self, command: &str) {
        self.line(4, super::green(), command);
    }

    fn broken(&mut self, indent: usize, word: &str, of_word: Style, of_text: Style, text: &str) {
        let text = clean::plain(text);
        let left = indent + word.chars().count();
        let room = self.width().saturating_sub(left).max(20);
        for (index, line) in wrapped(&text, room).iter().enumerate() {
            if index == 0 {
                self.text.push_str(&" ".repeat(indent));
                self.put(of_word, word);
            } else {
                self.text.push_str(&" ".repeat(left));
            }
            self.put(of_text, line);
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_break_below_themselves_and_units_stay() {
        let mut page = TextPage::new(TermStyle { width: 40, colour: false });
        page.hanging(
            2,
            "from ",
            Style::new(),
            "the kernel takes twice the largest request, 8192 KiB now",
        );
        assert_eq!(
            page.text(),
            "  from the kernel takes twice the largest\n       request, 8192 KiB now\n"
                .replace("the largest\n       request", "the\n       largest request")
        );
    }

    #[test]
    fn names_from_outside_are_cleaned() {
        let mut page = TextPage::new(TermStyle { width: 80, colour: false });
        page.line(0, Style::new(), "a\u{1b}[2Jb");
        assert!(!page.text().contains('\u{1b}'));
    }
}
