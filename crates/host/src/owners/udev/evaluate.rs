//! Evaluates udev rules for a device that appears.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use units::Kib;

use super::super::nfs_conf::NfsConf;
use super::super::shell::{Goal, commands_on};
use super::super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted};
use super::Sought;
use super::parse::{Operator, Token, UdevRule};
use crate::Root;
use crate::glob;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Open,
}

impl Truth {
    fn of(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    fn negated(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Open => Self::Open,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            _ => Self::Yes,
        }
    }
}

/// The uevent of a device that appears, in one subsystem.
pub(super) struct Uevent<'a> {
    root: &'a Root,
    target: &'a Target,
    sought: &'a Sought,
    subsystem: &'static str,
    kernel: String,
    folder: String,
    properties: BTreeMap<String, String>,
    /// Properties that an uncertain rule has set.
    uncertain: BTreeSet<String>,
    nfs: bool,
}

/// The value of `%c` after PROGRAM ran nfsrahead, with the location of its setting.
type ProgramValue = Option<(Wanted, Option<FileLocation>)>;

impl<'a> Uevent<'a> {
    /// Returns the events of a target: one for its bdi and one for its block device, if it has one.
    pub fn all(root: &'a Root, target: &'a Target, sought: &'a Sought) -> Vec<Self> {
        let event = |subsystem, kernel: String, folder, properties| Self {
            root,
            target,
            sought,
            subsystem,
            kernel,
            folder,
            properties,
            uncertain: BTreeSet::new(),
            nfs: target.fstype.as_deref().is_some_and(|fstype| fstype.starts_with("nfs")),
        };
        let bdi = target.bdi.as_str().to_owned();
        let folder = format!("/sys/class/bdi/{bdi}");
        let mut events = vec![event("bdi", bdi, folder, BTreeMap::new())];
        if let Some(name) = &target.name {
            let folder = format!("/sys/class/block/{name}");
            let mut properties = properties(root, &folder);
            properties.insert("DEVTYPE".to_owned(), "disk".to_owned());
            if let Some((label, uuid)) = &target.dm {
                properties.insert("DM_NAME".to_owned(), label.clone());
                properties.insert("DM_UUID".to_owned(), uuid.clone());
            }
            events.push(event("block", name.clone(), folder, properties));
        }
        events
    }

    /// Evaluates the rules of a file and returns their claims.
    pub fn run(&mut self, file: &Path, rules: &[UdevRule], nfs: &NfsConf) -> Vec<Claim> {
        let mut claims = Vec::new();
        // Rules before `next` are skipped; `possible` has the targets of GOTOs that are uncertain.
        let (mut next, mut possible) = (0, BTreeSet::new());
        for (at, rule) in rules.iter().enumerate() {
            if at < next {
                continue;
            }
            let truth = self.conditions(rule);
            if truth == Truth::No {
                continue;
            }
            possible.retain(|target| *target > at);
            let reached = if possible.is_empty() { Truth::Yes } else { Truth::Open };
            claims.extend(self.claims(file, rule, truth.and(reached), nfs));
            let Some(target) = goto_target(rules, at) else { continue };
            possible.insert(target);
            if truth == Truth::Yes {
                // An earlier GOTO may skip this rule, and continue at a nearer target.
                next = possible.first().copied().unwrap_or(target);
            }
        }
        claims
    }

    fn conditions(&self, rule: &UdevRule) -> Truth {
        let mut all = Truth::Yes;
        for token in &rule.tokens {
            let asks = token.operator.asks()
                || (token.key == "PROGRAM" && token.operator == Operator::Set)
                || token.key == "IMPORT";
            if asks {
                all = all.and(self.condition(token));
            }
            if all == Truth::No {
                break;
            }
        }
        all
    }

    fn condition(&self, token: &Token) -> Truth {
        let attribute = token.attribute.as_deref();
        let truth = match token.key.as_str() {
            "ACTION" => Truth::of(fits(&token.value, "add") || fits(&token.value, "change")),
            "SUBSYSTEM" => Truth::of(fits(&token.value, self.subsystem)),
            "KERNEL" => Truth::of(fits(&token.value, &self.kernel)),
            "ENV" => self.property(attribute.unwrap_or(""), &token.value),
            "ATTR" => self.attribute(attribute.unwrap_or(""), &token.value),
            "TEST" => self.test(&token.value),
            "PROGRAM" => return self.program(&token.value),
            "IMPORT" => return Truth::Open,
            "SUBSYSTEMS" => self.parents("subsystem", &token.value),
            "DRIVERS" => self.parents("driver", &token.value),
            "KERNELS" => {
                let own = fits(&token.value, &self.kernel);
                if own { Truth::Yes } else { Truth::Open }
            }
            "ATTRS" => match self.attribute(attribute.unwrap_or(""), &token.value) {
                Truth::No => self.parent_attribute(attribute.unwrap_or(""), &token.value),
                truth => truth,
            },
            _ => Truth::Open,
        };
        if token.operator == Operator::IsNot { truth.negated() } else { truth }
    }

    fn property(&self, name: &str, pattern: &str) -> Truth {
        if self.uncertain.contains(name) {
            return Truth::Open;
        }
        match self.properties.get(name) {
            Some(value) => Truth::of(fits(pattern, value)),
            // Without udev's database, its properties are unknown.
            None if self.properties.contains_key(KNOWN) => Truth::of(fits(pattern, "")),
            None => Truth::Open,
        }
    }

    fn attribute(&self, name: &str, pattern: &str) -> Truth {
        match self.root.read(format!("{}/{name}", self.folder)) {
            Ok(value) => Truth::of(fits(pattern, &value)),
            Err(_) => Truth::No,
        }
    }

    fn parent_attribute(&self, name: &str, pattern: &str) -> Truth {
        match self.root.read(format!("{}/device/{name}", self.folder)) {
            Ok(value) if fits(pattern, &value) => Truth::Yes,
            _ => Truth::Open,
        }
    }

    fn parents(&self, link: &str, pattern: &str) -> Truth {
        let found = self.root.link_name(format!("{}/device/{link}", self.folder));
        match found {
            Some(name) if fits(pattern, &name) => Truth::Yes,
            _ if link == "subsystem" && fits(pattern, self.subsystem) => Truth::Yes,
            _ => Truth::Open,
        }
    }

    fn test(&self, path: &str) -> Truth {
        let path = self.substitute(path);
        let path = if path.starts_with('/') { path } else { format!("{}/{path}", self.folder) };
        Truth::of(self.root.exists(path))
    }

    /// Recognises two programs, both of which test whether the bdi belongs to an NFS mount:
    /// nfsrahead of nfs-utils, and an awk command over /proc/fs/nfsfs/volumes from vendors' guides.
    fn program(&self, command: &str) -> Truth {
        if command.contains("nfsrahead") || command.contains("/proc/fs/nfsfs/volumes") {
            return Truth::of(self.nfs);
        }
        Truth::Open
    }

    fn claims(&mut self, file: &Path, rule: &UdevRule, truth: Truth, nfs: &NfsConf) -> Vec<Claim> {
        let certainty = if truth == Truth::Yes { Certainty::Sure } else { Certainty::Perhaps };
        let program = rule.tokens.iter().find(|token| token.key == "PROGRAM");
        let program = program.and_then(|token| self.nfsrahead_value(&token.value, nfs));
        let mut claims = Vec::new();
        for token in &rule.tokens {
            match token.key.as_str() {
                "ENV" if !token.operator.asks() => {
                    let name = token.attribute.clone().unwrap_or_default();
                    let value = self.substitute(&token.value);
                    match certainty {
                        Certainty::Sure => self.uncertain.remove(&name),
                        Certainty::Perhaps => self.uncertain.insert(name.clone()),
                    };
                    self.properties.insert(name, value);
                }
                "ATTR" if !token.operator.asks() && self.sets_sought(token) => {
                    claims.push(self.claim(file, rule, &token.value, certainty, &program));
                }
                "RUN" if !token.operator.asks() => {
                    claims.extend(self.run_claims(file, rule, &token.value, certainty));
                }
                _ => {}
            }
        }
        claims
    }

    fn sets_sought(&self, token: &Token) -> bool {
        let names = match self.subsystem {
            "bdi" => &self.sought.of_bdi,
            _ => &self.sought.of_device,
        };
        token.attribute.as_ref().is_some_and(|name| names.contains(name))
    }

    fn nfsrahead_value(&self, command: &str, nfs: &NfsConf) -> ProgramValue {
        if !command.contains("nfsrahead") {
            return None;
        }
        Some(match nfs.of(self.target.fstype.as_deref().unwrap_or("nfs")) {
            Some((kib, place)) => (Wanted::Exactly(kib), Some(place.clone())),
            // Without a setting, nfsrahead prints its default.
            None => (Wanted::Exactly(Kib::new(128)), None),
        })
    }

    fn claim(
        &self,
        file: &Path,
        rule: &UdevRule,
        value: &str,
        certainty: Certainty,
        program: &ProgramValue,
    ) -> Claim {
        let value = self.substitute(value);
        let (owner, wanted, place) = match (program, value.trim().parse()) {
            (_, Ok(kib)) => (OwnerKind::Udev, Wanted::Exactly(Kib::new(kib)), None),
            (Some((wanted, place)), Err(_)) if value.contains("%c") => {
                (OwnerKind::NfsConf, *wanted, place.clone())
            }
            _ => (OwnerKind::Udev, Wanted::Unknown, None),
        };
        Claim {
            owner,
            wanted,
            place: place.unwrap_or_else(|| FileLocation::new(file, rule.line)),
            text: rule.text.clone(),
            comment: rule.comment.clone(),
            certainty,
            by_foreread: false,
        }
    }

    fn run_claims(
        &self,
        file: &Path,
        rule: &UdevRule,
        command: &str,
        certainty: Certainty,
    ) -> Vec<Claim> {
        let command = self.substitute(command);
        let ours = |goal: &Goal| match goal {
            Goal::Device(name) if self.is_node(name) => Some(Certainty::Sure),
            goal => self.sought.covers(goal, self.target),
        };
        let found = commands_on(&command, &self.sought.file)
            .into_iter()
            .filter_map(|(_, write)| Some((write.wanted, ours(&write.goal)?.min(certainty))));
        let claim = |(wanted, certainty)| Claim {
            owner: OwnerKind::Udev,
            wanted,
            place: FileLocation::new(file, rule.line),
            text: rule.text.clone(),
            comment: rule.comment.clone(),
            certainty,
            by_foreread: false,
        };
        found.map(claim).collect()
    }

    fn is_node(&self, name: &str) -> bool {
        name == format!("/dev/{}", self.kernel)
    }

    /// Substitutes `%k`, `$kernel`, `$devnode`, `$env{…}`, `$attr{…}` and similar as udev does.
    fn substitute(&self, text: &str) -> String {
        let node = format!("/dev/{}", self.kernel);
        let device = self.target.bdi.as_str();
        let (major, minor) = device.split_once(':').unwrap_or(("", ""));
        let mut text = text.to_owned();
        for (form, value) in [
            ("$devnode", node.as_str()),
            ("$tempnode", node.as_str()),
            ("$kernel", self.kernel.as_str()),
            ("$name", self.kernel.as_str()),
            ("$major", major),
            ("$minor", minor),
            ("$sys", "/sys"),
            ("%N", node.as_str()),
            ("%k", self.kernel.as_str()),
            ("%M", major),
            ("%m", minor),
            ("%S", "/sys"),
        ] {
            text = text.replace(form, value);
        }
        for (open, read) in [("$env{", true), ("%E{", true), ("$attr{", false), ("%s{", false)] {
            text = self.substitute_named(&text, open, read);
        }
        text
    }

    fn substitute_named(&self, text: &str, open: &str, property: bool) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(open) {
            out.push_str(before);
            let Some((name, after)) = behind.split_once('}') else {
                out.push_str(open);
                rest = behind;
                continue;
            };
            let value = if property {
                self.properties.get(name).cloned()
            } else {
                self.root.read(format!("{}/{name}", self.folder)).ok()
            };
            out.push_str(&value.unwrap_or_default());
            rest = after;
        }
        out + rest
    }
}

/// A pseudo-property that marks that udev's database exists.
const KNOWN: &str = "FOREREAD_DATABASE";

/// Reads the udev properties of a block device: `E:NAME=value` in the database, and the kernel's.
fn properties(root: &Root, folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let pair =
        |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    if let Ok(uevent) = root.read(format!("{folder}/uevent")) {
        found.extend(uevent.lines().filter_map(pair));
    }
    if let Ok(number) = root.read(format!("{folder}/dev"))
        && let Some(text) = root.lines_of(format!("/run/udev/data/b{number}"))
    {
        found.extend(text.lines().filter_map(|line| line.strip_prefix("E:")).filter_map(pair));
        found.insert(KNOWN.to_owned(), "1".to_owned());
    }
    found
}

/// Returns the index of the rule that udev evaluates after the GOTO of a rule. Like udev, ignores a
/// GOTO whose label is not in a later rule of the file.
fn goto_target(rules: &[UdevRule], at: usize) -> Option<usize> {
    let goto = rules[at].tokens.iter().find(|token| token.key == "GOTO")?;
    let label = |token: &Token| token.key == "LABEL" && token.value == goto.value;
    let behind = rules[at + 1..].iter().position(|rule| rule.tokens.iter().any(label))?;
    Some(at + 1 + behind)
}

/// Returns whether a value matches one of the alternatives of a pattern.
fn fits(pattern: &str, value: &str) -> bool {
    pattern.split('|').any(|alternative| glob::matches(alternative, value))
}
