//! Mistakes in what people type: the name that was meant, and where in a text a mistake is.

mod place;
mod told;

pub use place::Place;
pub use told::told;

/// Longer words are no slips of the hand, and the distance is quadratic.
const LETTERS_MOST: usize = 64;

/// The name that looks most like `word`, if one looks like it at all: up to a third of the letters
/// differ, or the word is the beginning or end of the name. Capitals do not count.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(LETTERS_MOST + 1).collect();
    if word.len() > LETTERS_MOST {
        return None;
    }
    let likeness = |name: &'a str| {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let alike = letters.iter().zip(&word).take_while(|(left, right)| left == right).count();
        // Of two that are as near, people rather mistype the end; of these, the shorter.
        (edits(&word, &letters), std::cmp::Reverse(alike), letters.len(), name)
    };
    let (edits, .., name) = names.into_iter().map(likeness).min()?;
    let bearable = (word.len() / 3).max(1);
    (edits <= bearable && word.len() > edits).then_some(name)
}

/// Advice to whoever typed a name that does not exist: `did you mean "x"?`, or, if none looks like
/// it, `there are` and all names.
pub fn hint(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("there are {}", names.join(", ")),
    }
}

/// How many letters must change; a word that begins or ends the name is as good as one change.
fn edits(word: &[char], name: &[char]) -> usize {
    let part = word.len() >= 3 && (name.starts_with(word) || name.ends_with(word));
    if part && word.len() < name.len() { 1 } else { distance(word, name) }
}

/// How many letters must be put in, left out, replaced or swapped with their neighbour.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
                let least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped =
                    i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
                if swapped { least.min(table[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    table[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_understood() {
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
    fn advice_names_the_one_that_was_meant_or_all() {
        assert_eq!(hint("filesytem", &["filesystem", "mount"]), "did you mean \"filesystem\"?");
        assert_eq!(hint("xyzzy", &["max", "mount"]), "there are max, mount");
    }

    #[test]
    fn of_two_as_near_the_one_that_begins_alike_is_meant() {
        let names = ["cloud-hdd", "hdd-2008", "hdd-2008-old"];
        assert_eq!(nearest("hdd", names), Some("hdd-2008"));
        assert_eq!(nearest("mound", ["found", "mount"]), Some("mount"));
    }

    #[test]
    fn a_distance_counts_edits() {
        let distance = |left: &str, right: &str| {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            distance(&letters(left), &letters(right))
        };
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
        assert_eq!(distance("smae", "same"), 1);
    }

    proptest! {
        #[test]
        fn any_words_are_survived(word in "\\PC*", names in proptest::collection::vec("\\PC*", 3)) {
            let found = nearest(&word, names.iter().map(String::as_str));
            prop_assert!(found.is_none_or(|found| names.iter().any(|name| name == found)));
        }

        #[test]
        fn a_distance_is_the_same_both_ways(left in "[a-c]{0,6}", right in "[a-c]{0,6}") {
            let [left, right] = [&left, &right].map(|word| word.chars().collect::<Vec<_>>());
            prop_assert_eq!(distance(&left, &right), distance(&right, &left));
            prop_assert_eq!(distance(&left, &right) == 0, left == right);
        }
    }
}
