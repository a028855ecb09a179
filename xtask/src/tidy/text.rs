//! Checks the text of a file.

use std::path::Path;

/// Maximum number of columns of a line of code.
const LINE_MAX: usize = 100;
/// Maximum number of lines of a Rust file; STYLE.md recommends fewer.
const FILE_LINES_MAX: usize = 600;
/// Maximum size of any file, in bytes. Recorded data for tests is the largest.
const FILE_BYTES_MAX: usize = 512 << 10;

/// Words that mark unfinished work; split so that this file does not contain them.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("d", "bg!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Directories of machines on which the code was written.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

const TEXT_SUFFIXES: &[&str] = &["rs", "md", "toml", "json", "yml", "sh", "c", "h", "css", "js"];

/// Adds complaints about this file. `name` is relative to the repository.
pub fn check(name: &Path, bytes: &[u8], complaints: &mut Vec<String>) {
    let shown = name.display();
    if bytes.len() > FILE_BYTES_MAX {
        complaints.push(format!("{shown}: {} bytes, at most {FILE_BYTES_MAX}", bytes.len()));
    }
    // Recorded data is kept as it was recorded.
    if name.components().any(|part| part.as_os_str() == "data") {
        return;
    }
    let suffix = name.extension().and_then(|suffix| suffix.to_str()).unwrap_or("");
    let script = bytes.starts_with(b"#!") || name.ends_with("Makefile");
    if !script && !TEXT_SUFFIXES.contains(&suffix) {
        return;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        complaints.push(format!("{shown}: not UTF-8"));
        return;
    };
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{shown}: no line end at the end"));
    }
    let code = suffix == "rs";
    let lines = text.lines().count();
    if code && lines > FILE_LINES_MAX {
        complaints.push(format!("{shown}: {lines} lines, at most {FILE_LINES_MAX}"));
    }
    for (index, line) in text.lines().enumerate() {
        for problem in line_problems(line, code || script, suffix) {
            complaints.push(format!("{shown}:{}: {problem}", index + 1));
        }
    }
}

fn line_problems(line: &str, code: bool, suffix: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let columns = line.chars().count();
    if code && columns > LINE_MAX {
        problems.push(format!("{columns} columns, at most {LINE_MAX}"));
    }
    if line.trim_end() != line && suffix != "md" {
        problems.push("blanks at the end".to_owned());
    }
    if line.chars().any(|c| c.is_control() && c != '\t') {
        problems.push("a control character".to_owned());
    }
    problems.extend(
        UNFINISHED.iter().filter(|word| line.contains(**word)).map(|word| format!("{word} left")),
    );
    problems.extend(
        MACHINE_PATHS
            .iter()
            .filter(|path| begins_a_path(line, path))
            .map(|path| format!("{path} is a folder of some machine")),
    );
    problems
}

/// Returns whether `path` occurs in the line at the start of a path, not in the middle of one.
fn begins_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(name: &str, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        check(Path::new(name), text.as_bytes(), &mut complaints);
        complaints
    }

    #[test]
    fn clean_code_passes() {
        assert_eq!(problems_of("a.rs", "fn main() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn each_rule_bites() {
        for (name, text) in [
            ("a.rs", format!("// {}\n", "x".repeat(LINE_MAX))),
            ("a.rs", "x\n".repeat(FILE_LINES_MAX + 1)),
            ("a.rs", format!("{}\n", UNFINISHED[0])),
            ("a.md", format!("see {}here\n", MACHINE_PATHS[0])),
            ("a.rs", "fn a() {} \n".to_owned()),
            ("a.toml", "a = 1".to_owned()),
            ("a.md", "bell \u{7}\n".to_owned()),
            ("a.csv", "x".repeat(FILE_BYTES_MAX + 1)),
        ] {
            assert_eq!(problems_of(name, &text).len(), 1, "{name}: {:.40}", text);
        }
    }

    #[test]
    fn the_middle_of_a_path_is_no_folder_of_a_machine() {
        let line = format!("tests/hosts{}x, ${{HOME}}{}y\n", MACHINE_PATHS[0], MACHINE_PATHS[1]);
        assert_eq!(problems_of("a.md", &line), Vec::<String>::new());
    }
}
