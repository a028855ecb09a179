//! Parses the output of `cargo test`.

use std::collections::BTreeMap;

/// The test results of one run of `cargo test`.
#[derive(Debug, Default)]
pub struct Transcript {
    ok: usize,
    failures: Vec<String>,
    ignored: usize,
    skips: BTreeMap<(String, String), String>,
    binary: String,
}

impl Transcript {
    /// Processes one line.
    ///
    /// The summary of each binary has the counts. A test that cannot run here prints `SKIP NAME:
    /// reason`; libtest counts it as passed. Several binaries may have the same test name.
    pub fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(binary) = line.strip_prefix("Running ").or(line.strip_prefix("Doc-tests ")) {
            self.binary = binary.to_owned();
        } else if let Some(summary) = line.strip_prefix("test result: ") {
            self.ok += count(summary, "passed");
            self.ignored += count(summary, "ignored");
        } else if let Some((name, "FAILED")) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            self.failures.push(name.to_owned());
        } else if let Some(at) = line.find("SKIP ")
            && let Some((name, reason)) = line[at + "SKIP ".len()..].split_once(": ")
        {
            self.skips.insert((self.binary.clone(), name.to_owned()), reason.to_owned());
        }
    }

    /// Returns the number of tests that ran and passed.
    pub fn passed(&self) -> usize {
        self.ok.saturating_sub(self.skips.len())
    }

    pub fn failures(&self) -> &[String] {
        &self.failures
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
        assert_eq!(transcript.failures(), ["host_c"]);
        assert_eq!(transcript.skips().collect::<Vec<_>>(), [("host_b", "not root")]);
        assert_eq!(transcript.ignored(), 1);
    }
}
