//! docs/kernels.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::cells::RIGHTS;
use crate::outcome::Footnotes;
use crate::verbs::{self, Systems};

const INTRODUCTION: &str = "# Kernels

This page is generated: `cargo run -p xtask -- kernels` boots each kernel in an emulated machine,
runs the verbs with different rights, and writes the results here. Programs in the guest are those
of Debian 12; only the kernel differs.

| rights | meaning |
|---|---|
| root | root, with everything that the kernel offers |
| root, bpf(2) forbidden | root; a seccomp filter refuses `bpf` |
| root, no BTF | `/sys/kernel/btf` is empty, as on a kernel without `CONFIG_DEBUG_INFO_BTF` |
| user | a user without privileges |
| container | root of a user namespace of an ordinary user, with its own mounts and PIDs |
| root, lockdown | root, after `confidentiality` was written to `/sys/kernel/security/lockdown` |

| cell | meaning |
|---|---|
| works | the verb did its work |
| less | the verb did part of its work, and printed the line with this number |
| refused | exit code 6; the line with this number names what is missing |
| **FAILS** | any other result |
";

/// Returns the document, and the number of failed cells.
pub fn format(kernels: &[Value]) -> (String, usize) {
    let mut text = INTRODUCTION.to_owned();
    let mut lines = Footnotes::default();
    let mut failures = 0;
    for kernel in kernels {
        let (release, running) = (word(&kernel["release"]), word(&kernel["kernel"]));
        let _ = write!(text, "\n## {release}: {running}\n\n{}", signals(&kernel["signals"]));
        text.push_str(&builds(&kernel["cells"]));
        text.push_str(&mechanisms(&kernel["mechanisms"], &mut lines));
        let names: Vec<&str> = RIGHTS.iter().map(|rights| rights.name).collect();
        let rule = "---|".repeat(names.len());
        let _ = writeln!(text, "| verb | {} |\n|---|{rule}", names.join(" | "));
        for verb in verbs::tried_in(Systems::Guests) {
            let cells: Vec<String> = RIGHTS
                .iter()
                .map(|rights| {
                    let cell = &kernel["cells"][rights.key][verb.name];
                    failures += usize::from(word(&cell["result"]) == "FAILS");
                    lines.cell(word(&cell["result"]), cell["line"].as_str())
                })
                .collect();
            let _ = writeln!(text, "| {} | {} |", verb.name, cells.join(" | "));
        }
    }
    let _ = write!(text, "\n## Lines\n\n{lines}");
    (text, failures)
}

fn signals(signals: &Value) -> String {
    let named: Vec<String> = signals
        .as_array()
        .into_iter()
        .flatten()
        .map(|signal| match word(&signal["rung"]) {
            "missing" => format!("{} missing", word(&signal["name"])),
            rung => format!("{} by {rung}", word(&signal["name"])),
        })
        .collect();
    match named.as_slice() {
        [] => "Signals of read-ahead for root: none.\n\n".to_owned(),
        named => format!("Signals of read-ahead for root: {}.\n\n", named.join(", ")),
    }
}

/// Returns the commits from which the cells come; a run may test only some cells.
fn builds(cells: &Value) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let rights = cells.as_object().into_iter().flat_map(|rights| rights.values());
    for cell in rights.filter_map(Value::as_object).flat_map(|verbs| verbs.values()) {
        *counts.entry(cell["build"].as_str().unwrap_or("earlier builds")).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(build, count)| format!("{build} ({count})")).collect();
    format!("Builds of foreread, and how many cells each has: {}.\n\n", counts.join(", "))
}

/// Returns which mechanisms suffice alone.
fn mechanisms(mechanisms: &Value, lines: &mut Footnotes) -> String {
    let named: Vec<String> = mechanisms
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let result = if one["works"] == true { "works" } else { "refused" };
            format!("{} {}", word(&one["mechanism"]), lines.cell(result, one["reason"].as_str()))
        })
        .collect();
    match named.as_slice() {
        [] => String::new(),
        named => format!("Each mechanism alone, with the self-test: {}.\n\n", named.join(", ")),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_lines_have_one_number_and_failures_are_counted() {
        let cell = |result: &str, line: &str| json!({ "result": result, "line": line });
        let kernel = json!({
            "release": "Debian 0", "kernel": "0.1", "signals": [],
            "mechanisms": [{ "mechanism": "kprobe", "works": false, "reason": "error: no" }],
            "cells": {
                "root": { "info": { "result": "works", "line": null, "build": "abc" } },
                "user": {
                    "watch": cell("refused", "error: no"),
                    "auto": cell("FAILS", "exit code 1: why"),
                },
                "container": { "watch": cell("refused", "error: no") },
            },
        });
        let (text, failures) = format(&[kernel]);
        assert_eq!(failures, 1);
        assert!(text.contains("| info | works | not tried |"), "{text}");
        assert_eq!(text.matches("refused (1)").count(), 3, "{text}");
        assert!(text.contains("**FAILS** (2)"), "{text}");
        assert!(text.contains("each has: abc (1), earlier builds (3).\n"), "{text}");
        assert!(text.contains("self-test: kprobe refused (1).\n"), "{text}");
        assert!(text.ends_with("1. `error: no`\n2. `exit code 1: why`\n"), "{text}");
    }
}
