//! Rules that match nothing on this machine: they are for other hosts, or contain a typing error.
//!
//! A policy for many hosts has rules that match only some of them, so such a rule is not always a
//! violation. But a typing error must not silently disable a check. Unless `required` decides, an
//! idle rule is a violation if it resembles an existing name that no other rule matches, or if no
//! rule of the policy matches anything.

use super::{CompliancePolicy, IdleRule, Rule, StorageProperties};

/// Explains a rule that matches nothing; `checked` is true if another rule matches something.
pub(super) fn explain(
    rule: &Rule,
    policy: &CompliancePolicy,
    all: &[&StorageProperties],
    checked: bool,
) -> IdleRule {
    let suggestion = suggestion(rule, policy, all);
    let violation = match (rule.required, &suggestion) {
        (Some(false), _) => None,
        (Some(true), _) => Some("it has required = true".to_owned()),
        (None, Some(name)) => {
            Some(format!("did you mean {name:?}? Write required = false if it is for other hosts"))
        }
        (None, None) if !checked => Some("no rule of this policy matches anything here".to_owned()),
        (None, None) => None,
    };
    IdleRule {
        rule: rule.name.clone(),
        line: rule.line,
        required: rule.required == Some(true),
        suggestion,
        violation,
    }
}

type Patterns = fn(&Rule) -> &[String];
type Names = fn(&StorageProperties) -> &[String];

/// The keys whose values are names that users choose and may mistype.
const NAMED: [(Patterns, Names); 4] = [
    (|rule| &rule.mount, |facts| &facts.mounts),
    (|rule| &rule.label, |facts| &facts.labels),
    (|rule| &rule.device, |facts| &facts.devices),
    (|rule| &rule.filesystem, |facts| &facts.filesystems),
];

/// Returns an existing name that resembles one of the rule's patterns.
fn suggestion(
    rule: &Rule,
    policy: &CompliancePolicy,
    all: &[&StorageProperties],
) -> Option<String> {
    // Another rule that names a storage already covers it.
    let free = all.iter().filter(|facts| {
        !policy.rules.iter().any(|other| names_something(other) && other.is_about(facts))
    });
    let free: Vec<&StorageProperties> = free.copied().collect();
    NAMED.iter().find_map(|(patterns, names)| {
        let here: Vec<&str> =
            free.iter().flat_map(|facts| names(facts)).map(String::as_str).collect();
        patterns(rule).iter().find_map(|pattern| similar(pattern, &here))
    })
}

fn names_something(rule: &Rule) -> bool {
    NAMED.iter().any(|(patterns, _)| !patterns(rule).is_empty())
}

/// Returns the name that a pattern nearly matches. For a pattern with wildcards, only the text
/// before the first and after the last is compared, with equally long parts of each name.
fn similar(pattern: &str, names: &[&str]) -> Option<String> {
    let is_wild = |c: char| "*?[]\\".contains(c);
    if !pattern.contains(is_wild) {
        return units::text::nearest(pattern, names.iter().copied()).map(str::to_owned);
    }
    let start: Vec<char> = pattern.chars().take_while(|c| !is_wild(*c)).collect();
    let mut end: Vec<char> = pattern.chars().rev().take_while(|c| !is_wild(*c)).collect();
    end.reverse();
    let first = |name: &str| name.chars().take(start.len()).collect::<String>();
    let last = |name: &str| {
        let length = name.chars().count();
        name.chars().skip(length.saturating_sub(end.len())).collect::<String>()
    };
    let (start, end): (String, String) = (start.iter().collect(), end.iter().collect());
    near_part(&start, names, first).or_else(|| {
        let begun: Vec<&str> = names.iter().copied().filter(|n| n.starts_with(&start)).collect();
        near_part(&end, &begun, last)
    })
}

/// Returns the name with a part that resembles `word`; `None` if a name has exactly that part.
fn near_part(word: &str, names: &[&str], part: impl Fn(&str) -> String) -> Option<String> {
    // Words of one or two characters resemble too many names.
    if word.chars().count() < 3 {
        return None;
    }
    let parts: Vec<(String, &str)> = names.iter().map(|name| (part(name), *name)).collect();
    // A word that matches here may be correct and intended for similar names on other hosts.
    if parts.iter().any(|(part, _)| part == word) {
        return None;
    }
    let near = units::text::nearest(word, parts.iter().map(|(part, _)| part.as_str()))?;
    let found = parts.iter().find(|(part, _)| part == near)?;
    Some(found.1.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_with_a_slip_is_recognised() {
        let names = ["/srv/db", "/home"];
        for (pattern, meant) in [
            ("/srv/bd", Some("/srv/db")),
            ("/svr/*", Some("/srv/db")),
            ("/hoem", Some("/home")),
            ("/srv/[a-c]*", None),
            ("/var/lib/mysql", None),
            ("*", None),
            ("/srv*/bd", Some("/srv/db")),
            ("/*/bdx", None),
            ("*oem", Some("/home")),
            ("/h*oem", Some("/home")),
        ] {
            assert_eq!(similar(pattern, &names).as_deref(), meant, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_is_survived(pattern in "\\PC*", name in "\\PC*") {
            let _ = similar(&pattern, &[name.as_str()]);
        }
    }
}
