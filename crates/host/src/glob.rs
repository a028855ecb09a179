//! Glob patterns of udev, tmpfiles and shells: `*`, `?`, `[a-z]`, `[!0-9]`.

/// Returns whether `text` matches `pattern`. `*` also matches slashes; see [`path_matches`].
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    fits(&pattern, &text)
}

/// Returns whether a path matches a shell pattern, in which `*` does not match slashes.
pub(crate) fn path_matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let all = pattern.split('/').all(|part| parts.next().is_some_and(|name| matches(part, name)));
    all && parts.next().is_none()
}

/// Matches greedily and backtracks only to the last `*`.
fn fits(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match step(&pattern[p..], text[t]) {
            Some(0) => {
                star = Some((p, t));
                p += 1;
            }
            Some(length) => {
                p += length;
                t += 1;
            }
            None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Returns the pattern length that `c` consumes, 0 for `*`; `None` if `c` does not match.
fn step(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '*' => Some(0),
        '?' => Some(1),
        '[' => class(pattern, c),
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        plain => (*plain == c).then_some(1),
    }
}

fn class(pattern: &[char], c: char) -> Option<usize> {
    let Some(end) = (2..pattern.len()).find(|at| pattern[*at] == ']') else {
        return (c == '[').then_some(1); // an unclosed bracket is a literal
    };
    let mut set = &pattern[1..end];
    let negated = matches!(set.first(), Some('!' | '^'));
    if negated {
        set = &set[1..];
    }
    let mut found = false;
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            found |= (set[at]..=set[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= set[at] == c;
            at += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text, fitting) in [
            ("sd*", "sda1", true),
            ("sd?", "sda1", false),
            ("sd[a-c]", "sdb", true),
            ("sd[!a-c]", "sdb", false),
            ("*a*b", "xaxxab", true),
            ("", "", true),
            ("*", "", true),
            ("[", "[", true),
            ("nvme[0-9]*n[0-9]*", "nvme0n1", true),
            ("sd[a-z]|vd", "sda", false),
        ] {
            assert_eq!(matches(pattern, text), fitting, "{pattern} {text}");
        }
        assert!(path_matches("/sys/block/sd*/queue/x", "/sys/block/sda/queue/x"));
        assert!(!path_matches("/sys/block/*", "/sys/block/sda/queue/x"));
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern in "[\\[\\]*?!^a\\\\-]{0,40}", text in "[ab\\[-]{0,40}") {
            matches(&pattern, &text);
        }

        #[test]
        fn a_plain_text_fits_itself(text in "[a-z0-9:/.-]{0,30}") {
            prop_assert!(matches(&text, &text));
        }
    }
}
