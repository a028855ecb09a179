//! Tries the verbs where something is missing: rights, directories, a terminal.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;

use anyhow::{Context, Result};

use super::chroot::Chroot;
use super::installs::Packages;
use crate::dist::{Release, output};
use crate::outcome::{Footnotes, VerbOutcome};

const READER: &str = include_str!("../guest/reader.pl");
const WITHOUT_BPF: &str = include_str!("no-bpf.pl");

/// Before each condition: devices and /sys of this machine, and a filesystem of its own on a loop
/// device, so that what is set is not what this machine uses.
const MOUNTS: &str = "mount --rbind /sys \"$0/sys\"
mount --rbind /dev \"$0/dev\"
mount -t tmpfs tmpfs \"$0/run\"
chmod 1777 \"$0/run\"
mount -o loop \"$0.img\" \"$0/srv/data\"";

/// What is missing.
struct Condition {
    name: &'static str,
    meaning: &'static str,
    /// After the mounts.
    prepare: &'static str,
    /// The words before the shell.
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

/// A verb and how it is tried. Readers read the files meanwhile.
struct Verb {
    name: &'static str,
    script: &'static str,
    /// Exit codes of a verb that did its work.
    success: &'static [i64],
    /// What it prints then, among other things.
    evidence: &'static str,
}

const fn verb(name: &'static str, script: &'static str, evidence: &'static str) -> Verb {
    Verb { name, script, success: &[0], evidence }
}

const VERBS: &[Verb] = &[
    verb("info", "foreread info", "kernel"),
    verb("help", "foreread help tune", "EXAMPLES"),
    verb("doctor", "foreread doctor", "KiB"),
    verb("doctor PATH", "foreread doctor /srv/data", "KiB"),
    Verb {
        success: &[0, 3],
        ..verb("check", "foreread check --emit-policy >$D/p && foreread check --policy $D/p", "")
    },
    verb("presets", "foreread presets", ""),
    verb("models", "foreread models", "hdd-2008"),
    verb("demo", "foreread demo", "Measure"),
    verb(
        "sweep sim:",
        "foreread sweep sim:hdd-2008 --vary read_ahead=128K,1M --workload seq-1 --repeats 2 \
             --duration 100ms --fresh",
        "1024",
    ),
    verb("runs", "foreread runs", ""),
    verb("report", "foreread report last -o $D/report.html && grep -c svg $D/report.html", ""),
    verb("experiment", "foreread experiment readers sim:hdd-2008,cache=1G", ""),
    verb("reproduce", "foreread reproduce", ""),
    // One repeat may well be inconclusive.
    Verb {
        success: &[0, 5],
        ..verb(
            "tune virtual:",
            "foreread tune virtual:nvme,fs=ext4 --vary read_ahead=32K,512K --workload seq-1 \
                 --repeats 1 --duration 200ms --size 4M --fresh --json",
            "recommendation",
        )
    },
    Verb {
        success: &[0, 5],
        ..verb(
            "tune PATH",
            "foreread tune /srv/data --vary read_ahead=32K,512K --workload seq-1 --repeats 1 \
                 --duration 200ms --size 4M --fresh --json",
            "recommendation",
        )
    },
    verb("watch", "foreread watch --once --json --interval 2s", "file"),
    verb("profile", "foreread profile -- reader /srv/data/file1 forward 1", ""),
    verb("auto", "foreread auto /srv/data --duration 3s --json", ""),
    verb("run", "foreread run --json -- reader /srv/data/file1 forward 1", ""),
    verb(
        "trace record",
        "foreread trace record --force -o $D/t -- reader /srv/data/file1 forward 1",
        "",
    ),
    verb("apply", "foreread apply read_ahead=256K --on /srv/data", ""),
    Verb { success: &[0, 3], ..verb("verify", "foreread verify /srv/data", "") },
    verb("persist -n", "foreread persist -n read_ahead=256K --on /srv/data --with systemd", ""),
    verb("rollback", "foreread rollback all", ""),
    verb("vdisk list", "foreread vdisk list", ""),
    verb("completions", "foreread completions bash", "foreread"),
];

/// The tables, and whether no cell failed.
pub fn table(release: &Release, packages: &Packages) -> Result<(String, bool)> {
    let chroot = Chroot::unpack(&release.root, "bookworm", &["e2fsprogs"])?;
    set_up(&chroot, packages)?;
    let mut notes = Footnotes::default();
    let mut failures = 0;
    let mut rows: Vec<String> = VERBS.iter().map(|verb| format!("| {} |", verb.name)).collect();
    for condition in CONDITIONS {
        for (verb, row) in VERBS.iter().zip(&mut rows) {
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

/// Installs the package, and makes what the verbs read.
fn set_up(chroot: &Chroot, packages: &Packages) -> Result<()> {
    chroot.copy(&packages.path("first.deb"), "first.deb")?;
    let installed = chroot.run("dpkg -i /first.deb")?;
    anyhow::ensure!(installed.code == 0, "the .deb cannot be installed: {}", installed.stderr);
    for (name, text) in [("reader", READER), ("no-bpf", WITHOUT_BPF)] {
        fs::write(chroot.root.join("usr/local/bin").join(name), text)?;
    }
    let files = tempfile::tempdir()?;
    for number in 1..=3 {
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

fn attempt(chroot: &Chroot, condition: &Condition, verb: &Verb) -> Result<VerbOutcome> {
    let script = format!(
        "D=$(mktemp -d -p /run); cd /run; export D
         for one in 1 2 3; do reader /srv/data/file$one forward 2>/dev/null & R=\"$R $!\"; done
         timeout 300 sh -c '{}'
         code=$?; kill $R; exit $code",
        verb.script
    );
    let prepare = format!("{MOUNTS}\n{}", condition.prepare);
    let output = chroot.enter(&[], &prepare, condition.wrapper, &script)?;
    Ok(VerbOutcome::judge(&output, verb.success, verb.evidence))
}
