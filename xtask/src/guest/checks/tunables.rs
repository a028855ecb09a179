//! Tunables that exist only with arrays and controllers.

use anyhow::{Result, ensure};

use crate::guest::machine::GuestMachine;
use crate::guest::stage::{RAID5, SATA, Stage};

/// A tunable as on the command line, its file, and the file's expected content.
struct Knob {
    setting: &'static str,
    file: String,
    shows: &'static str,
}

impl Knob {
    fn of_array(setting: &'static str, file: &str, shows: &'static str) -> Self {
        Self {
            setting,
            file: format!("/sys/block/$(basename $(realpath /dev/md/five))/{file}"),
            shows,
        }
    }

    fn value(&self, machine: &mut GuestMachine) -> Result<String> {
        Ok(machine.sh(&format!("cat {}", self.file))?.trim().to_owned())
    }
}

/// foreread sets, verifies and restores the tunables of RAID 5 with the real md driver.
pub fn of_raid5(stage: &mut Stage) -> Result<()> {
    let knobs = [
        Knob::of_array("stripe_cache_size=1024", "md/stripe_cache_size", "1024"),
        Knob::of_array("group_thread_cnt=2", "md/group_thread_cnt", "2"),
        Knob::of_array("preread_bypass_threshold=8", "md/preread_bypass_threshold", "8"),
        Knob::of_array("sync_speed_min=3M/s", "md/sync_speed_min", "3072 (local)"),
        Knob::of_array("sync_speed_max=30M/s", "md/sync_speed_max", "30720 (local)"),
        Knob::of_array("read_ahead=3M", "queue/read_ahead_kb", "3072"),
    ];
    set_and_put_back(stage.machine()?, &knobs, "/srv/five")
}

/// Tests the queue depth of a SCSI host adapter, NCQ and scsi_debug, and the scheduler.
pub fn of_controllers(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let emulated = machine.sh("grep -l scsi_debug /sys/class/block/sd*/device/model")?;
    let emulated = emulated.trim().trim_end_matches("/device/model");
    let emulated = emulated.replace("/sys/class/block", "/dev");
    ensure!(!emulated.is_empty() && !emulated.contains('\n'), "disks of scsi_debug: {emulated}");
    for (path, depth, setting) in [
        (RAID5[0].path(), "7", "queue_depth=7"),
        (SATA.path(), "1", "queue_depth=1"),
        (emulated, "5", "queue_depth=5"),
    ] {
        let below = |file: &str| format!("/sys/class/block/$(basename $(realpath {path}))/{file}");
        let knobs = [
            Knob { setting, file: below("device/queue_depth"), shows: depth },
            Knob {
                setting: "scheduler=mq-deadline",
                file: below("queue/scheduler"),
                shows: "[mq-deadline] none",
            },
            Knob { setting: "nr_requests=48", file: below("queue/nr_requests"), shows: "48" },
        ];
        set_and_put_back(machine, &knobs, &path)?;
    }
    Ok(())
}

/// Applies the settings in the given and in reverse order, verifies them, and rolls back.
fn set_and_put_back(machine: &mut GuestMachine, knobs: &[Knob], target: &str) -> Result<()> {
    let before = values(machine, knobs)?;
    let settings: Vec<&str> = knobs.iter().map(|knob| knob.setting).collect();
    let reversed: Vec<&str> = settings.iter().rev().copied().collect();
    for settings in [settings, reversed] {
        let settings = settings.join(" ");
        machine.sh(&format!("foreread apply {settings} --on {target}"))?;
        for (knob, before) in knobs.iter().zip(&before) {
            let now = knob.value(machine)?;
            ensure!(now == knob.shows, "{} was {before} and is {now}: {settings}", knob.file);
        }
        machine.sh("foreread verify --no-probe")?;
        machine.sh("foreread rollback all")?;
        let after = values(machine, knobs)?;
        ensure!(after == before, "before {before:?}, after rollback {after:?}");
    }
    Ok(())
}

fn values(machine: &mut GuestMachine, knobs: &[Knob]) -> Result<Vec<String>> {
    knobs.iter().map(|knob| knob.value(machine)).collect()
}

/// A check of the array obeys the applied speed limit, and is faster without it.
pub fn sync_speed(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let slow = speed_of_a_check(machine, "sync_speed_min=256K/s sync_speed_max=512K/s")?;
    let fast = speed_of_a_check(machine, "sync_speed_min=500M/s sync_speed_max=1000M/s")?;
    println!("a check of the array: {slow} KiB/s held to 512 KiB/s, {fast} KiB/s without");
    // md measures in steps of seconds. An emulated machine on a busy host reaches at least 2 MiB/s.
    ensure!(slow <= 1024, "held to 512 KiB/s, the array is checked at {slow} KiB/s");
    ensure!(fast > 2 * slow, "{fast} KiB/s without a limit, {slow} KiB/s with one");
    Ok(())
}

/// Returns the mean speed in KiB/s over 8 s, or over the whole check if it is shorter.
fn speed_of_a_check(machine: &mut GuestMachine, settings: &str) -> Result<u64> {
    let script = format!(
        "set -e
         foreread apply {settings} --on /srv/five >/dev/null 2>&1
         cd /sys/block/$(basename $(realpath /dev/md/five))/md
         start=$(date +%s%N)
         echo check >sync_action
         for i in $(seq 40); do
             sleep 0.2
             done=$(cat sync_completed)
             [ \"$done\" != none ] || break
         done
         end=$(date +%s%N)
         case $done in
             none) sectors=$((2 * $(cat component_size))) ;;
             *) sectors=${{done%% *}} ;;
         esac
         echo idle >sync_action
         foreread rollback all >/dev/null 2>&1
         echo $((sectors * 500000000 / (end - start)))"
    );
    Ok(machine.sh(&script)?.trim().parse()?)
}
