//! Limits the amount of code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::source::SourceFile;

/// Maximum number of non-test lines of Rust by package, including comments and blank lines. A
/// change that adds a capability raises its row; one that removes code lowers it.
const LINES_MAX: &[(&str, usize)] = &[
    ("crates/actuate", 2534),
    ("crates/batch", 1735),
    ("crates/bench", 5585),
    ("crates/control", 10794),
    ("crates/daemon", 4936),
    ("crates/doctor", 4140),
    ("crates/experiment", 2705),
    ("crates/fleet", 1725),
    ("crates/foreread", 12075),
    ("crates/host", 5505),
    ("crates/model", 7480),
    ("crates/observe", 3171),
    ("crates/pg", 2775),
    ("crates/policy", 6341),
    ("crates/profile", 8818),
    ("crates/report", 8285),
    ("crates/reproduce", 1700),
    ("crates/sim", 5396),
    ("crates/stats", 1180),
    ("crates/study", 8495),
    ("crates/sys", 2137),
    ("crates/testkit", 798),
    ("crates/trace", 6215),
    ("crates/tunables", 5766),
    ("crates/units", 1090),
    ("crates/vdisk", 3780),
    ("crates/workload", 4335),
    ("python", 625),
    ("xtask", 8478),
];

/// Returns a complaint about each package that exceeds its limit.
pub fn complaints(files: &[SourceFile]) -> Vec<String> {
    let allowed: BTreeMap<&str, usize> = LINES_MAX.iter().copied().collect();
    let grown = lines(files).into_iter().filter_map(|(package, lines)| {
        let most = allowed.get(package.to_str()?).copied().unwrap_or(0);
        let name = package.display();
        (lines > most)
            .then(|| format!("{name}: {lines} lines of Rust that are not tests, at most {most}"))
    });
    grown.collect()
}

/// Returns the number of non-test lines of Rust by package.
pub fn lines(files: &[SourceFile]) -> BTreeMap<PathBuf, usize> {
    let mut lines = BTreeMap::new();
    for file in files {
        *lines.entry(file.package.clone()).or_default() += file.lines;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_row_may_have_no_lines() {
        let file = |package: &str, lines| SourceFile {
            path: PathBuf::new(),
            package: package.into(),
            module: None,
            items: Vec::new(),
            lines,
        };
        let (units, most) = LINES_MAX.iter().find(|row| row.0 == "crates/units").expect("a row");
        assert!(complaints(&[file(units, most - 1), file(units, 1)]).is_empty());
        assert_eq!(complaints(&[file(units, *most), file(units, 1)]).len(), 1);
        assert_eq!(complaints(&[file("crates/new", 1)]).len(), 1);
    }
}
