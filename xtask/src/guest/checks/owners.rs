//! Owners that need their own machine: TuneD, nfs.conf, LVM's metadata.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::guest::machine::GuestMachine;
use crate::guest::stage::Stage;

/// Returns the read-ahead of this mount point, in KiB.
fn read_ahead(machine: &mut GuestMachine, point: &str) -> Result<String> {
    let file = format!("/sys/class/bdi/$(mountpoint -d {point})/read_ahead_kb");
    Ok(machine.sh(&format!("cat {file}"))?.trim().to_owned())
}

/// Returns the kind of origin in doctor's output, and doctor's entry for the mount point.
fn origin(machine: &mut GuestMachine, point: &str) -> Result<(String, Value)> {
    let printed = machine.sh(&format!("foreread doctor --json {point}"))?;
    let document: Value = serde_json::from_str(&printed).context("doctor's JSON")?;
    let one = document["storage"][0].clone();
    Ok((one["origin"]["kind"].as_str().unwrap_or_default().to_owned(), one))
}

/// Runs a command that must be refused for safety with a message that contains this word.
fn refused(machine: &mut GuestMachine, command: &str, word: &str) -> Result<()> {
    let output = machine.attempt(command)?;
    ensure!(output.code == 4 && output.stderr.contains(word), "{command}: {output:?}");
    Ok(())
}

/// TuneD applies the child profile, which selects the array by its UUID, before its parent's
/// section for all disks. Neither device gets a second owner.
pub fn tuned(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    // tuned-adm is slow on the emulated machine, so the first profile is selected before the daemon
    // starts.
    machine.sh("echo throughput-performance >/etc/tuned/active_profile
         echo manual >/etc/tuned/profile_mode
         systemctl start tuned")?;
    wait_for(machine, "/srv/ten", "4096")?;
    refused(machine, "foreread persist read_ahead=1M --on /srv/ten", "TuneD profile at /usr/lib")?;
    let persist = "foreread persist --force-owner --with tuned read_ahead=896K \
                   vm.dirty_background_ratio=6 --on /srv/ten";
    machine.sh(persist)?;
    let active = machine.sh("cat /etc/tuned/active_profile")?;
    ensure!(active.trim() == "foreread", "the profile in force is {active}");
    ensure!(read_ahead(machine, "/srv/ten")? == "896", "{}", read_ahead(machine, "/srv/ten")?);
    ensure!(read_ahead(machine, "/srv/five")? == "4096", "others stay with the parent");
    let ratio = machine.sh("cat /proc/sys/vm/dirty_background_ratio")?;
    ensure!(ratio.trim() == "6", "vm.dirty_background_ratio is {ratio}");
    let (kind, one) = origin(machine, "/srv/ten")?;
    ensure!(kind == "foreread", "doctor: {one}");
    ensure!(one["findings"].as_array().is_some_and(Vec::is_empty), "doctor finds: {one}");
    refused(machine, "foreread persist read_ahead=1M --on /srv/ten --with udev", "foreread's own")?;
    machine.sh("foreread rollback all")?;
    let active = machine.sh("cat /etc/tuned/active_profile")?;
    ensure!(active.trim() == "throughput-performance", "after rollback: {active}");
    machine.sh("systemctl stop tuned && rm -f /etc/tuned/active_profile")?;
    Ok(())
}

/// Waits for a read-ahead value: the daemon runs before it has set any value.
fn wait_for(machine: &mut GuestMachine, point: &str, wanted: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(300);
    while read_ahead(machine, point)? != wanted {
        let now = read_ahead(machine, point)?;
        ensure!(Instant::now() < deadline, "{point} is at {now} and not {wanted}");
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// An NFS mount gets the value in nfs.conf, through nfsrahead of nfs-utils.
pub fn nfs(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let result = mounted_from_itself(machine);
    // A machine that mounts its own export can shut down only after unmounting it.
    machine.sh("umount -q -f -l /mnt/nfs; systemctl stop nfs-server; foreread rollback all")?;
    result
}

fn mounted_from_itself(machine: &mut GuestMachine) -> Result<()> {
    machine.sh("echo '/srv/lv *(rw,fsid=0,no_subtree_check,insecure)' >/etc/exports
         systemctl start nfs-server
         mkdir -p /mnt/nfs")?;
    let mount = "mount -t nfs4 127.0.0.1:/ /mnt/nfs && udevadm settle";
    machine.sh(mount)?;
    ensure!(read_ahead(machine, "/mnt/nfs")? == "128", "a new mount of NFS");
    let (kind, one) = origin(machine, "/mnt/nfs")?;
    ensure!(kind != "unknown", "doctor: {one}");
    for window in [1024, 2048] {
        machine.sh(&format!("foreread persist read_ahead={window}K --on /mnt/nfs"))?;
        machine.sh("umount /mnt/nfs")?;
        machine.sh(mount)?;
        let now = read_ahead(machine, "/mnt/nfs")?;
        ensure!(now == window.to_string(), "nfs.conf says {window}, and it is {now}");
    }
    let (kind, one) = origin(machine, "/mnt/nfs")?;
    ensure!(kind == "foreread", "doctor: {one}");
    Ok(())
}

/// A udev rule must not set a value that LVM's metadata sets.
pub fn lvm(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh("foreread persist --with lvm read_ahead=640K --on /srv/two")?;
    ensure!(read_ahead(machine, "/srv/two")? == "640", "LVM sets it at once");
    let (kind, one) = origin(machine, "/srv/two")?;
    ensure!(kind == "lvm", "doctor: {one}");
    machine.sh("foreread persist --with lvm read_ahead=896K --on /srv/two")?;
    let metadata = machine.sh("lvs --noheadings --units k -o lv_read_ahead vg/two")?;
    ensure!(metadata.trim() == "896.00k", "the metadata: {metadata}");
    refused(machine, "foreread persist read_ahead=1M --on /srv/two", "LVM metadata")?;
    machine.sh("lvchange -q -r 512k vg/two")?;
    let edited = machine.attempt("foreread rollback all")?;
    ensure!(edited.code == 4, "somebody else has set it since: {edited:?}");
    machine.sh("lvchange -q -r 896k vg/two && foreread rollback all")?;
    let metadata = machine.sh("lvs --noheadings -o lv_read_ahead vg/two")?;
    ensure!(metadata.trim() == "auto", "what was there before: {metadata}");
    Ok(())
}
