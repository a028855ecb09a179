//! rc.local and cron jobs that run at boot.

use std::path::{Path, PathBuf};

use super::places::{drop_ins, text_about};
use super::shell::{FoundWrite, scan};
use super::{Certainty, OwnerKind};
use crate::Root;

/// Reads the commands that write to files with this name.
pub(super) fn read(root: &Root, sought: &str) -> Vec<FoundWrite> {
    let mut found = Vec::new();
    for file in ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local"] {
        if let Some(text) = text_about(root, Path::new(file), sought) {
            let certainty =
                if executable(root, file) { Certainty::Sure } else { Certainty::Perhaps };
            let file = Path::new(file);
            found.extend(scan(OwnerKind::BootScript, file, &text, certainty, sought));
        }
    }
    let mut tables = vec![PathBuf::from("/etc/crontab")];
    tables.extend(drop_ins(root, &["/etc/cron.d"], ""));
    for file in tables {
        if let Some(text) = text_about(root, &file, sought) {
            let jobs = boot_jobs(&text);
            let certainty = Certainty::Perhaps;
            found.extend(scan(OwnerKind::BootScript, &file, &jobs, certainty, sought));
        }
    }
    found
}

/// Returns whether a file is executable. An rc.local that is not executable does not run.
fn executable(root: &Root, file: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    root.path(file).metadata().is_ok_and(|status| status.permissions().mode() & 0o111 != 0)
}

/// Removes times and users from a cron table, line by line.
pub fn boot_jobs(text: &str) -> String {
    let job = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or("");
        match first.chars().next() {
            Some('#') | None => String::new(),
            Some('@') => words.skip(1).collect::<Vec<_>>().join(" "),
            Some(c) if c.is_ascii_digit() || c == '*' => {
                words.skip(5).collect::<Vec<_>>().join(" ")
            }
            Some(_) => line.to_owned(),
        }
    };
    text.lines().map(job).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_cron_lose_their_times() {
        let text = "# x\nSHELL=/bin/sh\n@reboot root blockdev --setra 64 /dev/sda\n\
                    0 5 * * * root /bin/true\n";
        let jobs = boot_jobs(text);
        let file = Path::new("/etc/crontab");
        let certainty = Certainty::Sure;
        let found = scan(OwnerKind::BootScript, file, &jobs, certainty, "read_ahead_kb");
        assert_eq!((found.len(), found[0].place.line), (1, 3));
    }
}
