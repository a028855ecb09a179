//! Open files on overlayfs, which kernels before 6.13 attach to those of its layers in another way.

use anyhow::{Context, Result, ensure};

use crate::guest::stage::Stage;

/// `apply --open-files` reaches the open file on the layer, and `rollback` restores it.
pub fn open_file(stage: &mut Stage) -> Result<()> {
    let machine = stage.machine()?;
    machine.sh("modprobe overlay
         mkdir -p /srv/empty /srv/merged; head -c 1M /dev/zero >/srv/ten/layered; sync
         mount -t overlay -o lowerdir=/srv/ten:/srv/empty overlay /srv/merged
         systemd-run --quiet --collect --unit holder -p StandardInput=file:/srv/merged/layered \
             sleep 1000")?;
    let applied = machine.sh("foreread apply read_ahead=640K --on /srv/ten --open-files")?;
    let undo = applied.lines().find_map(|line| line.strip_prefix("# undo: "));
    let restored = machine.sh(undo.context("no undo")?)?;
    machine.sh("systemctl stop holder; umount /srv/merged; rm /srv/ten/layered")?;
    for (said, change) in [(&applied, "→ 640 KiB"), (&restored, "window 640 KiB →")] {
        let is_it = |line: &str| line.contains("open in sleep") && line.contains(change);
        ensure!(said.lines().any(is_it), "{change}: {said}");
    }
    Ok(())
}
