//! Arrays, volumes and an emulated SCSI disk.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::guest::disk::Disk;
use crate::guest::stage::{RAID5, RAID10, SATA, Stage, VOLUMES};

/// systemd and udev come up, foreread starts, and the disks are there by their serial numbers.
pub fn boots(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh("foreread --version")?;
    machine.sh("udevadm settle")?;
    for disk in RAID5.iter().chain(&RAID10).chain([&SATA, &VOLUMES]) {
        machine.sh(&format!("test -b {}", disk.path()))?;
    }
    Ok(())
}

/// The arrays and volumes are made, and mounted.
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

/// A small sweep of the mounted array, and every setting back at its end.
pub fn sweep(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let bdi = "/sys/class/bdi/$(mountpoint -d /srv/five)/read_ahead_kb";
    let before = machine.sh(&format!("cat {bdi}"))?;
    let sweep = "foreread sweep /srv/five --vary read_ahead=64K,1M --workload seq-1 \
                 --repeats 2 --duration 300ms --size 64M --seed 7 --json";
    let output = machine.attempt(sweep)?;
    // 5: the intervals are too wide, as they may be with two repeats.
    ensure!(matches!(output.code, 0 | 5), "{output:?}");
    let json: Value = serde_json::from_str(&output.stdout).context("foreread's JSON")?;
    ensure!(json["cells"].as_array().is_some_and(|cells| !cells.is_empty()), "no cells: {json}");
    let after = machine.sh(&format!("cat {bdi}"))?;
    ensure!(before == after, "read_ahead_kb was {before} and is {after}");
    Ok(())
}
