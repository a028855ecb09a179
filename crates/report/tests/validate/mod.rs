//! Validates documents against docs/foreread.schema.json.
#![allow(dead_code)] // each test file uses a part of it

use serde_json::Value;

/// Returns the schema.
pub fn schema() -> Value {
    let text = include_str!("../../../../docs/foreread.schema.json");
    serde_json::from_str(text).unwrap()
}

/// Checks a document against one of the schema's definitions.
#[track_caller]
pub fn assert_valid_as(definition: &str, document: &Value) {
    let schema = schema();
    let wanted = schema.pointer(&format!("/$defs/{definition}")).unwrap();
    let mut found = Vec::new();
    problems(&schema, wanted, document, "", &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// Checks the subset of JSON Schema that the file uses; an unknown keyword is a failure. Properties
/// that the schema does not name are failures, too: they would be undocumented.
pub fn problems(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fine = match keyword.as_str() {
            "$ref" => {
                let target = wanted.as_str().unwrap().trim_start_matches('#');
                problems(root, root.pointer(target).unwrap(), value, at, found);
                true
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is(value, wanted)),
                wanted => is(value, wanted),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                wanted
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    problems(root, wanted, item, &format!("{at}/{index}"), found);
                }
                true
            }
            "properties" => {
                for (key, item) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}/{key}");
                    match wanted.get(key) {
                        Some(schema) => problems(root, schema, item, &at, found),
                        None => found.push(format!("{at} is not in the schema")),
                    }
                }
                true
            }
            "$schema" | "title" | "$defs" => true,
            other => panic!("this test does not know {other}"),
        };
        if !fine {
            found.push(format!("{at}: {value} is not {keyword} {wanted}"));
        }
    }
}

fn is(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("this test does not know the type {other}"),
    }
}
