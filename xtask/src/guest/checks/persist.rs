//! What must be there again after a reboot, and with a device that comes late.

use anyhow::{Result, ensure};

use crate::guest::stage::{LATE, Stage};

/// Arrays and volumes come up by themselves after an orderly reboot.
pub fn reboot(stage: &mut Stage) -> Result<()> {
    let boot_id = "cat /proc/sys/kernel/random/boot_id";
    let before = stage.machine()?.sh(boot_id)?;
    let machine = stage.reboot()?;
    ensure!(machine.sh(boot_id)? != before, "the guest was not booted again");
    for name in ["five", "ten", "lv"] {
        machine.sh(&format!("mountpoint -q /srv/{name}"))?;
    }
    Ok(())
}

/// A disk that is plugged in while the guest runs is seen by udev.
pub fn late_device(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let path = LATE.path();
    machine.sh(&format!("test ! -e {path}"))?;
    machine.plug(&LATE)?;
    machine
        .sh(&format!("for i in $(seq 300); do test -b {path} && exit; sleep 0.2; done; exit 1"))?;
    Ok(())
}
