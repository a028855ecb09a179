//! The verbs that are tried in a guest, and with which rights.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::super::machine::GuestMachine;
use super::super::readers;
use crate::outcome::VerbOutcome;
use crate::verbs::{DIRECTORY, TriedVerb};

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

/// Installs foreread, and makes the data and the readers.
pub fn set_up(machine: &mut GuestMachine) -> Result<()> {
    machine.sh("tar -xf /dev/disk/by-id/virtio-payload -C /usr/local/bin
         modprobe fuse; modprobe loop
         mkfs.ext4 -q /dev/disk/by-id/virtio-data
         mkdir -p /srv/data
         mount /dev/disk/by-id/virtio-data /srv/data")?;
    readers::make(machine, DIRECTORY)
}

/// Runs a verb; what came of it.
pub fn run(
    machine: &mut GuestMachine,
    rights: &GuestRights,
    verb: &TriedVerb,
) -> Result<VerbOutcome> {
    let script = format!(
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH\n\
         D=$(mktemp -d); cd $D; export D\n{}\ncode=$?\ncd /; rm -rf $D\nexit $code\n",
        verb.script
    );
    machine.sh(&format!("cat >/run/verb.sh <<'END'\n{script}END\nchmod a+r /run/verb.sh"))?;
    if verb.readers {
        readers::start(machine, DIRECTORY)?;
    }
    let output = machine.attempt_for(&format!("{} sh /run/verb.sh", rights.wrapper), VERB_TIMEOUT);
    if verb.readers {
        readers::stop(machine)?;
    }
    Ok(verb.judge(&output?))
}

/// How root receives each signal of read-ahead.
pub fn signals(machine: &mut GuestMachine) -> Result<Value> {
    let info = machine.sh("foreread info --json")?;
    let info: Value = serde_json::from_str(&info)?;
    Ok(info["signals"].clone())
}
