//! udev rules (udev(7)): which of them set a device's read-ahead.
//!
//! Rules are evaluated as udev would on `add`, with the properties of `/run/udev/data`. What only
//! running a program could tell is left open: such a rule matches perhaps.

mod evaluate;
mod parse;

use std::path::PathBuf;

use super::nfs_conf::NfsConf;
use super::places::{concerns_read_ahead, drop_ins};
use super::{Claim, Target};
use crate::Root;

pub use parse::{Operator, Rule, Token, parse};

const FOLDERS: &[&str] = &[
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];

/// The files that may have to do with read-ahead, in the order in which udev takes them.
#[derive(Debug, Default)]
pub struct Rules {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    rules: Vec<Rule>,
    by_foreread: bool,
}

impl Rules {
    /// Reads them.
    pub(super) fn read(root: &Root) -> Self {
        let mut rules = Self::default();
        for path in drop_ins(root, FOLDERS, ".rules") {
            if let Some(text) = root.lines_of(&path).filter(|text| concerns_read_ahead(text)) {
                let by_foreread = super::is_foreread(&path, &text);
                rules.files.push(File { path, rules: parse(&text), by_foreread });
            }
        }
        rules
    }

    /// What the rules ask for a target. The last is what holds after udev is done.
    pub(super) fn claims(&self, root: &Root, target: &Target, nfs: &NfsConf) -> Vec<Claim> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let events = evaluate::Event::of(root, target);
        let mut claims = Vec::new();
        for event in events {
            let mut event = event;
            for file in &self.files {
                let mut found = event.run(&file.path, &file.rules, nfs);
                for claim in &mut found {
                    claim.by_foreread = file.by_foreread;
                }
                claims.extend(found);
            }
        }
        claims
    }
}
