//! Runs the verbs where something is missing: rights, directories, a terminal.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;

use anyhow::{Context, Result};

use super::chroot::Chroot;
use super::installs::Packages;
use crate::command::output;
use crate::dist::Release;
use crate::outcome::{Footnotes, VerbOutcome};
use crate::verbs::{self, DIRECTORY, FILE_COUNT, READER, Systems, TriedVerb, WITHOUT_BPF};

/// Mounts before each condition: this machine's devices and /sys, and a separate file system on a
/// loop device, so that settings do not affect this machine's file systems.
const MOUNTS: &str = "mount --rbind /sys \"$0/sys\"
mount --rbind /dev \"$0/dev\"
mount -t tmpfs tmpfs \"$0/run\"
chmod 1777 \"$0/run\"
mount -o loop \"$0.img\" \"$0/srv/data\"";

/// A condition in which something is missing.
struct Condition {
    name: &'static str,
    meaning: &'static str,
    /// Script that runs after the mounts.
    prepare: &'static str,
    /// Command that precedes the shell.
    wrapper: &'static str,
}

const USER: &str = "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/reader";

const CONDITIONS: &[Condition] = &[
    Condition { name: "root", meaning: "nothing is missing", prepare: "true", wrapper: "env" },
    Condition { name: "user", meaning: "without privileges", prepare: "true", wrapper: USER },
    Condition {
        name: "/sys read-only",
        meaning: "root; `/sys` is mounted read-only",
        prepare: "mount -o remount,bind,ro \"$0/sys\"",
        wrapper: "env",
    },
    Condition {
        name: "no bpf(2)",
        meaning: "root; a seccomp filter refuses `bpf`",
        prepare: "true",
        wrapper: "perl /usr/local/bin/no-bpf env",
    },
    Condition {
        name: "user namespace",
        meaning: "root of a user namespace of an ordinary user (`unshare -Ur`)",
        prepare: "true",
        wrapper: "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/reader \
                  unshare -Ur",
    },
    Condition {
        name: "own PIDs",
        meaning: "root with processes of its own, as in a privileged container",
        prepare: "true",
        wrapper: "unshare --mount --pid --fork --kill-child --mount-proc",
    },
    Condition {
        name: "bare",
        meaning: "root without a terminal, `TERM`, `HOME` and `LANG`, in the C locale",
        prepare: "true",
        wrapper: "setsid env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C",
    },
    Condition {
        name: "/ read-only",
        meaning: "root; everything but `/run`, `/dev` and the data is mounted read-only",
        prepare: "mount -o remount,bind,ro \"$0\"",
        wrapper: "env",
    },
];

/// Returns the tables, and whether no cell failed.
pub fn table(release: &Release, packages: &Packages) -> Result<(String, bool)> {
    let chroot = Chroot::unpack(&release.root, "bookworm", &["e2fsprogs"])?;
    set_up(&chroot, packages)?;
    let mut notes = Footnotes::default();
    let mut failures = 0;
    let verbs: Vec<_> = verbs::tried_in(Systems::Chroots).collect();
    let mut rows: Vec<String> = verbs.iter().map(|verb| format!("| {} |", verb.name)).collect();
    for condition in CONDITIONS {
        for (verb, row) in verbs.iter().zip(&mut rows) {
            let outcome = attempt(&chroot, condition, verb)?;
            eprintln!("{}, {}: {outcome}", condition.name, verb.name);
            failures += usize::from(matches!(outcome, VerbOutcome::Fails(_)));
            let _ = write!(row, " {} |", notes.cell(outcome.word(), outcome.line()));
        }
    }
    let mut text = "| condition | meaning |\n|---|---|\n".to_owned();
    for condition in CONDITIONS {
        let _ = writeln!(text, "| {} | {} |", condition.name, condition.meaning);
    }
    let names: Vec<&str> = CONDITIONS.iter().map(|condition| condition.name).collect();
    let rule = "---|".repeat(names.len());
    let _ = writeln!(text, "\n| verb | {} |\n|---|{rule}", names.join(" | "));
    let _ = write!(text, "{}\n\n{notes}", rows.join("\n"));
    Ok((text, failures == 0))
}

/// Installs the package, and creates the files that the verbs read.
fn set_up(chroot: &Chroot, packages: &Packages) -> Result<()> {
    chroot.copy(&packages.path("first.deb"), "first.deb")?;
    let installed = chroot.run("dpkg -i /first.deb")?;
    anyhow::ensure!(installed.code == 0, "the .deb cannot be installed: {}", installed.stderr);
    for (name, text) in [("reader", READER), ("no-bpf", WITHOUT_BPF)] {
        fs::write(chroot.root.join("usr/local/bin").join(name), text)?;
    }
    let files = tempfile::tempdir()?;
    for number in 1..=FILE_COUNT {
        fs::write(files.path().join(format!("file{number}")), vec![b'r'; 2 << 20])?;
    }
    let image = chroot.image();
    File::create(&image)?.set_len(64 << 20)?;
    let mut mkfs = Command::new("mkfs.ext4");
    output(mkfs.args(["-q", "-d"]).arg(files.path()).arg(&image)).context("making a filesystem")?;
    let made = chroot.run(
        "chmod +x /usr/local/bin/*; mkdir -p /srv/data /home/reader
         echo 'reader:x:1000:1000::/home/reader:/bin/sh' >>/etc/passwd
         chown 1000:1000 /home/reader",
    )?;
    anyhow::ensure!(made.code == 0, "the system cannot be prepared: {}", made.stderr);
    Ok(())
}

fn attempt(chroot: &Chroot, condition: &Condition, verb: &TriedVerb) -> Result<VerbOutcome> {
    let mut script = "D=$(mktemp -d -p /run); cd /run; export D\n".to_owned();
    for file in (1..=FILE_COUNT).filter(|_| verb.readers) {
        let direction = verbs::direction(file);
        let _ =
            writeln!(script, "reader {DIRECTORY}/file{file} {direction} 2>/dev/null & R=\"$R $!\"");
    }
    let _ = write!(script, "timeout 300 sh -c '{}'\ncode=$?; kill $R; exit $code", verb.script);
    let prepare = format!("{MOUNTS}\n{}", condition.prepare);
    let output = chroot.enter(&[], &prepare, condition.wrapper, &script)?;
    Ok(verb.judge(&output))
}
