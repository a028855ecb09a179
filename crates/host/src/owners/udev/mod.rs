//! udev rules (udev(7)) that set read-ahead or another attribute of a device.
//!
//! Rules are evaluated as udev does on `add`, with the properties in `/run/udev/data`. Claims of a
//! rule that depends on the result of a program are `Perhaps`.

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
    /// Paths of the file; empty for read-ahead, whose paths follow from the target.
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

    /// Returns how certainly a command writes to the file; `None` if it does not.
    pub fn covers(&self, goal: &Goal, target: &Target) -> Option<Certainty> {
        match goal {
            _ if self.paths.is_empty() => goal.covers(target),
            Goal::Device(_) => None,
            Goal::File(pattern) => {
                let sure = self.paths.iter().any(|path| glob::path_matches(pattern, path));
                // An unknown variable in a path that ends with the file's name.
                let open = pattern.contains('$') && pattern.ends_with(&self.file);
                let open = open.then_some(Certainty::Perhaps);
                if sure { Some(Certainty::Sure) } else { open }
            }
        }
    }
}

/// Rule files that may concern the sought kernel file, in udev's order.
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
    /// Reads the rule files that may concern kernel files with this name.
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

    /// Returns the claims of the rules on a target. The last claim is in effect in the end.
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
                    // nfsrahead's value comes from another file.
                    let own = super::is_foreread(&claim.place.file, "");
                    claim.by_foreread = file.by_foreread || own;
                }
                claims.extend(found);
            }
        }
        claims
    }
}
