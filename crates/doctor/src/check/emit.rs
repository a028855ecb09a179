//! Generates a policy that the current state meets.

use std::fmt::Write;

use super::policy::VERSION;
use super::storage::StorageProperties;
use crate::{Diagnosis, HostSnapshot};

/// Generates a policy with one rule for each storage that files are read from. A rule selects its
/// storage by mount point if it has one, because kernel names of devices change. Virtual disks of
/// foreread have no rule, because a reboot removes them.
pub fn emit(snapshot: &HostSnapshot, diagnoses: &[Diagnosis]) -> String {
    let mut text = format!(
        "# The current read-ahead of this machine as a policy: foreread check --policy FILE\n\
         # Widen min and max, add rules with class, filesystem or label, and forbid owners, as in\n\
         # forbidden_owners = [\"unknown\"].\n\
         version = {VERSION}\n"
    );
    let read = diagnoses.iter().filter(|diagnosis| diagnosis.is_read_through());
    let (virtual_disks, lasting): (Vec<_>, Vec<_>) =
        read.partition(|diagnosis| diagnosis.subject.is_virtual_disk());
    if !virtual_disks.is_empty() {
        text.push_str("# Virtual disks of foreread have no rule: a reboot removes them.\n");
    }
    for diagnosis in lasting {
        let subject = &diagnosis.subject;
        let facts = StorageProperties::new(snapshot, diagnosis);
        let _ = write!(text, "\n# from {}\n[[rule]]\n", comment(&diagnosis.origin.summary));
        let _ = writeln!(text, "name = {}", quoted(&facts.name));
        match facts.mounts.first() {
            Some(mount) => {
                let _ = writeln!(text, "mount = {}", quoted(&escaped(mount)));
            }
            None => {
                let device = facts.devices.last().cloned().unwrap_or_default();
                let _ = writeln!(text, "device = {}", quoted(&escaped(&device)));
            }
        }
        let kib = subject.read_ahead.get();
        let _ = write!(text, "min = \"{kib}K\"\nmax = \"{kib}K\"\n");
    }
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a pattern that matches only this name.
fn escaped(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Removes control characters, so that the text stays on one comment line.
fn comment(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
