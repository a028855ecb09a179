//! Extracts a command's metric from its output.

use regex_lite::Regex;
use serde_json::Value as Json;
use workload::Metric;

use crate::BenchError;

/// Checks that a metric is valid.
pub(super) fn check(metric: &Metric) -> Result<(), BenchError> {
    match metric {
        Metric::Wall => Ok(()),
        Metric::Regex(pattern) => compiled(pattern).map(drop),
        Metric::Json(path) if path.is_empty() => {
            Err(bad("json:", "json:PATH, as in json:jobs.0.read.bw"))
        }
        Metric::Json(_) => Ok(()),
    }
}

fn bad(value: &str, wanted: &'static str) -> BenchError {
    BenchError::BadOption { option: "--metric", value: value.to_owned(), wanted }
}

fn compiled(pattern: &str) -> Result<Regex, BenchError> {
    let wanted = "a regular expression whose first group is a number, as in 'tps = ([0-9.]+)'";
    let regex = Regex::new(pattern).map_err(|_| bad(pattern, wanted))?;
    if regex.captures_len() < 2 { Err(bad(pattern, wanted)) } else { Ok(regex) }
}

/// Extracts the metric from this output; `None` for the wall clock.
pub(super) fn read(metric: &Metric, output: &[u8]) -> Result<Option<f64>, BenchError> {
    let text = String::from_utf8_lossy(output);
    let problem = |why: String| super::problem("the command", why);
    let number = match metric {
        Metric::Wall => return Ok(None),
        Metric::Regex(pattern) => {
            let found = compiled(pattern)?
                .captures_iter(&text)
                .last()
                .and_then(|groups| Some(groups.get(1)?.as_str().to_owned()));
            let found = found
                .ok_or_else(|| problem(format!("printed nothing that matches {pattern:?}")))?;
            number(&found).ok_or_else(|| problem(format!("{found:?} is not a number")))?
        }
        Metric::Json(path) => {
            let start = text.find(['{', '[']).unwrap_or(0);
            let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Json>();
            let json = match values.next() {
                Some(Ok(json)) => json,
                Some(Err(error)) => return Err(problem(format!("printed no JSON: {error}"))),
                None => return Err(problem("printed no JSON".to_owned())),
            };
            let value = path.split('.').try_fold(&json, |value, key| match key.parse::<usize>() {
                Ok(index) if value.is_array() => value.get(index),
                _ => value.get(key),
            });
            let value = value.ok_or_else(|| problem(format!("its JSON has no {path}")))?;
            let found = value.as_f64().or_else(|| number(value.as_str()?));
            found.ok_or_else(|| problem(format!("{path} is not a number in its JSON")))?
        }
    };
    match number.is_finite() && number >= 0.0 {
        true => Ok(Some(number)),
        false => Err(problem(format!("its figure is {number}: it must be 0 or more"))),
    }
}

/// Parses a number that may have commas as thousands separators.
fn number(text: &str) -> Option<f64> {
    text.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(metric: &Metric, output: &str) -> String {
        read(metric, output.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn numbers_are_found_in_text_and_json() {
        let regex = Metric::Regex("tps = ([0-9.,]+)".to_owned());
        let found = read(&regex, b"tps = 1.5\nlast tps = 1,234.5 (x)\n").unwrap();
        assert_eq!(found, Some(1234.5));
        let json = Metric::Json("jobs.1.bw".to_owned());
        let text = b"note\n{\"jobs\": [{}, {\"bw\": \"77\"}]} end";
        assert_eq!(read(&json, text).unwrap(), Some(77.0));
        assert_eq!(read(&Metric::Wall, b"").unwrap(), None);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let regex = Metric::Regex("tps = (.*)".to_owned());
        assert!(message(&regex, "nothing").contains("nothing that matches"));
        assert!(message(&regex, "tps = fast").contains("\"fast\" is not a number"));
        assert!(message(&regex, "tps = -1").contains("0 or more"));
        assert!(message(&regex, "tps = nan").contains("0 or more"));
        let json = Metric::Json("a.b".to_owned());
        assert!(message(&json, "").contains("no JSON"));
        assert!(message(&json, "{\"a\": 1}").contains("has no a.b"));
        assert!(message(&json, "{\"a\": {\"b\": null}}").contains("not a number"));
        assert!(check(&Metric::Regex("(".to_owned())).is_err());
        assert!(check(&Metric::Regex("[0-9]+".to_owned())).is_err());
        assert!(check(&Metric::Json(String::new())).is_err());
    }
}
