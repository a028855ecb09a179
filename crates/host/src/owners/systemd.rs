//! systemd units that set read-ahead or another kernel file, directly or in a script that they run.

use std::path::{Path, PathBuf};

use super::places::{comment_above, concerns, drop_ins};
use super::shell::{FoundWrite, commands_on, scan_file};
use super::{Certainty, FileLocation, OwnerKind, is_foreread};
use crate::Root;

const FOLDERS: &[&str] =
    &["/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system"];
const VENDOR: &str = "/usr/lib/systemd/system";

/// Reads units of packages and units of the administrator; for the latter, also their scripts.
pub(super) fn read(root: &Root, sought: &str) -> Vec<FoundWrite> {
    let mut found = Vec::new();
    let own = drop_ins(root, FOLDERS, ".service");
    let vendor = drop_ins(root, &[VENDOR], ".service");
    for (file, is_own) in own.iter().map(|f| (f, true)).chain(vendor.iter().map(|f| (f, false))) {
        let Some(text) = root.lines_of(file) else { continue };
        let concerned = concerns(&text, sought);
        // Administrators' scripts may set read-ahead. Packages have many scripts, and none sets it.
        let scripts = if is_own { scripts(&text) } else { Vec::new() };
        if !concerned && scripts.is_empty() {
            continue;
        }
        let certainty = enabled(root, file);
        if concerned {
            found.extend(parse(file, &text, certainty, sought));
        }
        for script in scripts {
            found.extend(scan_file(root, OwnerKind::Systemd, &script, certainty, sought));
        }
    }
    found
}

/// Returns `Sure` for a unit that a target wants: it starts at boot. Others may start later.
fn enabled(root: &Root, file: &Path) -> Certainty {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
        return Certainty::Perhaps;
    };
    let folder = "/etc/systemd/system";
    let wanted = root.names(folder).iter().any(|entry| {
        (entry.ends_with(".wants") || entry.ends_with(".requires"))
            && root.names(format!("{folder}/{entry}")).iter().any(|wanted| wanted == name)
    });
    if wanted { Certainty::Sure } else { Certainty::Perhaps }
}

/// Returns the writes of the commands in a unit's text.
pub fn parse(file: &Path, text: &str, certainty: Certainty, sought: &str) -> Vec<FoundWrite> {
    let by_foreread = is_foreread(file, text);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, command) in executed(&lines) {
        for (_, write) in commands_on(&command.replace("%%", "%"), sought) {
            found.push(FoundWrite {
                owner: OwnerKind::Systemd,
                place: FileLocation::new(file, index + 1),
                text: lines[index].trim().to_owned(),
                comment: comment_above(&lines, index),
                write,
                certainty,
                by_foreread,
            });
        }
    }
    found
}

/// Returns the command lines of a unit, each with its index. A command may span several lines.
fn executed(lines: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in lines.iter().enumerate() {
        let body = line.trim_end_matches('\\');
        let continued = body.len() < line.len();
        if goes_on {
            if let Some((_, command)) = found.last_mut() {
                command.push(' ');
                command.push_str(body);
            }
            goes_on = continued;
            continue;
        }
        let command = body.split_once('=').filter(|(key, _)| key.trim().starts_with("Exec"));
        if let Some((_, command)) = command {
            let command = command.trim().trim_start_matches(['-', '@', '+', '!', ':']);
            found.push((index, command.to_owned()));
            goes_on = continued;
        }
    }
    found
}

/// Returns the programs of a unit whose directory suggests that the administrator wrote them.
fn scripts(text: &str) -> Vec<PathBuf> {
    let lines: Vec<&str> = text.lines().collect();
    let commands = executed(&lines).into_iter();
    let words = commands.flat_map(|(_, command)| {
        command.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    });
    const OWN: &[&str] = &["/usr/local/", "/opt/", "/etc/", "/srv/", "/home/"];
    words
        .filter(|word| OWN.iter().any(|folder| word.starts_with(folder)))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use units::Kib;

    use super::*;

    #[test]
    fn commands_of_a_unit_are_followed_over_lines() {
        let text = "[Service]\nType=oneshot\n# sectors\n\
                    ExecStart=-/bin/sh -c 'echo 4096 > \\\n/sys/block/sda/queue/read_ahead_kb'\n\
                    ExecStart=/sbin/blockdev --setra 256 /dev/sdb\n";
        let unit = Path::new("/etc/systemd/system/ra.service");
        let found = parse(unit, text, Certainty::Sure, "read_ahead_kb");
        let kib: Vec<_> = found.iter().map(|found| found.write.wanted.kib()).collect();
        assert_eq!(kib, [Some(Kib::new(4096)), Some(Kib::new(128))]);
        assert_eq!((found[0].place.line, found[1].place.line), (4, 6));
        assert_eq!(found[0].comment.as_deref(), Some("sectors"));
    }
}
