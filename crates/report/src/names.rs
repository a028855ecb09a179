//! Names in tables and pages: sanitised and shortened.

use study::CellSettings;

use crate::clean;
use crate::run_report::Named;

/// Maximum length of a name; longer ones are shortened in the middle.
const MAX_NAME_CHARS: usize = 120;
/// Maximum length of a curve's or column's name.
const LONGEST_LABEL: usize = 48;

/// Sanitises and shortens a name from outside.
pub(crate) fn brief(name: &str) -> String {
    shortened(name, MAX_NAME_CHARS)
}

fn shortened(name: &str, longest: usize) -> String {
    let cleaned = clean::plain(name);
    let letters = cleaned.chars().count();
    if letters <= longest {
        return cleaned;
    }
    let kept = longest / 2 - 1;
    let start: String = cleaned.chars().take(kept).collect();
    let end: String = cleaned.chars().skip(letters - kept).collect();
    format!("{start}…{end}")
}

/// Puts a no-break space between each number and its unit.
pub(crate) fn tied(text: &str) -> String {
    [" %", " KiB", " MiB", " ms", " µs", " sectors"]
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")))
}

/// Returns the settings besides read-ahead; empty for a study of read-ahead alone.
pub(crate) fn settings_label(settings: &CellSettings) -> String {
    let extra: Vec<String> = settings.extra.assignments().collect();
    shortened(&extra.join(" "), LONGEST_LABEL)
}

/// Returns distinct names for several runs: the parts in which their targets differ, or the ids.
pub(crate) fn labels(runs: &[Named<'_>]) -> Vec<String> {
    let targets: Vec<Vec<&str>> = runs
        .iter()
        .map(|run| run.report.run.summary.target.split([',', '(', ')']).map(str::trim).collect())
        .collect();
    let common = |part: &str| targets.iter().all(|parts| parts.contains(&part));
    let own = |(parts, run): (&Vec<&str>, &Named<'_>)| {
        if let Some(name) = run.name {
            return shortened(name, LONGEST_LABEL);
        }
        let kept: Vec<&str> =
            parts.iter().copied().filter(|part| !part.is_empty() && !common(part)).collect();
        shortened(&kept.join(", "), LONGEST_LABEL)
    };
    let names: Vec<String> = targets.iter().zip(runs).map(own).collect();
    let alone = |at: usize| {
        !names[at].is_empty() && names.iter().filter(|name| **name == names[at]).count() == 1
    };
    (0..runs.len())
        .map(|at| {
            let run = format!("run {}", runs[at].report.run.summary.id);
            match (alone(at), names[at].is_empty()) {
                (true, _) => names[at].clone(),
                (false, true) => run,
                (false, false) => format!("{} ({run})", names[at]),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_its_ends() {
        let name = format!("/srv/{}/data", "x".repeat(4096));
        let brief = brief(&name);
        assert!(brief.chars().count() <= MAX_NAME_CHARS, "{brief}");
        assert!(brief.starts_with("/srv/x") && brief.ends_with("x/data"), "{brief}");
        assert_eq!(super::brief("/srv/data"), "/srv/data");
    }
}
