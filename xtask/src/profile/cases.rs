//! The programs with faults.

use anyhow::{Context, Result};

/// A fault of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCase {
    pub language: Language,
    pub fault: String,
    /// The expected diagnosis, and the one expected on a hard disk.
    rules: (String, String),
    windows: (FaultWindows, FaultWindows),
    /// Memory limits of the program and of its twin, in MiB; `None` for no limit.
    pub memory: Option<(u64, u64)>,
}

/// `read_ahead_kb` for the program and for its twin, and ns that both play each KiB.
pub type FaultWindows = (u64, u64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    C,
    Rust,
    Python,
}

impl Language {
    /// Returns the source file of the programs.
    pub fn source(self) -> &'static str {
        match self {
            Self::C => "fault.c",
            Self::Rust => "fault.rs",
            Self::Python => "fault.py",
        }
    }
}

impl FaultCase {
    /// Returns the cases in `faults.txt`.
    pub fn all() -> Result<Vec<Self>> {
        let lines = include_str!("faults.txt").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self::parse(line).with_context(|| format!("faults.txt: {line}"))).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut columns = line.split('|').map(str::trim);
        let mut column = || columns.next();
        let (language, fault, rules, windows) = (column()?, column()?, column()?, column()?);
        let memory = match column() {
            Some(memory) => {
                let (fault, twin) = memory.split_once(' ')?;
                Some((fault.parse().ok()?, twin.parse().ok()?))
            }
            None => None,
        };
        let language = match language {
            "c" => Language::C,
            "rust" => Language::Rust,
            "python" => Language::Python,
            _ => return None,
        };
        let (rule, rule_on_hdd) = rules.split_once(',').unwrap_or((rules, rules));
        let (window, window_on_hdd) = windows.split_once(',').unwrap_or((windows, windows));
        Some(Self {
            language,
            fault: fault.to_owned(),
            rules: (rule.to_owned(), rule_on_hdd.to_owned()),
            windows: (parse_windows(window)?, parse_windows(window_on_hdd)?),
            memory,
        })
    }

    pub fn rule(&self, disk: &str) -> &str {
        if is_hard_disk(disk) { &self.rules.1 } else { &self.rules.0 }
    }

    pub fn windows(&self, disk: &str) -> FaultWindows {
        if is_hard_disk(disk) { self.windows.1 } else { self.windows.0 }
    }
}

fn is_hard_disk(disk: &str) -> bool {
    disk.starts_with("hdd")
}

fn parse_windows(text: &str) -> Option<FaultWindows> {
    let mut numbers = text.split(' ').map(str::parse);
    let (fault_kib, twin_kib) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((fault_kib, twin_kib, numbers.next().transpose().ok()?.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_case_in_a_program() {
        let cases = FaultCase::all().unwrap();
        assert!(cases.len() >= 20);
        for case in cases {
            let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/profile/tests/programs");
            let code = std::fs::read_to_string(format!("{programs}/{}", case.language.source()));
            assert!(code.unwrap().contains(&case.fault), "{case:?}");
        }
    }
}
