//! Splits a script into commands and words.

/// Splits a script into commands, each with the line on which it starts.
pub(super) fn split(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut splitter = Splitter::default();
    for c in text.chars() {
        splitter.take(c);
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct Splitter {
    commands: Vec<(usize, Vec<String>)>,
    words: Vec<String>,
    word: String,
    in_word: bool,
    quote: Option<char>,
    escaped: bool,
    comment: bool,
    line: usize,
    began: usize,
}

impl Splitter {
    fn take(&mut self, c: char) {
        if c == '\n' {
            self.line += 1;
        }
        if self.comment && c != '\n' {
            return;
        }
        self.comment = false;
        if self.escaped {
            self.escaped = false;
            if c != '\n' {
                self.push(c);
            }
            return;
        }
        match (self.quote, c) {
            (Some(quote), c) if c == quote => self.quote = None,
            (Some('"'), '\\') | (None, '\\') => self.escaped = true,
            (Some(_), c) => self.push(c),
            (None, '\'' | '"') => {
                self.start();
                self.quote = Some(c);
            }
            (None, '#') if !self.in_word => self.comment = true,
            (None, '\n' | ';' | '&' | '|') => self.end_command(),
            (None, '>') => {
                self.end_word();
                self.push('>');
                self.end_word();
            }
            (None, c) if c.is_whitespace() => self.end_word(),
            (None, c) => self.push(c),
        }
    }

    fn start(&mut self) {
        if self.words.is_empty() && !self.in_word {
            self.began = self.line;
        }
        self.in_word = true;
    }

    fn push(&mut self, c: char) {
        self.start();
        self.word.push(c);
    }

    fn end_word(&mut self) {
        if self.in_word {
            self.words.push(std::mem::take(&mut self.word));
            self.in_word = false;
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push((self.began, std::mem::take(&mut self.words)));
        }
    }
}
