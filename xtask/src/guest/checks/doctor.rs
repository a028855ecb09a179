//! Runs doctor on stacks that the host does not have.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::guest::machine::GuestMachine;
use crate::guest::stage::Stage;

/// Every bdi's value has an explanation; those of md, LVM and scsi_debug are the kernel's defaults.
pub fn explains_all(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let document = doctor(machine, "")?;
    let all = document["storage"].as_array().context("no storage")?;
    for one in all {
        let (name, origin) = (&one["name"], &one["origin"]);
        ensure!(origin["kind"] != "unknown", "{name} is not explained: {one}");
    }
    for (path, layer) in [("/srv/five", "raid5"), ("/srv/ten", "raid10"), ("/srv/lv", "lvm")] {
        let document = doctor(machine, path)?;
        let one = &document["storage"][0];
        let stacks = one["stacks"].to_string();
        ensure!(stacks.contains(&format!("\"{layer}\"")), "no {layer} below {path}: {one}");
        ensure!(one["origin"]["kind"] == "kernel", "{path}: {one}");
        let confidence = &one["origin"]["confidence"];
        ensure!(confidence == "high" || confidence == "medium", "{path}: {one}");
    }
    Ok(())
}

/// doctor finds LVM metadata and a udev rule as owners of a value.
pub fn finds_owners(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh("lvchange -q -r 768k vg/lv")?;
    let lvm = doctor(machine, "/srv/lv")?;
    machine.sh("lvchange -q -r auto vg/lv")?;
    let one = &lvm["storage"][0];
    ensure!(one["read_ahead_kib"] == 768, "lvchange did not set it: {one}");
    ensure!(one["origin"]["kind"] == "lvm", "not LVM: {one}");

    let rule = "/etc/udev/rules.d/90-guest.rules";
    let array = "/sys/block/$(basename $(realpath /dev/md/ten))";
    machine.sh(&format!(
        "echo 'SUBSYSTEM==\"block\", ENV{{MD_NAME}}==\"*:ten\", \
             ATTR{{queue/read_ahead_kb}}=\"896\"' >{rule}
         udevadm control --reload
         cat {array}/queue/read_ahead_kb >/run/before
         udevadm trigger --settle --action=change {array}"
    ))?;
    let udev = doctor(machine, "/srv/ten")?;
    machine.sh(&format!(
        "rm {rule}
         udevadm control --reload
         cat /run/before >{array}/queue/read_ahead_kb"
    ))?;
    let one = &udev["storage"][0];
    ensure!(one["read_ahead_kib"] == 896, "the rule did not set it: {one}");
    ensure!(one["origin"]["kind"] == "udev", "not udev: {one}");
    ensure!(one["origin"].to_string().contains("90-guest.rules"), "which rule? {one}");
    Ok(())
}

fn doctor(machine: &mut GuestMachine, path: &str) -> Result<Value> {
    let printed = machine.sh(&format!("foreread doctor --json {path}"))?;
    serde_json::from_str(&printed).context("doctor's JSON")
}
