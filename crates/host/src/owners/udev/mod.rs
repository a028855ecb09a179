//! udev rules (udev(7)) that set a device's read-ahead or another of its files.
//!
//! Rules are evaluated as udev does on `add`, with the properties in `/run/udev/data`. A rule that
//! depends on the result of a program matches perhaps.

mod evaluate;
mod parse;

use std::path::PathBuf;

use super::nfs_conf::NfsConf;
use super::places::{READ_AHEAD, drop_ins, text_about};
use super::shell::Goal;
use super::{Certainty, Claim, Target};
use crate::{Root, glob};

pub use parse::{Operator, Token, UdevRule, parse};

const FOLDERS: &[&str] = &[
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];

#[derive(Clone, Debug)]
pub(super) struct Sought {
    pub file: String,
    pub of_device: Vec<String>,
    pub of_bdi: Vec<String>,
    /// Its paths; for read-ahead the target has them.
    pub paths: Vec<String>,
}

impl Sought {
    pub fn read_ahead() -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            file: READ_AHEAD.to_owned(),
            of_device: words(&["queue/read_ahead_kb", "bdi/read_ahead_kb"]),
            of_bdi: words(&["read_ahead_kb"]),
            paths: Vec::new(),
        }
    }

    /// Whether a command writes to it.
    pub fn covers(&self, goal: &Goal, target: &Target) -> Option<Certainty> {
        match goal {
            _ if self.paths.is_empty() => goal.covers(target),
            Goal::Device(_) => None,
            Goal::File(pattern) => {
                let sure = self.paths.iter().any(|path| glob::path_matches(pattern, path));
                // A variable with an unknown value, in a path with the file's name.
                let open = pattern.contains('$') && pattern.ends_with(&self.file);
                let open = open.then_some(Certainty::Perhaps);
                if sure { Some(Certainty::Sure) } else { open }
            }
        }
    }
}

/// The files that may concern the goal, in udev's order.
#[derive(Debug, Default)]
pub struct UdevRules {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    rules: Vec<UdevRule>,
    by_foreread: bool,
}

impl UdevRules {
    /// Reads those that concern files with this name.
    pub(super) fn read(root: &Root, sought: &str) -> Self {
        let mut rules = Self::default();
        for path in drop_ins(root, FOLDERS, ".rules") {
            if let Some(text) = text_about(root, &path, sought) {
                let by_foreread = super::is_foreread(&path, &text);
                rules.files.push(File { path, rules: parse(&text), by_foreread });
            }
        }
        rules
    }

    /// The claims of the rules on a target. The last one holds after udev has finished.
    pub(super) fn claims(
        &self,
        root: &Root,
        target: &Target,
        sought: &Sought,
        nfs: &NfsConf,
    ) -> Vec<Claim> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let events = evaluate::Uevent::all(root, target, sought);
        let mut claims = Vec::new();
        for event in events {
            let mut event = event;
            for file in &self.files {
                let mut found = event.run(&file.path, &file.rules, nfs);
                for claim in &mut found {
                    // The value of nfsrahead is in another file.
                    let own = super::is_foreread(&claim.place.file, "");
                    claim.by_foreread = file.by_foreread || own;
                }
                claims.extend(found);
            }
        }
        claims
    }
}
