//! The programs with faults.

use anyhow::{Context, Result};

/// A fault of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCase {
    pub language: Language,
    pub fault: String,
    /// The diagnosis that is expected, and the one on a hard disk.
    rules: (String, String),
    /// `read_ahead_kb` for the program and for its twin.
    pub windows: (u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    C,
    Rust,
    Python,
}

impl Language {
    /// The file with the programs.
    pub fn source(self) -> &'static str {
        match self {
            Self::C => "fault.c",
            Self::Rust => "fault.rs",
            Self::Python => "fault.py",
        }
    }
}

impl FaultCase {
    /// Those of `faults.txt`.
    pub fn all() -> Result<Vec<Self>> {
        let lines = include_str!("faults.txt").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self::parse(line).with_context(|| format!("faults.txt: {line}"))).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let [language, fault, rules, windows] =
            line.split('|').map(str::trim).collect::<Vec<_>>().try_into().ok()?;
        let language = match language {
            "c" => Language::C,
            "rust" => Language::Rust,
            "python" => Language::Python,
            _ => return None,
        };
        let (rule, on_hard_disk) = rules.split_once(',').unwrap_or((rules, rules));
        let (fault_kib, twin_kib) = windows.split_once(' ')?;
        Some(Self {
            language,
            fault: fault.to_owned(),
            rules: (rule.to_owned(), on_hard_disk.to_owned()),
            windows: (fault_kib.parse().ok()?, twin_kib.parse().ok()?),
        })
    }

    pub fn rule(&self, disk: &str) -> &str {
        if disk.starts_with("hdd") { &self.rules.1 } else { &self.rules.0 }
    }
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
