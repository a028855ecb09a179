//! Shell commands that set read-ahead or another kernel file: `blockdev --setra`, `echo N >
//! …/read_ahead_kb`, `lvchange --readahead`, `sysctl -w`. This is not a complete shell: it omits
//! unsupported constructs or marks them as uncertain.

mod split;

use std::collections::BTreeMap;
use std::path::Path;

use units::Kib;

use super::places::{READ_AHEAD, comment_above, text_about};
use super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted, is_foreread};
use crate::glob;
use split::split;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub goal: Goal,
    pub wanted: Wanted,
    /// The value as written in the script; `None` if there is none.
    pub word: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The sysfs file with this name or pattern.
    File(String),
    /// The device with this name or pattern.
    Device(String),
}

/// A write to a kernel file, with the configuration file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundWrite {
    pub owner: OwnerKind,
    pub place: FileLocation,
    pub text: String,
    pub comment: Option<String>,
    pub write: Write,
    /// `Perhaps` if the file may not run at all.
    pub certainty: Certainty,
    pub by_foreread: bool,
}

impl FoundWrite {
    /// Returns the claim on a target, if the write applies to it.
    pub fn claim(&self, target: &Target) -> Option<Claim> {
        let certainty = self.write.goal.covers(target)?.min(self.certainty);
        Some(Claim {
            owner: self.owner,
            wanted: self.write.wanted,
            place: self.place.clone(),
            text: self.text.clone(),
            comment: self.comment.clone(),
            certainty,
            by_foreread: self.by_foreread,
        })
    }
}

impl Goal {
    /// Returns how certainly the goal covers the target; `None` if it does not.
    pub fn covers(&self, target: &Target) -> Option<Certainty> {
        match self {
            Self::File(pattern) => covers_file(pattern, target),
            Self::Device(pattern) => covers_device(pattern, target),
        }
    }
}

fn covers_file(pattern: &str, target: &Target) -> Option<Certainty> {
    let bdi = target.bdi.as_str();
    let mut files = vec![
        format!("/sys/class/bdi/{bdi}/read_ahead_kb"),
        format!("/sys/devices/virtual/bdi/{bdi}/read_ahead_kb"),
    ];
    if let Some(name) = &target.name {
        for folder in ["/sys/block", "/sys/class/block", "/sys/devices/virtual/block"] {
            files.push(format!("{folder}/{name}/queue/read_ahead_kb"));
            files.push(format!("{folder}/{name}/bdi/read_ahead_kb"));
        }
    }
    if files.iter().any(|file| glob::path_matches(pattern, file)) {
        return Some(Certainty::Sure);
    }
    // The path contains a variable with an unknown value, but it concerns read-ahead.
    let open = pattern.contains('$') && pattern.contains("read_ahead_kb");
    let elsewhere = target.name.as_ref().is_some_and(|name| {
        pattern.starts_with("/sys/devices/")
            && pattern.ends_with(&format!("/{name}/queue/read_ahead_kb"))
    });
    (open || elsewhere).then_some(if elsewhere { Certainty::Sure } else { Certainty::Perhaps })
}

fn covers_device(pattern: &str, target: &Target) -> Option<Certainty> {
    let name = target.name.as_ref()?;
    let mut nodes = vec![format!("/dev/{name}")];
    if let Some((label, _)) = &target.dm {
        nodes.push(format!("/dev/mapper/{label}"));
        if let Some((group, volume)) = lvm_names(label) {
            nodes.push(format!("/dev/{group}/{volume}"));
            nodes.push(format!("{group}/{volume}"));
        }
    }
    if nodes.iter().any(|node| glob::path_matches(pattern, node)) {
        return Some(Certainty::Sure);
    }
    let by_link = pattern.starts_with("/dev/disk/") || pattern.contains('$');
    by_link.then_some(Certainty::Perhaps)
}

/// Splits a device mapper name into volume group and volume. LVM doubles dashes in both.
pub(super) fn lvm_names(label: &str) -> Option<(String, String)> {
    let bytes = label.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'-' {
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'-') {
            at += 2;
        } else {
            let undouble = |text: &str| text.replace("--", "-");
            return Some((undouble(&label[..at]), undouble(&label[at + 1..])));
        }
    }
    None
}

/// Returns all writes of a file to kernel files with this name.
pub(super) fn scan(
    owner: OwnerKind,
    file: &Path,
    text: &str,
    certainty: Certainty,
    sought: &str,
) -> Vec<FoundWrite> {
    let by_foreread = is_foreread(file, text);
    let lines: Vec<&str> = text.lines().collect();
    commands_on(text, sought)
        .into_iter()
        .map(|(line, write)| FoundWrite {
            owner,
            place: FileLocation::new(file, line + 1),
            text: lines.get(line).map_or("", |line| line.trim()).to_owned(),
            comment: comment_above(&lines, line),
            write,
            certainty,
            by_foreread,
        })
        .collect()
}

/// Returns the commands of a script that set read-ahead, each with its line from 0.
pub fn commands(text: &str) -> Vec<(usize, Write)> {
    commands_on(text, READ_AHEAD)
}

pub fn commands_on(text: &str, sought: &str) -> Vec<(usize, Write)> {
    let mut script = Script { sought: sought.to_owned(), ..Script::default() };
    for (line, words) in split(text) {
        script.run(line, &words, 0);
    }
    script.found
}

/// State of the interpreter while it reads a script.
#[derive(Default)]
struct Script {
    /// The name of the kernel file to look for.
    sought: String,
    variables: BTreeMap<String, Vec<String>>,
    echoed: Option<String>,
    found: Vec<(usize, Write)>,
}

/// Maximum depth of nested shells; deeper ones are ignored.
const MAX_SHELL_DEPTH: usize = 4;
/// Maximum number of values of one variable.
const MOST_VALUES: usize = 64;

impl Script {
    fn run(&mut self, line: usize, words: &[String], depth: usize) {
        let keyword = |word: &&String| matches!(word.as_str(), "do" | "then" | "else" | "{" | "(");
        let skip = words.iter().take_while(keyword).count();
        let mut words = &words[skip..];
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            let values = self.expand(value);
            self.variables.insert(name.to_owned(), values);
            words = &words[1..];
        }
        let Some(first) = words.first() else { return };
        match base_name(first) {
            "for" if words.get(2).is_some_and(|word| word == "in") => {
                let values = words[3..].iter().flat_map(|word| self.expand(word));
                let values = values.take(MOST_VALUES).collect();
                self.variables.insert(words[1].clone(), values);
            }
            "sh" | "bash" | "dash" | "ash" if depth < MAX_SHELL_DEPTH => {
                let script = words.iter().skip_while(|word| !is_c_option(word)).nth(1);
                for (_, inner) in script.map(|text| split(text)).unwrap_or_default() {
                    self.run(line, &inner, depth + 1);
                }
            }
            "env" | "exec" | "sudo" | "nohup" | "nice" | "ionice" if depth < MAX_SHELL_DEPTH => {
                self.run(line, &words[1..], depth + 1);
            }
            "echo" | "printf" => self.echo(line, words),
            "tee" => self.tee(line, words),
            "sysctl" => self.sysctl(line, words),
            "blockdev" if self.sought == READ_AHEAD => self.blockdev(line, words),
            "lvchange" if self.sought == READ_AHEAD => self.lvchange(line, words),
            _ => {}
        }
    }

    fn echo(&mut self, line: usize, words: &[String]) {
        let value = words[1..].iter().find(|word| !word.starts_with('-')).cloned();
        let goal = words.iter().skip_while(|word| !matches!(word.as_str(), ">" | ">>")).nth(1);
        match goal {
            Some(goal) => self.wrote(line, goal, value.as_deref()),
            None => self.echoed = value,
        }
    }

    fn tee(&mut self, line: usize, words: &[String]) {
        let value = self.echoed.take();
        for goal in words[1..].iter().filter(|word| !word.starts_with('-')) {
            if goal == ">" || goal == ">>" {
                break;
            }
            self.wrote(line, goal, value.as_deref());
        }
    }

    fn wrote(&mut self, line: usize, goal: &str, value: Option<&str>) {
        let wanted =
            self.number(value).map_or(Wanted::Unknown, |kib| Wanted::Exactly(Kib::new(kib)));
        let word = value.and_then(|value| self.expand(value).into_iter().next());
        for goal in self.expand(goal) {
            if goal.contains(&self.sought) {
                let word = word.clone();
                self.found.push((line, Write { goal: Goal::File(goal), wanted, word }));
            }
        }
    }

    fn sysctl(&mut self, line: usize, words: &[String]) {
        for word in &words[1..] {
            if let Some((name, value)) = word.split_once('=') {
                let file = format!("/proc/sys/{}", name.replace('.', "/"));
                self.wrote(line, &file, Some(value));
            }
        }
    }

    fn blockdev(&mut self, line: usize, words: &[String]) {
        let Some(at) = words.iter().position(|word| word.starts_with("--setra")) else { return };
        let (value, rest) = match words[at].strip_prefix("--setra=") {
            Some(value) => (Some(value.to_owned()), at + 1),
            None => (words.get(at + 1).cloned(), at + 2),
        };
        let wanted = self.number(value.as_deref()).map_or(Wanted::Unknown, Wanted::sectors);
        for word in words.get(rest..).unwrap_or_default() {
            if word.starts_with('-') || word == ">" {
                continue;
            }
            for device in self.expand(word) {
                let write = Write { goal: Goal::Device(device), wanted, word: value.clone() };
                self.found.push((line, write));
            }
        }
    }

    fn lvchange(&mut self, line: usize, words: &[String]) {
        let option = |word: &&String| matches!(word.as_str(), "-r" | "--readahead");
        let Some(at) = words.iter().position(|word| option(&word)) else { return };
        let value = words.get(at + 1).cloned();
        let wanted = self.number(value.as_deref()).map_or(Wanted::Unknown, Wanted::sectors);
        for word in words.get(at + 2..).unwrap_or_default() {
            if !word.starts_with('-') {
                for device in self.expand(word) {
                    let write = Write { goal: Goal::Device(device), wanted, word: value.clone() };
                    self.found.push((line, write));
                }
            }
        }
    }

    fn number(&self, word: Option<&str>) -> Option<u64> {
        let values = self.expand(word?);
        values.first()?.trim().parse().ok()
    }

    /// Substitutes a known variable in a word and returns one word for each of its values.
    fn expand(&self, word: &str) -> Vec<String> {
        for (name, values) in &self.variables {
            for form in [format!("${{{name}}}"), format!("${name}")] {
                if word.contains(&form) && !values.is_empty() {
                    return values.iter().map(|value| word.replace(&form, value)).collect();
                }
            }
        }
        vec![word.to_owned()]
    }
}

fn is_c_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let sound = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    (sound && begins).then_some((name, value))
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word).trim_start_matches(['-', '@', '+', '!'])
}

/// Reads the writes of a script if it may concern kernel files with this name.
pub(super) fn scan_file(
    root: &crate::Root,
    owner: OwnerKind,
    file: &Path,
    certainty: Certainty,
    sought: &str,
) -> Vec<FoundWrite> {
    text_about(root, file, sought)
        .map_or_else(Vec::new, |text| scan(owner, file, &text, certainty, sought))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<(usize, String, Option<u64>)> {
        let show = |(line, write): (usize, Write)| {
            let goal = match write.goal {
                Goal::File(path) | Goal::Device(path) => path,
            };
            (line, goal, write.wanted.kib().map(Kib::get))
        };
        commands(text).into_iter().map(show).collect()
    }

    #[test]
    fn sectors_and_kib_are_told_apart() {
        let script = "\
#!/bin/sh
blockdev --setra 8192 /dev/sda   # four MiB
echo 8192 > /sys/block/sda/queue/read_ahead_kb
/sbin/blockdev --setra=256 /dev/md0 && lvchange -r 128 vg/home
";
        assert_eq!(
            found(script),
            [
                (1, "/dev/sda".to_owned(), Some(4096)),
                (2, "/sys/block/sda/queue/read_ahead_kb".to_owned(), Some(8192)),
                (3, "/dev/md0".to_owned(), Some(128)),
                (3, "vg/home".to_owned(), Some(64)),
            ]
        );
    }

    #[test]
    fn quotes_loops_variables_and_pipes_are_followed() {
        let script = "RA=4096\nfor d in sda sdb; do echo $RA > /sys/block/$d/queue/read_ahead_kb; \
                      done\nsh -c 'echo 64 > /sys/block/sdc/queue/read_ahead_kb'\n\
                      echo 32 | tee /sys/block/sdd/queue/read_ahead_kb > /dev/null\n";
        let all = found(script);
        let numbers: Vec<Option<u64>> = all.iter().map(|(_, _, kib)| *kib).collect();
        assert_eq!(numbers, [Some(4096), Some(4096), Some(64), Some(32)]);
        assert!(all[1].1.contains("sdb") && all[3].1.contains("sdd"));
    }

    #[test]
    fn what_is_commented_out_or_about_something_else_is_left() {
        assert_eq!(found("# blockdev --setra 1 /dev/sda\necho 1 > /tmp/x\n"), []);
    }

    #[test]
    fn names_of_volumes_are_taken_apart() {
        let pair = |group: &str, volume: &str| Some((group.to_owned(), volume.to_owned()));
        assert_eq!(lvm_names("vg-home"), pair("vg", "home"));
        assert_eq!(lvm_names("my--vg-a--b"), pair("my-vg", "a-b"));
        assert_eq!(lvm_names("luks"), None);
    }

    proptest! {
        #[test]
        fn any_script_is_survived(text in "\\PC*") {
            commands(&text);
        }

        #[test]
        fn scripts_near_the_mark_are_survived(
            text in "((for d in|do|echo|blockdev --setra|sh -c|[$;&|>'\"#\\\\]|d=|\
                     [0-9]{1,22}| |\n|/sys/read_ahead_kb){0,30})"
        ) {
            commands(&text);
        }
    }
}
