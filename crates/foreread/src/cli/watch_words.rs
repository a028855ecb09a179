//! The arguments of `foreread watch`: `[TARGET] [INTERVAL [COUNT]]`, as in iostat and vmstat.

use std::path::Path;

use units::Nanos;

use crate::exit::Usage;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub target: Option<String>,
    pub interval: Option<Nanos>,
    pub count: Option<u64>,
}

impl Words {
    /// Classifies the words by their shape: a plain number is first the seconds of an interval,
    /// then a count; `500ms` is also an interval, unless a file has this name.
    pub fn read(words: &[String]) -> Result<Self, Usage> {
        let mut read = Self::default();
        for word in words {
            let number = is_number(word);
            if !number && !is_time(word) {
                if let Some(first) = &read.target {
                    return Err(Usage(format!("{first:?} and {word:?}: watch takes one target")));
                }
                read.target = Some(word.clone());
            } else if read.interval.is_none() {
                read.interval = Some(interval(word, number)?);
            } else if read.count.is_none() {
                let count = word.parse().ok().filter(|count| *count > 0);
                let wrong = || Usage(format!("count {word}: give a whole number of 1 or more"));
                read.count = Some(count.ok_or_else(wrong)?);
            } else {
                return Err(Usage(format!(
                    "{word}: unexpected argument after the interval and the count"
                )));
            }
        }
        Ok(read)
    }
}

fn is_number(word: &str) -> bool {
    let mut points = 0;
    let digit = |c: char| {
        c.is_ascii_digit()
            || (c == '.' && {
                points += 1;
                points < 2
            })
    };
    word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(digit)
}

fn is_time(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_digit());
    begins && word.parse::<Nanos>().is_ok() && !Path::new(word).exists()
}

fn interval(word: &str, seconds: bool) -> Result<Nanos, Usage> {
    let text = if seconds { format!("{word}s") } else { word.to_owned() };
    text.parse().map_err(|error| Usage(format!("interval {word}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Words, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Words::read(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_seconds_and_a_count_and_the_rest_is_a_target() {
        let words = |target: Option<&str>, ms: Option<u64>, count| Words {
            target: target.map(str::to_owned),
            interval: ms.map(Nanos::from_millis),
            count,
        };
        assert_eq!(read(""), Ok(words(None, None, None)));
        assert_eq!(read("1"), Ok(words(None, Some(1000), None)));
        assert_eq!(read("1 5"), Ok(words(None, Some(1000), Some(5))));
        assert_eq!(read("0.5 3"), Ok(words(None, Some(500), Some(3))));
        assert_eq!(read("/srv/data 2 10"), Ok(words(Some("/srv/data"), Some(2000), Some(10))));
        assert_eq!(read("2 10 sdb"), Ok(words(Some("sdb"), Some(2000), Some(10))));
        assert_eq!(read("pid:4711 500ms"), Ok(words(Some("pid:4711"), Some(500), None)));
        assert_eq!(read("./1"), Ok(words(Some("./1"), None, None)));
        assert_eq!(read("8:16 1"), Ok(words(Some("8:16"), Some(1000), None)));
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert!(read("a b").unwrap_err().contains("one target"));
        assert!(read("1 2 3").unwrap_err().contains("unexpected"));
        assert!(read("1 0").unwrap_err().contains("whole number"));
        assert!(read("1 1.5").unwrap_err().contains("whole number"));
    }
}
