//! The verbs that are tried in a guest, and with which rights.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::super::machine::GuestMachine;
use super::outcome::VerbOutcome;

/// How long a verb may take: seconds, but minutes where others build meanwhile.
const VERB_TIMEOUT: Duration = Duration::from_secs(900);

/// Rights of a user.
#[derive(Debug)]
pub struct GuestRights {
    /// By which it is chosen on the command line.
    pub key: &'static str,
    pub name: &'static str,
    /// What root does before the first verb.
    pub prepare: &'static str,
    /// The words before `sh FILE`.
    wrapper: &'static str,
}

pub const RIGHTS: &[GuestRights] = &[
    GuestRights { key: "root", name: "root", prepare: "true", wrapper: "env" },
    GuestRights {
        key: "no-bpf",
        name: "root, bpf(2) forbidden",
        prepare: "true",
        wrapper: "systemd-run --quiet --pipe --wait --collect \
                  -p SystemCallFilter=~bpf -p SystemCallErrorNumber=EPERM",
    },
    GuestRights {
        key: "no-btf",
        name: "root, no BTF",
        prepare: "printf '#!/bin/sh\nmount -t tmpfs none /sys/kernel/btf\nexec \"$@\"\n' \
                  >/usr/local/bin/without-btf; chmod +x /usr/local/bin/without-btf",
        wrapper: "unshare --mount without-btf",
    },
    GuestRights {
        key: "user",
        name: "user",
        prepare: "true",
        wrapper: "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/reader",
    },
    GuestRights {
        key: "container",
        name: "container",
        prepare: "true",
        wrapper: "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/reader \
                  unshare --user --map-root-user --mount --pid --fork --mount-proc",
    },
    // Last, as it lasts until the next boot.
    GuestRights {
        key: "lockdown",
        name: "root, lockdown",
        prepare: "echo confidentiality >/sys/kernel/security/lockdown",
        wrapper: "env",
    },
];

/// A verb and how it is tried.
#[derive(Debug)]
pub struct TriedVerb {
    pub name: &'static str,
    script: &'static str,
    /// Exit codes of a verb that did its work.
    success: &'static [i64],
    /// What it prints then, among other things.
    evidence: &'static str,
    /// Whether the files are read meanwhile.
    readers: bool,
}

const fn verb(name: &'static str, script: &'static str, evidence: &'static str) -> TriedVerb {
    TriedVerb { name, script, success: &[0], evidence, readers: false }
}

pub const VERBS: &[TriedVerb] = &[
    verb("info", "foreread info", "kernel"),
    verb("doctor", "foreread doctor /srv/data", "read-ahead"),
    TriedVerb {
        success: &[0, 3],
        ..verb("check", "foreread check --emit-policy >$D/p && foreread check --policy $D/p", "")
    },
    verb(
        "tune virtual:",
        "foreread tune virtual:nvme --vary read_ahead=32K,512K --workload seq-1 --repeats 1 \
             --duration 200ms --size 4M --fresh --json",
        "recommendation",
    ),
    TriedVerb {
        readers: true,
        ..verb("watch", "foreread watch --once --json --interval 4s", "file1")
    },
    TriedVerb {
        readers: true,
        ..verb("auto", "foreread auto /srv/data --duration 10s --json", "file9")
    },
    verb("run", "foreread run --json -- reader 1 2", ""),
    verb("trace record", "foreread trace record --force -o $D/t -- reader 1 1", ""),
    verb("apply", "foreread apply read_ahead=256K --on /srv/data", ""),
    TriedVerb { success: &[0, 3], ..verb("verify", "foreread verify /srv/data", "") },
    verb("persist -n", "foreread persist -n read_ahead=256K --on /srv/data", ""),
    verb("rollback", "foreread rollback all", ""),
];

/// Makes foreread, the data and the readers. `reader 1 2` reads file1 twice; without a second
/// number it goes on until it is ended, and `reader 9` reads its file backward.
pub const SET_UP: &str = r#"
tar -xf /dev/disk/by-id/virtio-payload -C /usr/local/bin
modprobe fuse; modprobe loop
mkfs.ext4 -q /dev/disk/by-id/virtio-data
mkdir -p /srv/data
mount /dev/disk/by-id/virtio-data /srv/data
for file in 1 2 3 4 5 6 7 8 9; do
    head -c 8M /dev/zero >/srv/data/file$file
done
chmod -R a+rX /srv/data
cat >/usr/local/bin/reader <<'END'
#!/usr/bin/perl
my ($which, $times) = @ARGV;
open my $file, '<', "/srv/data/file$which" or die "file$which: $!";
my ($size, $step) = (-s $file, 1 << 14);
for (my $round = 0; !$times || $round < $times; $round++) {
    # posix_fadvise(2), POSIX_FADV_DONTNEED: each round reads from the disk.
    syscall 221, fileno($file), 0, 0, 4;
    for (my $at = 0; $at < $size; $at += $step) {
        sysseek $file, $which == 9 ? $size - $step - $at : $at, 0;
        sysread $file, my $data, $step or die "file$which: $!";
        select undef, undef, undef, 0.002;
    }
}
END
chmod +x /usr/local/bin/reader
sync
"#;

const START_READERS: &str = "for one in 1 2 3 4 5 6 7 8 9; do \
     systemd-run --quiet --collect --unit reader$one /usr/local/bin/reader $one; done";

/// Runs a verb; what came of it.
pub fn run(
    machine: &mut GuestMachine,
    rights: &GuestRights,
    verb: &TriedVerb,
) -> Result<VerbOutcome> {
    let script = format!(
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH\n\
         D=$(mktemp -d); cd $D\n{}\ncode=$?\ncd /; rm -rf $D\nexit $code\n",
        verb.script
    );
    machine.sh(&format!("cat >/run/verb.sh <<'END'\n{script}END\nchmod a+r /run/verb.sh"))?;
    if verb.readers {
        machine.sh(START_READERS)?;
    }
    let output = machine.attempt_for(&format!("{} sh /run/verb.sh", rights.wrapper), VERB_TIMEOUT);
    if verb.readers {
        machine.sh("systemctl stop 'reader*'")?;
    }
    Ok(VerbOutcome::judge(&output?, verb.success, verb.evidence))
}

/// How root receives each signal of read-ahead.
pub fn signals(machine: &mut GuestMachine) -> Result<Value> {
    let info = machine.sh("foreread info --json")?;
    let info: Value = serde_json::from_str(&info)?;
    Ok(info["signals"].clone())
}
