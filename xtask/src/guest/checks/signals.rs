//! Observes read-ahead on a kernel without tracepoints for it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::guest::readers;
use crate::guest::stage::Stage;

/// Directory of the readers' files.
const DIRECTORY: &str = "/srv/ten";

/// Each mechanism that this kernel accepts reports all signals of read-ahead, and passes the
/// self-test.
pub fn by_each_mechanism(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    for rung in ["fentry", "kprobe"] {
        let text = machine.sh(&format!("FOREREAD_PROBES={rung} foreread info --json"))?;
        let info: Value = serde_json::from_str(&text).context("info --json")?;
        for name in ["miss", "mark", "window", "plain"] {
            let signal = named(&info["signals"], name)?;
            ensure!(signal["rung"] == rung, "{rung}: {signal}");
        }
        let watching = named(&info["features"], "watch_streams")?;
        ensure!(watching["works"] == true && watching["reason"].is_null(), "{rung}: {watching}");
    }
    Ok(())
}

/// `watch` shows nine readers, and `auto` prefetches for the one that reads backward.
pub fn of_readers(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    readers::make(machine, DIRECTORY)?;
    readers::start(machine, DIRECTORY)?;
    let watched = machine.sh("foreread watch --once --json --interval 4s")?;
    let adapted = machine.sh(&format!("foreread auto {DIRECTORY} --duration 10s --json"))?;
    readers::stop(machine)?;
    machine.sh(&format!("rm {DIRECTORY}/file?"))?;
    for number in 1..=9 {
        let path = format!("{DIRECTORY}/file{number}");
        ensure!(watched.contains(&path), "watch does not show {path}: {watched}");
    }
    let backward = |line: &&str| line.contains("/file9\"") && line.contains("read backward");
    let decision = adapted.lines().find(backward);
    let decision = decision.with_context(|| format!("nothing for the reader: {adapted}"))?;
    ensure!(decision.contains("\"applied\""), "not applied: {decision}");
    Ok(())
}

fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value> {
    let mut entries = list.as_array().into_iter().flatten();
    entries.find(|one| one["name"] == name).with_context(|| format!("no {name} in {list}"))
}
