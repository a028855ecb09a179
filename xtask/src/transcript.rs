//! Parses the output of `cargo test`.

use std::collections::{BTreeMap, VecDeque};

/// Lines of a failed test's output that are repeated at the end: the last ones, as a panic is
/// printed after all other output.
const MAX_OUTPUT_LINES: usize = 20;

/// The test results of one run of `cargo test`.
#[derive(Debug, Default)]
pub struct Transcript {
    ok: usize,
    /// Failed tests, each with its binary, and the last lines of their output.
    failures: Vec<(String, String)>,
    outputs: BTreeMap<(String, String), VecDeque<String>>,
    ignored: usize,
    skips: BTreeMap<(String, String), String>,
    binary: String,
    /// Whether the outputs of failed tests follow.
    in_failures: bool,
    /// The failed test whose output follows, and whether a backtrace does.
    section: Option<(String, String)>,
    in_backtrace: bool,
}

impl Transcript {
    /// Processes one line.
    ///
    /// The summary of each binary has the counts. A test that cannot run here prints `SKIP NAME:
    /// reason`; libtest counts it as passed. Several binaries may have the same test name.
    pub fn line(&mut self, line: &str) {
        self.output(line);
        let line = line.trim();
        if let Some(binary) = line.strip_prefix("Running ").or(line.strip_prefix("Doc-tests ")) {
            (self.binary, self.in_failures) = (binary.to_owned(), false);
        } else if let Some(summary) = line.strip_prefix("test result: ") {
            self.ok += count(summary, "passed");
            self.ignored += count(summary, "ignored");
        } else if let Some((name, "FAILED")) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            self.failures.push((self.binary.clone(), name.to_owned()));
        } else if let Some(at) = line.find("SKIP ")
            && let Some((name, reason)) = line[at + "SKIP ".len()..].split_once(": ")
        {
            self.skips.insert((self.binary.clone(), name.to_owned()), reason.to_owned());
        }
    }

    /// Collects the output of failed tests, which follows the list of all results.
    fn output(&mut self, line: &str) {
        if let Some(name) =
            line.strip_prefix("---- ").and_then(|it| it.strip_suffix(" stdout ----"))
        {
            let test = (self.binary.clone(), name.to_owned());
            // Output of its child processes may have split the line of its result.
            if self.in_failures && !self.failures.contains(&test) {
                self.failures.push(test.clone());
            }
            self.section = Some(test).filter(|test| self.failures.contains(test));
            self.in_backtrace = false;
        } else if matches!(line, "successes:" | "failures:") {
            self.section = None;
            self.in_failures = line == "failures:";
        } else if let Some(test) = &self.section {
            self.in_backtrace =
                line == "stack backtrace:" || (self.in_backtrace && line.starts_with(' '));
            if !self.in_backtrace && !line.trim().is_empty() {
                let output = self.outputs.entry(test.clone()).or_default();
                if output.len() == MAX_OUTPUT_LINES {
                    output.pop_front();
                }
                output.push_back(line.to_owned());
            }
        }
    }

    /// Returns the number of tests that ran and passed.
    pub fn passed(&self) -> usize {
        self.ok.saturating_sub(self.skips.len())
    }

    /// Returns the failed tests, each with the last lines that it printed, without backtraces.
    pub fn failures(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.failures.iter().map(|test| {
            let output = self.outputs.get(test).into_iter().flatten();
            (test.1.as_str(), output.map(String::as_str).collect())
        })
    }

    /// Returns the tests that could not run here, with the reason.
    pub fn skips(&self) -> impl Iterator<Item = (&str, &str)> {
        self.skips.iter().map(|((_, name), reason)| (name.as_str(), reason.as_str()))
    }

    /// Returns the number of tests marked `#[ignore]`.
    pub fn ignored(&self) -> usize {
        self.ignored
    }
}

/// Returns the number before `word` in `ok. 2 passed; 1 failed; …`.
fn count(summary: &str, word: &str) -> usize {
    summary
        .split(['.', ';'])
        .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_says_skip_did_not_pass() {
        let mut transcript = Transcript::default();
        let text = "     Running tests/host.rs (target/debug/deps/host-1)\n\
                    test host_a ... ok\n\
                    test host_b ... ok\n\
                    test host_c ... FAILED\n\
                    test host_d ... ignored\n\
                    ---- host_b stdout ----\n\
                    SKIP host_b: not root\n\
                    test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 filtered out\n\
                    Running unittests src/lib.rs (target/debug/deps/x-2)\n\
                    test host_b ... ok\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored; 0 filtered out\n";
        text.lines().for_each(|line| transcript.line(line));
        assert_eq!(transcript.passed(), 2, "host_a, and host_b of another binary");
        let failed: Vec<_> = transcript.failures().collect();
        assert_eq!(failed, [("host_c", Vec::new())]);
        assert_eq!(transcript.skips().collect::<Vec<_>>(), [("host_b", "not root")]);
        assert_eq!(transcript.ignored(), 1);
    }

    #[test]
    fn a_result_that_other_output_splits_is_found() {
        let mut transcript = Transcript::default();
        let text = "test host_b ... error: busy\n\
                    FAILED\n\
                    successes:\n\
                    ---- host_a stdout ----\n\
                    failures:\n\
                    ---- host_b stdout ----\n\
                    panicked\n";
        text.lines().for_each(|line| transcript.line(line));
        assert_eq!(transcript.failures().collect::<Vec<_>>(), [("host_b", vec!["panicked"])]);
    }

    #[test]
    fn the_output_of_a_failed_test_is_kept() {
        let mut transcript = Transcript::default();
        let text = "test host_b ... ok\n\
                    test host_c ... FAILED\n\
                    successes:\n\
                    ---- host_b stdout ----\n\
                    fine\n\
                    failures:\n\
                    ---- host_c stdout ----\n\
                    FOREREAD_SEED=7\n\
                    \n\
                    12: one of these left [\"loop9\"]\n\
                    stack backtrace:\n   0: core::panic\n             at lib.rs:1\n\
                    failures:\n    host_c\n";
        text.lines().for_each(|line| transcript.line(line));
        let failed: Vec<_> = transcript.failures().collect();
        assert_eq!(
            failed,
            [("host_c", vec!["FOREREAD_SEED=7", "12: one of these left [\"loop9\"]"])]
        );
    }
}
