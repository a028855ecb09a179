//! Tests the .deb on a machine with systemd: it is installed, started, killed, rebooted, upgraded
//! and removed. The steps are in `service.sh`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::image;
use super::kernels::{self, DATA_PATH};
use super::machine::GuestMachine;
use super::payload::PAYLOAD_PATH;
use super::readers;
use crate::command::Output;
use crate::verbs::DIRECTORY;

/// Kernel series of Debian 12, whose programs the guest has.
const SERIES: &str = "6.1";

const STEPS: &str = include_str!("service.sh");

/// Time limit of a step on an emulated machine while builds run on the host.
const STEP_TIMEOUT: Duration = Duration::from_secs(1200);

/// Steps and their functions; each step needs the preceding ones.
const ORDER: &[(&str, &str)] = &[
    ("install", "install_package"),
    ("start `foreread-auto`", "start_auto"),
    ("adapt to nine readers", "adapt"),
    ("keep to the sandbox", "keep_sandbox"),
    ("keep the watchdog", "keep_watchdog"),
    ("survive `kill -9`", "survive_kill"),
    ("survive a reboot", "survive_reboot"),
    ("upgrade", "upgrade_package"),
    ("stop, and give all back", "stop_auto"),
    ("write metrics by timer", "run_metrics"),
    ("remove, and undo later", "remove_package"),
    ("keep disks from TuneD, and be set by it", "obey_tuned"),
    ("give cloud-init what `persist` emits", "seed_cloud_init"),
    ("be set by cloud-init at boot", "set_by_cloud_init"),
];

/// Steps before which the machine is booted again.
const BOOTED_BEFORE: [&str; 2] = ["survive_reboot", "set_by_cloud_init"];

/// Runs the steps with these packages until one fails; returns the table, and whether none failed.
pub fn table(root: &Path, first: PathBuf, next: PathBuf) -> Result<(String, bool)> {
    let image = image::of_kernel(root, SERIES)?.here()?;
    let files = [("first.deb", first), ("next.deb", next)];
    let hardware = kernels::hardware(root, &image, "service", &files)?;
    let mut machine = hardware.boot()?;
    set_up(&mut machine)?;
    let mut text = "| step | result | found | s |\n|---|---|---|---:|\n".to_owned();
    for (step, function) in ORDER {
        if BOOTED_BEFORE.contains(function) {
            machine.shut_down()?;
            machine = hardware.boot()?;
        }
        let started = Instant::now();
        let script = format!("set -eu; . /var/tmp/service.sh; {function}");
        let output = machine.attempt_for(&script, STEP_TIMEOUT)?;
        let seconds = started.elapsed().as_secs_f64();
        let (result, found) = judge(&output);
        let row = format!("| {step} | {result} | {found} | {seconds:.0} |\n");
        eprint!("{row}");
        text.push_str(&row);
        if output.code != 0 {
            eprintln!("{}", evidence(&mut machine)?);
            return Ok((text, false));
        }
    }
    machine.shut_down()?;
    Ok((text, true))
}

/// Returns the result, and the line that explains it.
fn judge(output: &Output) -> (&'static str, String) {
    let last = |text: &str| {
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        line.trim().replace('|', "\\|")
    };
    match output.code {
        0 => ("works", last(&output.stdout)),
        code => ("**FAILS**", format!("exit code {code}: {}", last(&output.stderr))),
    }
}

/// Unpacks the packages, and creates the files and their readers.
fn set_up(machine: &mut GuestMachine) -> Result<()> {
    machine.sh(&format!(
        "tar -xf {PAYLOAD_PATH} -C /var/tmp
         mkfs.ext4 -q {DATA_PATH}
         mkdir -p {DIRECTORY}
         echo '{DATA_PATH} {DIRECTORY} ext4 defaults 0 0' >>/etc/fstab
         mount {DIRECTORY}"
    ))?;
    machine.sh(&format!("cat >/var/tmp/service.sh <<'END'\n{STEPS}END"))?;
    readers::make(machine, DIRECTORY)
}

fn evidence(machine: &mut GuestMachine) -> Result<String> {
    let script = "systemctl --no-pager --full status foreread-auto; journalctl -n 40 --no-pager";
    Ok(machine.attempt(script).context("reading the journal of the guest")?.stdout)
}
