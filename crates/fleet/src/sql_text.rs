//! Values in statements.

/// A statement with its placeholders `:name:` replaced by these expressions. What a value contains
/// is not replaced again.
pub(crate) fn bind(template: &str, values: &[(&str, String)]) -> String {
    let (mut statement, mut rest) = (String::new(), template);
    while let Some(start) = rest.find(':') {
        let (before, after) = rest.split_at(start);
        statement.push_str(before);
        let found = values.iter().find(|(name, _)| {
            after[1..].strip_prefix(name).is_some_and(|after| after.starts_with(':'))
        });
        let length = match found {
            Some((name, value)) => {
                statement.push_str(value);
                name.len() + 2
            }
            None => {
                statement.push(':');
                1
            }
        };
        rest = &after[length..];
    }
    statement + rest
}

/// A literal, without the character that no text of PostgreSQL has.
pub(crate) fn quoted(text: &str) -> String {
    // A backslash is itself only with standard_conforming_strings, which a server may turn off.
    let escaped = text.replace('\0', "").replace('\\', "\\\\").replace('\'', "''");
    format!("E'{escaped}'")
}

/// The literal, or NULL.
pub(crate) fn quoted_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), quoted)
}

/// A literal for LIKE from a pattern with `*`. No pattern is the one that matches all.
pub(crate) fn like(pattern: Option<&str>) -> String {
    let pattern = pattern.unwrap_or("*");
    let escaped = pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    quoted(&escaped.replace('*', "%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_quotes_nor_name_another_value() {
        assert_eq!(like(Some(r"a'; DROP TABLE x; --_*\")), r"E'a''; DROP TABLE x; --\\_%\\\\'");
        assert_eq!(like(None), "E'%'");
        assert_eq!(quoted_or_null(Some("a\0b")), "E'ab'");
        let values = [("a", quoted(":b:'")), ("b", quoted_or_null(None))];
        assert_eq!(bind("x :a: :b:::uuid :c: y::int", &values), "x E':b:''' NULL::uuid :c: y::int");
    }
}
