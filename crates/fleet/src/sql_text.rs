//! Inserts values into SQL statements.

/// Replaces the placeholders `:name:` of a statement by these expressions. Placeholders inside
/// values are not replaced.
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

/// Returns a string literal, without NUL, which PostgreSQL's text cannot contain.
pub(crate) fn quoted(text: &str) -> String {
    // E'' syntax, because a server may turn off standard_conforming_strings.
    let escaped = text.replace('\0', "").replace('\\', "\\\\").replace('\'', "''");
    format!("E'{escaped}'")
}

/// Returns a string literal, or NULL.
pub(crate) fn quoted_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), quoted)
}

/// Returns a literal for LIKE from a pattern with `*`. `None` matches all.
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
