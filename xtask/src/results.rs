//! Measured tables for the book: runs the commands of a table and writes their output to
//! docs/results/NAME.md with the commit, the machine and the command.
//!
//! The title and the explanation of a file are written by hand and kept. Two parts are generated:
//! the table between the marks of [`HEAD`], and everything after [`OUTPUT`].

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::output;

/// Marks around the table of commit, date, machine and command.
const HEAD: (&str, &str) = ("<!-- head: generated -->", "<!-- end of head -->");
const OUTPUT: &str = "<!-- output: generated -->";

/// The format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Tables in Markdown, copied unchanged.
    Markdown,
    /// Text, shown in a fixed-width block.
    Text,
}

/// One generated file: its name, its format, and the commands whose output it contains. `cargo` is
/// scripts/cargo, `xtask` this program, `foreread` the release build or the program in `FOREREAD`.
type Table = (&'static str, Form, &'static [&'static str]);

const TABLES: &[Table] = &[
    (
        "matrix",
        Form::Markdown,
        &["cargo run --quiet --release -p foreread-control --example matrix"],
    ),
    ("advice", Form::Markdown, &["xtask advice"]),
    ("coverage", Form::Markdown, &["xtask coverage"]),
    ("tune-vs-grid", Form::Text, &["xtask tune-vs-grid"]),
    ("study", Form::Markdown, &["xtask study all target/study"]),
    ("scale", Form::Markdown, &["xtask scale"]),
    ("packages", Form::Markdown, &["xtask packages"]),
    ("real-programs", Form::Markdown, &["xtask real"]),
    ("profile", Form::Markdown, &["xtask profile"]),
    ("reproduce", Form::Markdown, &["foreread reproduce all --markdown"]),
    (
        "arrays",
        Form::Markdown,
        &[
            "foreread sweep virtual:raid10-2008,fs=xfs --workload seq-8,seq-1 --repeats 3 \
             --duration 1s --vary read_ahead=4K,32K,128K,256K,512K,1M,2M,4M,8M,16M,32M --markdown",
            "foreread sweep virtual:hdd-2008,fs=xfs --workload seq-1,seq-8 --repeats 3 \
             --vary read_ahead=4K,32K,128K,1M,8M --markdown",
        ],
    ),
    (
        "benchmarks",
        Form::Text,
        &[
            "cargo bench --quiet -p foreread-bench",
            "cargo bench --quiet -p foreread-sim",
            "cargo bench --quiet -p foreread-observe",
            "cargo bench --quiet -p foreread --bench report",
            "cargo bench --quiet -p foreread --bench auto",
        ],
    ),
];

/// Writes the named files; returns whether every command succeeded. Files are written even if a
/// command reports that a requirement is not met.
pub fn run(root: &Path, names: &[&str]) -> Result<bool> {
    if names.is_empty() {
        bail!("usage: cargo run -p xtask -- results NAME…; the names: {}", known().join(", "));
    }
    let mut good = true;
    for name in names {
        let Some((_, form, lines)) = TABLES.iter().find(|(known, ..)| known == name) else {
            bail!("{name} is none of {}", known().join(", "));
        };
        let path = root.join("docs/results").join(format!("{name}.md"));
        let old = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut output = String::new();
        for line in *lines {
            let (printed, success) = execute(root, line)?;
            good &= success;
            let printed = without_libtest(&printed);
            match form {
                // A section may have any level; here it is directly below the title.
                Form::Markdown => output += &format!("\n{printed}\n").replace("\n### ", "\n## "),
                Form::Text => write!(output, "\n```text\n$ {line}\n{printed}\n```\n")?,
            }
        }
        let new = replaced(&old, &head(root, name)?, &output)
            .with_context(|| format!("{}: a mark is missing", path.display()))?;
        fs::write(&path, new).with_context(|| path.display().to_string())?;
    }
    Ok(good)
}

fn known() -> Vec<&'static str> {
    TABLES.iter().map(|(name, ..)| *name).collect()
}

/// Returns the stdout of a command line, and whether it succeeded.
fn execute(root: &Path, line: &str) -> Result<(String, bool)> {
    let mut words = line.split_whitespace();
    let program = match words.next().unwrap_or_default() {
        "cargo" => root.join("scripts/cargo"),
        "xtask" => std::env::current_exe().context("finding this program")?,
        _ => match std::env::var_os("FOREREAD") {
            Some(program) => program.into(),
            None => root.join("target/release/foreread"),
        },
    };
    let output = Command::new(&program)
        .current_dir(root)
        .args(words)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}

/// Returns the lines that a table's test printed, without those of the test harness.
fn without_libtest(printed: &str) -> String {
    let own = |line: &&str| {
        !(line.starts_with("running ") && line.contains(" test")
            || line.starts_with("test result:")
            || *line == ".")
    };
    printed.lines().filter(own).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Returns the provenance of the figures.
fn head(root: &Path, name: &str) -> Result<String> {
    let said = |program: &str, arguments: &[&str]| {
        output(Command::new(program).current_dir(root).args(arguments))
    };
    let commit = said("git", &["rev-parse", "--short", "HEAD"])?;
    let changed = said("git", &["status", "--porcelain", "--", ".", ":!docs"])?;
    let changed = if changed.is_empty() { "" } else { ", with uncommitted changes" };
    let date = said("date", &["-u", "+%Y-%m-%d"])?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, model)| model.trim());
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(format!(
        "| | |\n|---|---|\n\
         | command | `cargo run -p xtask -- results {name}` |\n\
         | commit | {commit}{changed} |\n\
         | date | {date} |\n\
         | machine | {model}, {processors} processors, Linux {} |\n",
        kernel.trim()
    ))
}

/// Returns the file with both generated parts replaced; `None` if a mark is missing.
fn replaced(old: &str, head: &str, output: &str) -> Option<String> {
    let (title, rest) = old.split_once(HEAD.0)?;
    let (_, rest) = rest.split_once(HEAD.1)?;
    let (explanation, _) = rest.split_once(OUTPUT)?;
    Some(format!("{title}{}\n\n{head}\n{}{explanation}{OUTPUT}\n{output}", HEAD.0, HEAD.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explanation_stays_and_the_rest_is_replaced() {
        let old = "# T\n\n<!-- head: generated -->\nold\n<!-- end of head -->\n\nWhy.\n\n\
                   <!-- output: generated -->\nold\n";
        let new = replaced(old, "| new |\n", "\nfigures\n").unwrap();
        assert_eq!(
            new,
            "# T\n\n<!-- head: generated -->\n\n| new |\n\n<!-- end of head -->\n\nWhy.\n\n\
             <!-- output: generated -->\n\nfigures\n"
        );
        assert_eq!(replaced(&new, "| new |\n", "\nfigures\n").unwrap(), new);
        assert!(replaced("# no marks\n", "", "").is_none());
    }

    #[test]
    fn every_table_has_its_file() {
        let root = crate::repository().unwrap();
        for (name, ..) in TABLES {
            let text = fs::read_to_string(root.join(format!("docs/results/{name}.md")));
            let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(replaced(&text, "", "").is_some(), "{name}");
        }
    }

    #[test]
    fn lines_of_the_test_harness_are_left_out() {
        let printed = "\nrunning 1 test\n| a |\n\n| b |\n.\ntest result: ok. 1 passed; 0 failed\n";
        assert_eq!(without_libtest(printed), "| a |\n\n| b |");
    }
}
