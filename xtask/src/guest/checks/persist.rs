//! What must be effective after a reboot, and for a device that appears late.

use anyhow::{Result, ensure};

use crate::guest::machine::GuestMachine;
use crate::guest::stage::{LATE, SATA, Stage};

/// A persisted setting, its target, and the expected content of the files.
struct Lasting {
    settings: &'static str,
    target: String,
    files: Vec<(String, &'static str)>,
}

fn lasting() -> Vec<Lasting> {
    let of =
        |device: &str, file: &str| format!("/sys/block/$(basename $(realpath {device}))/{file}");
    let array = |file| of("/dev/md/five", file);
    let sata = |file| of(&SATA.path(), file);
    vec![
        Lasting {
            settings: "stripe_cache_size=2048 group_thread_cnt=2 sync_speed_max=40M/s",
            target: "--on /srv/five".to_owned(),
            files: vec![
                (array("md/stripe_cache_size"), "2048"),
                (array("md/group_thread_cnt"), "2"),
                (array("md/sync_speed_max"), "40960 (local)"),
            ],
        },
        // A second call for the same array adds to the first.
        Lasting {
            settings: "read_ahead=2M",
            target: "--on /srv/five".to_owned(),
            files: vec![(array("queue/read_ahead_kb"), "2048")],
        },
        Lasting {
            settings: "read_ahead=1536K --with systemd",
            target: "--on /srv/ten".to_owned(),
            files: vec![(of("/dev/md/ten", "queue/read_ahead_kb"), "1536")],
        },
        Lasting {
            settings: "read_ahead=1280K",
            target: "--on /srv/lv".to_owned(),
            files: vec![(of("/dev/vg/lv", "queue/read_ahead_kb"), "1280")],
        },
        Lasting {
            settings: "read_ahead=768K --with lvm",
            target: "--on /srv/two".to_owned(),
            files: vec![(of("/dev/vg/two", "queue/read_ahead_kb"), "768")],
        },
        Lasting {
            settings: "queue_depth=3 nr_requests=40 scheduler=mq-deadline",
            target: format!("--on {}", SATA.path()),
            files: vec![
                (sata("device/queue_depth"), "3"),
                (sata("queue/nr_requests"), "40"),
                (sata("queue/scheduler"), "[mq-deadline] none"),
            ],
        },
        Lasting {
            settings: "vm.dirty_background_ratio=7 vm.swappiness=11 speed_limit_max=90M/s",
            target: String::new(),
            files: vec![
                ("/proc/sys/vm/dirty_background_ratio".to_owned(), "7"),
                ("/proc/sys/vm/swappiness".to_owned(), "11"),
                ("/proc/sys/dev/raid/speed_limit_max".to_owned(), "92160"),
            ],
        },
    ]
}

fn late() -> Lasting {
    let file = |file| format!("/sys/block/$(basename $(realpath {}))/{file}", LATE.path());
    Lasting {
        settings: "read_ahead=4M queue_depth=9",
        target: format!("--on {}", LATE.path()),
        files: vec![(file("queue/read_ahead_kb"), "4096"), (file("device/queue_depth"), "9")],
    }
}

/// Every persisted tunable is effective after an orderly reboot, with every kind of owner: a udev
/// rule, a systemd unit, sysctl.d, LVM's metadata. A disk that is missing at boot gets its setting
/// when it appears. The unit that verifies settings after boot reports its result, and fails if a
/// setting has drifted.
pub fn over_a_reboot(stage: &mut Stage) -> Result<()> {
    let boot_id = "cat /proc/sys/kernel/random/boot_id";
    let machine = stage.machine()?;
    let before = machine.sh(boot_id)?;
    plug(machine)?;
    for Lasting { settings, target, .. } in lasting().iter().chain([&late()]) {
        machine.sh(&format!("foreread persist {settings} {target}"))?;
    }
    let machine = stage.reboot()?;
    ensure!(machine.sh(boot_id)? != before, "the guest was not booted again");
    machine.sh("udevadm settle")?;
    let mut wrong = mismatches(machine, &lasting())?;
    plug(machine)?;
    wrong.extend(mismatches(machine, &[late()])?);
    ensure!(wrong.is_empty(), "after the reboot:\n{}", wrong.join("\n"));
    machine.sh("foreread verify --no-probe")?;
    boot_check_reports(machine)
}

fn boot_check_reports(machine: &mut GuestMachine) -> Result<()> {
    let unit = "foreread-verify.service";
    let said = machine.sh(&format!("journalctl -b -q -o cat -u {unit}"))?;
    ensure!(said.contains("holds: ") && said.contains(&LATE.path()), "at boot: {said}");
    machine.sh(&format!("systemctl restart {unit}"))?;
    machine.sh("echo 64 >/sys/block/$(basename $(realpath /dev/md/five))/queue/read_ahead_kb")?;
    let drifted = machine.attempt(&format!("systemctl restart {unit}"))?;
    ensure!(drifted.code != 0, "the unit does not fail over a drift: {drifted:?}");
    let said = machine.sh(&format!("journalctl -b -q -o cat -u {unit}"))?;
    ensure!(said.contains("DRIFT: read_ahead is 64 KiB"), "over a drift: {said}");
    Ok(())
}

/// Rollback removes all files except an edited one, which stays and is named.
pub fn taken_back(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    let rule = "$(grep -l nr_requests /etc/udev/rules.d/99-foreread-*.rules)";
    machine.sh(&format!("echo '# mine' >>{rule}"))?;
    let verified = machine.attempt("foreread verify --no-probe")?;
    ensure!(verified.code == 3 && verified.stdout.contains("was edited"), "{verified:?}");
    let left = machine.attempt("foreread rollback all")?;
    ensure!(left.code == 4 && left.stderr.contains("edited since foreread wrote it"), "{left:?}");
    machine.sh(&format!("sed -i '$d' {rule}"))?;
    machine.sh("foreread rollback all")?;
    let left = machine.sh("grep -rl foreread /etc/udev /etc/sysctl.d /etc/systemd/system || :")?;
    ensure!(left.is_empty(), "left behind:\n{left}");
    let volume = machine.sh("lvs --noheadings -o lv_read_ahead vg/two")?;
    ensure!(volume.trim() == "auto", "LVM's metadata: {volume}");
    Ok(())
}

fn mismatches(machine: &mut GuestMachine, lasting: &[Lasting]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (file, wanted) in lasting.iter().flat_map(|one| &one.files) {
        let now = machine.sh(&format!("cat {file}"))?;
        if now.trim() != *wanted {
            wrong.push(format!("{file} is {} and not {wanted}", now.trim()));
        }
    }
    Ok(wrong)
}

/// Plugs in the late disk, and waits until udev has processed it.
fn plug(machine: &mut GuestMachine) -> Result<()> {
    let path = LATE.path();
    machine.sh(&format!("test ! -e {path}"))?;
    machine.plug(&LATE)?;
    machine.sh(&format!(
        "for i in $(seq 900); do
             test -b {path} && udevadm settle && exit
             sleep 0.2
         done
         exit 1"
    ))?;
    Ok(())
}
