//! The outcome of a verb that ran on another system.

use std::fmt;

use crate::command::Output;

/// Exit code of a verb that is not permitted or not supported here (docs/exit-codes.md).
const UNSUPPORTED_CODE: i64 = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerbOutcome {
    Works,
    /// The verb did part of its work, or by other means; this line says so.
    Less(String),
    /// The verb was refused; this line names the missing requirement.
    Refused(String),
    Fails(String),
}

impl VerbOutcome {
    /// Judges the output of a verb. `success` lists the exit codes of a verb that did its work;
    /// `evidence` must then be part of its stdout.
    pub fn judge(output: &Output, success: &[i64], evidence: &str) -> Self {
        let said = |prefixes: &[&str]| {
            let mut lines = output.stderr.lines().map(str::trim);
            lines.find(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)))
        };
        if output.code == UNSUPPORTED_CODE {
            return match said(&["error:"]) {
                Some(line) => Self::Refused(line.to_owned()),
                None => Self::Fails("exit code 6 without an error line".to_owned()),
            };
        }
        if !success.contains(&output.code) {
            let line = said(&["error:"]).unwrap_or_else(|| output.last_line());
            return Self::Fails(format!("exit code {}: {line}", output.code));
        }
        if !output.stdout.contains(evidence) {
            return match said(&["note:", "warning:"]) {
                Some(line) => Self::Less(line.to_owned()),
                None => Self::Fails(format!("printed no {evidence}")),
            };
        }
        said(&["note:"]).map_or(Self::Works, |line| Self::Less(line.to_owned()))
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Less(_) => "less",
            Self::Refused(_) => "refused",
            Self::Fails(_) => "FAILS",
        }
    }

    pub fn line(&self) -> Option<&str> {
        match self {
            Self::Works => None,
            Self::Less(line) | Self::Refused(line) | Self::Fails(line) => Some(line),
        }
    }
}

impl fmt::Display for VerbOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line() {
            Some(line) => write!(f, "{}: {line}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}

/// The lines below a table; cells refer to them by number.
#[derive(Debug, Default)]
pub struct Footnotes {
    lines: Vec<String>,
}

impl Footnotes {
    /// Returns a cell with the word of an outcome (empty: not tried) and the number of its line.
    pub fn cell(&mut self, word: &str, line: Option<&str>) -> String {
        let word = match word {
            "" => return "not tried".to_owned(),
            "FAILS" => "**FAILS**",
            word => word,
        };
        let Some(line) = line else { return word.to_owned() };
        let line = format!("`{}`", line.replace('`', "'"));
        let number = self.lines.iter().position(|known| *known == line).unwrap_or_else(|| {
            self.lines.push(line);
            self.lines.len() - 1
        });
        format!("{word} ({})", number + 1)
    }
}

/// Formats the lines as a numbered list.
impl fmt::Display for Footnotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.lines.iter().enumerate() {
            writeln!(f, "{}. {line}", number + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(code: i64, stdout: &str, stderr: &str) -> Output {
        Output { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }

    fn judge(code: i64, stdout: &str, stderr: &str) -> VerbOutcome {
        VerbOutcome::judge(&output(code, stdout, stderr), &[0, 3], "window")
    }

    #[test]
    fn a_cell_works_only_with_its_evidence() {
        assert_eq!(judge(0, "a window\n", ""), VerbOutcome::Works);
        assert_eq!(judge(3, "a window\n", ""), VerbOutcome::Works);
        assert_eq!(judge(0, "", ""), VerbOutcome::Fails("printed no window".to_owned()));
    }

    #[test]
    fn a_note_means_less() {
        let less = VerbOutcome::Less("note: no probes".to_owned());
        assert_eq!(judge(0, "", "note: no probes\nhint: be root\n"), less);
        assert_eq!(judge(0, "window", "note: no probes\n"), less);
    }

    #[test]
    fn code_6_needs_a_reason_and_others_fail() {
        let refused = VerbOutcome::Refused("error: not permitted".to_owned());
        assert_eq!(judge(6, "", "error: not permitted\n"), refused);
        assert_eq!(judge(6, "", "").word(), "FAILS");
        assert_eq!(judge(1, "window", "error: broken\n").word(), "FAILS");
        assert_eq!(judge(139, "", "").word(), "FAILS");
    }
}
