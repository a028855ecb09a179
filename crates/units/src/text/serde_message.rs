//! Messages of serde reworded for readers who do not know Rust's types.

use super::hint;

/// Rewords a message of serde as one line; a message of unknown form is returned as it is.
pub fn explain_serde_message(message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{} is missing", field.replace('`', ""));
    }
    let listed = |names: &str| names.trim_start_matches("one of ").replace('`', "");
    let Some((found, expected)) = message.split_once(", expected ") else { return message };
    if let Some(word) = found.strip_prefix("unknown variant ") {
        return format!("there is no {}: use {}", word.replace('`', ""), listed(expected));
    }
    if let Some(key) = found.strip_prefix("unknown field ") {
        let (key, known) = (key.replace('`', ""), listed(expected));
        let known: Vec<&str> = known.split(", ").collect();
        return format!("there is no key {key:?}: {}", hint(&key, &known));
    }
    let wanted = match expected {
        "f64" => "a number",
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number of 0 or more",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        other => other,
    };
    let mistyped = ["invalid type: ", "invalid value: "];
    match mistyped.iter().find_map(|start| found.strip_prefix(start)) {
        Some(found) => format!("should be {wanted}, not {}", value(found)),
        None => message,
    }
}

/// Returns the value in serde's description of it: ``integer `-1` ``, `string "fast"`, `map`.
fn value(found: &str) -> &str {
    match (found.split_once('`'), found.find('"')) {
        (Some((_, value)), _) => value.trim_end_matches('`'),
        (None, Some(quote)) => &found[quote..],
        (None, None) => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_types_are_not_shown() {
        for (message, plain) in [
            ("invalid type: string \"fast\", expected f64", "should be a number, not \"fast\""),
            (
                "invalid value: integer `-1`, expected usize",
                "should be a whole number of 0 or more, not -1",
            ),
            ("invalid type: integer `5`, expected a string", "should be text in quotes, not 5"),
            ("unknown variant `cfg`, expected `none` or `x`", "there is no cfg: use none or x"),
            ("unknown variant `a`, expected one of `b`, `c`, `d`", "there is no a: use b, c, d"),
            (
                "unknown field `bolck`, expected one of `block`, `name`",
                "there is no key \"bolck\": did you mean \"block\"?",
            ),
            ("invalid type: map, expected f64", "should be a number, not map"),
            ("missing field `rpm`", "rpm is missing"),
            ("\"1\" has no unit: write 1K", "\"1\" has no unit: write 1K"),
            ("something, expected else", "something, expected else"),
        ] {
            assert_eq!(explain_serde_message(message), plain);
        }
    }
}
