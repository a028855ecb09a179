//! The syntax of udev rules: `KEY{attribute}OP"value", …`, one rule per line.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdevRule {
    pub tokens: Vec<Token>,
    /// Number of the rule's first line, from 1.
    pub line: usize,
    pub text: String,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// `KERNEL`, `ATTR`, …
    pub key: String,
    pub attribute: Option<String>,
    pub operator: Operator,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Is,
    /// `!=`
    IsNot,
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Remove,
    /// `:=`
    SetFinally,
}

impl Operator {
    /// Returns whether the operator is a comparison, not an assignment.
    pub fn asks(self) -> bool {
        matches!(self, Self::Is | Self::IsNot)
    }
}

/// Parses a file of rules. Like udev, it skips invalid rules.
pub fn parse(text: &str) -> Vec<UdevRule> {
    let lines: Vec<&str> = text.lines().collect();
    let mut rules = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let first = at;
        let mut joined = lines[at].trim().to_owned();
        while joined.ends_with('\\') && at + 1 < lines.len() && !joined.starts_with('#') {
            joined.pop();
            at += 1;
            joined.push_str(lines[at].trim());
        }
        at += 1;
        if joined.is_empty() || joined.starts_with('#') {
            continue;
        }
        if let Some(tokens) = tokens(&joined) {
            let comment = comment(&lines, first);
            rules.push(UdevRule { tokens, line: first + 1, text: joined, comment });
        }
    }
    rules
}

/// Returns the comment above a rule. Within a rule, `#` does not start a comment.
fn comment(lines: &[&str], at: usize) -> Option<String> {
    let above = lines[..at].iter().rev().take_while(|line| line.trim().starts_with('#')).take(4);
    let mut words: Vec<&str> =
        above.map(|line| line.trim().trim_start_matches(['#', ' '])).collect();
    words.reverse();
    let text = words.join(" ");
    (!text.is_empty()).then_some(text)
}

fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut rest = line;
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if rest.is_empty() {
            return (!found.is_empty()).then_some(found);
        }
        let (token, behind) = token(rest)?;
        found.push(token);
        rest = behind;
    }
}

fn token(text: &str) -> Option<(Token, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (key, mut rest) = text.split_at(end);
    if key.is_empty() {
        return None;
    }
    let mut attribute = None;
    if let Some(inner) = rest.strip_prefix('{') {
        let (name, behind) = inner.split_once('}')?;
        attribute = Some(name.to_owned());
        rest = behind;
    }
    let (operator, rest) = operator(rest.trim_start())?;
    let (value, rest) = value(rest.trim_start())?;
    Some((Token { key: key.to_owned(), attribute, operator, value }, rest))
}

fn operator(text: &str) -> Option<(Operator, &str)> {
    const ALL: &[(&str, Operator)] = &[
        ("==", Operator::Is),
        ("!=", Operator::IsNot),
        ("+=", Operator::Add),
        ("-=", Operator::Remove),
        (":=", Operator::SetFinally),
        ("=", Operator::Set),
    ];
    ALL.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))
}

/// Parses a quoted value. A prefix `e` (interpret escapes) or `i` (ignore case) is skipped, and a
/// backslash before a quote escapes it.
fn value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches(['e', 'i']).strip_prefix('"')?;
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return Some((value, &text[at + 1..])),
            '"' => {
                value.pop();
                value.push('"');
                escaped = false;
            }
            c => {
                value.push(c);
                escaped = c == '\\' && !escaped;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rule_is_taken_apart() {
        let text = "# in KiB\nACTION==\"add|change\", SUBSYSTEM==\"block\", \\\n  \
                    ATTR{queue/rotational}!=\"0\" ATTR{queue/read_ahead_kb}=\"4096\"\n\nbroken\n\
                    RUN+=\"/bin/sh -c 'echo \\\"x\\\"'\", GOTO=\"end\"\n";
        let rules = parse(text);
        assert_eq!(rules.len(), 2);
        assert_eq!((rules[0].line, rules[1].line), (2, 6));
        assert_eq!(rules[0].comment.as_deref(), Some("in KiB"));
        let [action, .., set] = rules[0].tokens.as_slice() else { panic!("tokens") };
        assert_eq!((action.key.as_str(), action.operator), ("ACTION", Operator::Is));
        assert_eq!(set.attribute.as_deref(), Some("queue/read_ahead_kb"));
        assert_eq!((set.operator, set.value.as_str()), (Operator::Set, "4096"));
        assert_eq!(rules[1].tokens[0].value, "/bin/sh -c 'echo \"x\"'");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(\\PC|[\"\\\\\n{}=!+:]){0,120}") {
            parse(&text);
        }
    }
}
