//! Arrays, volumes and an emulated SCSI disk.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::guest::disk::Disk;
use crate::guest::stage::{RAID5, RAID10, SATA, Stage, VOLUMES};

/// systemd and udev start, foreread runs, and the disks are found by serial number.
pub fn boots(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh("foreread --version")?;
    machine.sh("udevadm settle")?;
    for disk in RAID5.iter().chain(&RAID10).chain([&SATA, &VOLUMES]) {
        machine.sh(&format!("test -b {}", disk.path()))?;
    }
    Ok(())
}

/// Creates and mounts the arrays and volumes.
pub fn make(stage: &mut Stage) -> Result<()> {
    let paths = |disks: &[Disk]| disks.iter().map(Disk::path).collect::<Vec<_>>().join(" ");
    let script = format!(
        "FIVE='{}' TEN='{}' VOLUMES='{}'\n{}",
        paths(&RAID5),
        paths(&RAID10),
        VOLUMES.path(),
        include_str!("arrays.sh")
    );
    stage.machine()?.sh(&script)?;
    Ok(())
}

/// Runs a small version of the sweep in posts on md tuning: all combinations of stripe cache ×
/// read-ahead × scheduler. All settings are restored at the end.
pub fn sweep(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let present = "array=$(basename $(realpath /dev/md/five))
                   cat /sys/block/$array/queue/read_ahead_kb /sys/block/$array/md/stripe_cache_size
                   cat /sys/block/$array/slaves/*/queue/scheduler";
    let before = machine.sh(present)?;
    let sweep = "foreread sweep /srv/five --vary read_ahead=64K,1M \
                 --vary stripe_cache_size=256,1024 --vary scheduler=none,mq-deadline \
                 --design full --workload seq-1 --repeats 1 --duration 300ms --size 64M \
                 --seed 7 --json";
    let output = machine.attempt(sweep)?;
    // 5: inconclusive, because one repeat gives no narrow interval.
    ensure!(matches!(output.code, 0 | 5), "{output:?}");
    let json: Value = serde_json::from_str(&output.stdout).context("foreread's JSON")?;
    let cells = json["cells"].as_array().map_or(0, Vec::len);
    ensure!(cells >= 8, "{cells} cells and not 2 × 2 × 2: {json}");
    let after = machine.sh(present)?;
    ensure!(before == after, "before:\n{before}after:\n{after}");
    Ok(())
}
