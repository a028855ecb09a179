//! Power loss during a sweep.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::guest::machine::GuestMachine;
use crate::guest::stage::Stage;

/// A sweep that is long enough to be interrupted and short enough to be completed afterwards.
const SWEEP: &str = "foreread sweep /srv/ten --vary read_ahead=64K,1M --workload seq-1 \
                     --repeats 3 --duration 1s --size 64M --seed 7";
/// Read-ahead of that file system.
const KNOB: &str = "/sys/class/bdi/$(mountpoint -d /srv/ten)/read_ahead_kb";
/// A value that no device has by default.
const OURS: &str = "640";

/// After the boot, rollback restores the sweep's setting and removes its journal, and the same
/// command resumes the sweep.
pub fn cut_in_a_sweep(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh(&format!(
        "echo 'SUBSYSTEM==\"block\", ENV{{MD_NAME}}==\"*:ten\", \
             ATTR{{queue/read_ahead_kb}}=\"{OURS}\"' >/etc/udev/rules.d/99-cut.rules
         udevadm control --reload
         udevadm trigger --settle --action=change \"$(realpath /dev/md/ten)\"
         sync"
    ))?;
    ensure!(value(machine)? == OURS, "the udev rule does not work: {}", value(machine)?);
    machine.sh(&format!("{SWEEP} >/var/tmp/sweep.log 2>&1 </dev/null &"))?;
    wait_for_a_change(machine)?;
    let machine = stage.power_cut()?;
    machine.sh("udevadm settle && mountpoint -q /srv/ten")?;
    ensure!(!journals(machine)?.is_empty(), "the journal is gone with the power");
    let said = machine.sh("foreread rollback")?;
    ensure!(value(machine)? == OURS, "rollback left {} and said: {said}", value(machine)?);
    ensure!(journals(machine)?.is_empty(), "the journal is still there; rollback said: {said}");
    let again = machine.attempt("foreread rollback")?;
    ensure!(again.code == 0, "the second rollback: {again:?}");
    let rest = machine.attempt(SWEEP)?;
    ensure!(matches!(rest.code, 0 | 5), "the rest of the sweep: {rest:?}");
    ensure!(value(machine)? == OURS, "the sweep left {}", value(machine)?);
    Ok(())
}

fn value(machine: &mut GuestMachine) -> Result<String> {
    Ok(machine.sh(&format!("cat {KNOB}"))?.trim().to_owned())
}

fn journals(machine: &mut GuestMachine) -> Result<String> {
    machine.sh("find /var/lib/foreread/journal -type f")
}

/// Waits until the sweep has changed the value.
fn wait_for_a_change(machine: &mut GuestMachine) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    while value(machine)? == OURS {
        if Instant::now() > deadline {
            bail!("no change: {}", machine.sh("cat /var/tmp/sweep.log")?);
        }
    }
    Ok(())
}
