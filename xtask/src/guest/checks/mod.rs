//! What is checked in the guest, in this order: a later check finds what the earlier ones made.

mod arrays;
mod doctor;
mod owners;
mod persist;
mod power;
mod tunables;

use anyhow::{Result, bail};

use super::stage::Stage;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut Stage) -> Result<()>,
}

/// All checks.
pub const ALL: &[Check] = &[
    Check { name: "guest_boots_with_its_disks", run: arrays::boots },
    Check { name: "guest_makes_arrays_and_volumes", run: arrays::make },
    Check { name: "guest_doctor_explains_all", run: doctor::explains_all },
    Check { name: "guest_doctor_finds_owners", run: doctor::finds_owners },
    Check { name: "guest_sets_what_raid5_has", run: tunables::of_raid5 },
    Check { name: "guest_sets_what_controllers_have", run: tunables::of_controllers },
    Check { name: "guest_holds_the_sync_speed", run: tunables::sync_speed },
    Check { name: "guest_sweeps_a_raid5", run: arrays::sweep },
    Check { name: "guest_tuned_takes_a_child_profile", run: owners::tuned },
    Check { name: "guest_nfs_mounts_get_what_nfs_conf_says", run: owners::nfs },
    Check { name: "guest_lvm_metadata_are_one_owner", run: owners::lvm },
    Check { name: "guest_keeps_what_was_persisted", run: persist::over_a_reboot },
    Check { name: "guest_takes_back_what_was_persisted", run: persist::taken_back },
    Check { name: "guest_rolls_back_after_a_power_cut", run: power::cut_in_a_sweep },
];

/// The checks of these names, or all. The first two make what all others use.
pub fn choose(names: &[&str]) -> Result<Vec<&'static Check>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|check| check.name != **name)) {
        bail!("there is no check {unknown} (cargo run -p xtask -- guest list)");
    }
    let chosen =
        |(at, check): &(usize, &Check)| names.is_empty() || *at < 2 || names.contains(&check.name);
    Ok(ALL.iter().enumerate().filter(chosen).map(|(_, check)| check).collect())
}
