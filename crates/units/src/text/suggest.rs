//! Suggestions for misspelt names.

use std::cmp::Reverse;

/// Longer words are not typing mistakes, and the edit distance is quadratic in their length.
const MAX_CHARS: usize = 64;

/// Returns the most similar name, if it is similar enough: at most a third of the characters of
/// `word` differ, or `word` is a prefix or suffix of the name. Case is ignored.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    if length > MAX_CHARS {
        return None;
    }
    let rank = |name: &'a str| {
        let lower = name.to_lowercase();
        let same_start = lower.chars().zip(word.chars()).take_while(|(a, b)| a == b).count();
        // Among equally distant names prefer the longest common prefix (most typing mistakes are
        // near the end of a word), then the shortest name.
        (edits(&word, length, &lower), Reverse(same_start), lower.chars().count(), name)
    };
    let (edits, .., name) = names.into_iter().map(rank).min()?;
    (edits <= (length / 3).max(1) && length > edits).then_some(name)
}

/// Returns the hint for an unknown name: `did you mean "x"?`, or `there are` and all names.
pub fn hint(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("there are {}", names.join(", ")),
    }
}

/// Returns the edit distance with transpositions; a prefix or suffix of the name counts as one.
fn edits(word: &str, length: usize, name: &str) -> usize {
    let is_affix = length >= 3 && (name.starts_with(word) || name.ends_with(word));
    if is_affix && word.len() < name.len() { 1 } else { strsim::osa_distance(word, name) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_typing_mistake_is_understood() {
        let names = ["chunk", "read_policy", "seek_average_ms", "rpm", "cache", "fs"];
        for (word, meant) in [
            ("chnuk", Some("chunk")),
            ("rmp", Some("rpm")),
            ("RPM", Some("rpm")),
            ("cach", Some("cache")),
            ("seek_average", Some("seek_average_ms")),
            ("sf", Some("fs")),
            ("capacity", None),
            ("xy", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        assert_eq!(nearest(&"chunk".repeat(1000), names), None);
        assert_eq!(nearest("chunk", []), None);
    }

    #[test]
    fn a_hint_names_the_nearest_name_or_all() {
        assert_eq!(hint("filesytem", &["filesystem", "mount"]), "did you mean \"filesystem\"?");
        assert_eq!(hint("xyzzy", &["max", "mount"]), "there are max, mount");
    }

    #[test]
    fn of_two_equally_distant_names_the_longer_common_prefix_wins() {
        let names = ["cloud-hdd", "hdd-2008", "hdd-2008-old"];
        assert_eq!(nearest("hdd", names), Some("hdd-2008"));
        assert_eq!(nearest("mound", ["found", "mount"]), Some("mount"));
    }

    proptest! {
        #[test]
        fn any_words_are_survived(word in "\\PC*", names in proptest::collection::vec("\\PC*", 3)) {
            let found = nearest(&word, names.iter().map(String::as_str));
            prop_assert!(found.is_none_or(|found| names.iter().any(|name| name == found)));
        }
    }
}
