//! Lines of a text, and the nearest of some words.

/// The line that an offset is on, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The word that a mistyped one was meant for, or all of them.
pub(super) fn hint(word: &str, known: &[&str]) -> String {
    let first = word.chars().next().unwrap_or(' ');
    let near = known
        .iter()
        // Of two that are as near, people rather mistype the end.
        .map(|known| (distance(word, known), !known.starts_with(first), *known))
        .min()
        .filter(|(distance, _, known)| *distance <= known.len().max(3) / 2);
    match near {
        Some((.., candidate)) => format!("did you mean {candidate:?}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// Letters to add, drop or change to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    // Longer words are no slips of the hand.
    for (index, c) in from.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for at in 0..to.len() {
            let change = diagonal + usize::from(to[at] != c);
            diagonal = row[at + 1];
            row[at + 1] = change.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        assert_eq!(hint("filesytem", &["filesystem", "mount"]), "did you mean \"filesystem\"?");
        assert_eq!(hint("xyzzy", &["max", "mount"]), "there are max, mount");
        assert_eq!(line_of("a\nb\nc", 2), 2);
        assert_eq!(line_of("a", 99), 1);
    }
}
