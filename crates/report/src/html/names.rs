//! Names on a page: harmless, and short enough to stand beside a figure.

use study::Settings;

use crate::clean;

/// More letters than this and the middle of a name is left out.
const LONGEST: usize = 120;

/// A name from outside, harmless and of reasonable length.
pub(crate) fn brief(name: &str) -> String {
    let cleaned = clean::plain(name);
    let letters = cleaned.chars().count();
    if letters <= LONGEST {
        return cleaned;
    }
    let kept = LONGEST / 2 - 1;
    let start: String = cleaned.chars().take(kept).collect();
    let end: String = cleaned.chars().skip(letters - kept).collect();
    format!("{start}…{end}")
}

/// What is set besides read-ahead; nothing for a study of read-ahead alone.
pub(crate) fn settings_label(_settings: &Settings) -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_its_ends() {
        let name = format!("/srv/{}/data", "x".repeat(4096));
        let brief = brief(&name);
        assert!(brief.chars().count() <= LONGEST, "{brief}");
        assert!(brief.starts_with("/srv/x") && brief.ends_with("x/data"), "{brief}");
        assert_eq!(super::brief("/srv/data"), "/srv/data");
    }
}
