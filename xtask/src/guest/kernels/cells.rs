//! Runs verbs in a guest with different rights.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::machine::GuestMachine;
use super::super::payload::PAYLOAD_PATH;
use super::super::readers;
use super::DATA_PATH;
use crate::outcome::VerbOutcome;
use crate::verbs::{DIRECTORY, TriedVerb, WITHOUT_BPF};

/// Time limit of a verb, which takes seconds, but minutes while builds run on the host.
const VERB_TIMEOUT: Duration = Duration::from_secs(900);

/// The rights of a user in the guest.
#[derive(Debug)]
pub struct GuestRights {
    /// Name on the command line.
    pub key: &'static str,
    pub name: &'static str,
    /// Script that root runs before the first verb.
    pub prepare: &'static str,
    /// Command that precedes `sh FILE`.
    wrapper: &'static str,
}

pub const RIGHTS: &[GuestRights] = &[
    GuestRights { key: "root", name: "root", prepare: "true", wrapper: "env" },
    GuestRights {
        key: "no-bpf",
        name: "root, bpf(2) forbidden",
        prepare: "true",
        wrapper: "perl /usr/local/bin/no-bpf env",
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
    // Last, because it stays in force until the next boot.
    GuestRights {
        key: "lockdown",
        name: "root, lockdown",
        prepare: "echo confidentiality >/sys/kernel/security/lockdown",
        wrapper: "env",
    },
];

/// Installs foreread, and creates the data and the readers.
pub fn set_up(machine: &mut GuestMachine) -> Result<()> {
    machine.sh(&format!(
        "tar -xf {PAYLOAD_PATH} -C /usr/local/bin
         modprobe fuse; modprobe loop
         mkfs.ext4 -q {DATA_PATH}
         mkdir -p {DIRECTORY}
         mount {DATA_PATH} {DIRECTORY}"
    ))?;
    machine.sh(&format!("cat >/usr/local/bin/no-bpf <<'END'\n{WITHOUT_BPF}END"))?;
    readers::make(machine, DIRECTORY)
}

/// Runs a verb; returns its outcome.
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

/// Returns how root receives each signal of read-ahead.
pub fn signals(machine: &mut GuestMachine) -> Result<Value> {
    Ok(info(machine, "")?["signals"].take())
}

/// Returns, for each mechanism, whether it alone passes the self-test, and otherwise why not.
pub fn mechanisms(machine: &mut GuestMachine) -> Result<Value> {
    let mut results = Vec::new();
    for mechanism in ["tp-btf", "fentry", "kprobe"] {
        let info = info(machine, mechanism)?;
        let mut features = info["features"].as_array().into_iter().flatten();
        let watching = features.find(|one| one["name"] == "watch_streams");
        let watching = watching.context("info does not name watch_streams")?;
        results.push(json!({
            "mechanism": mechanism,
            "works": watching["works"],
            "reason": watching["reason"],
        }));
    }
    Ok(results.into())
}

/// Returns the commit from which foreread was built.
pub fn build(machine: &mut GuestMachine) -> Result<Value> {
    Ok(info(machine, "")?["commit"].take())
}

fn info(machine: &mut GuestMachine, mechanism: &str) -> Result<Value> {
    let text = machine.sh(&format!("FOREREAD_PROBES={mechanism} foreread info --json"))?;
    serde_json::from_str(&text).context("info --json")
}
