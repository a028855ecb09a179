//! The checks in the guest, in this order: later checks use the results of earlier ones.

mod arrays;
mod doctor;
mod overlay;
mod owners;
mod persist;
mod power;
mod signals;
mod tunables;

use anyhow::{Result, bail};

use super::stage::Stage;

#[derive(Debug)]
pub struct GuestCheck {
    pub name: &'static str,
    pub run: fn(&mut Stage) -> Result<()>,
}

pub const ALL: &[GuestCheck] = &[
    GuestCheck { name: "guest_boots_with_its_disks", run: arrays::boots },
    GuestCheck { name: "guest_makes_arrays_and_volumes", run: arrays::make },
    GuestCheck { name: "guest_doctor_explains_all", run: doctor::explains_all },
    GuestCheck { name: "guest_doctor_finds_owners", run: doctor::finds_owners },
    GuestCheck { name: "guest_sets_what_raid5_has", run: tunables::of_raid5 },
    GuestCheck { name: "guest_sets_what_controllers_have", run: tunables::of_controllers },
    GuestCheck { name: "guest_holds_the_sync_speed", run: tunables::sync_speed },
    GuestCheck { name: "guest_reaches_open_files_on_overlayfs", run: overlay::open_file },
    GuestCheck { name: "guest_sweeps_a_raid5", run: arrays::sweep },
    GuestCheck { name: "guest_tuned_takes_a_child_profile", run: owners::tuned },
    GuestCheck { name: "guest_nfs_mounts_get_what_nfs_conf_says", run: owners::nfs },
    GuestCheck { name: "guest_lvm_metadata_are_one_owner", run: owners::lvm },
    GuestCheck { name: "guest_keeps_what_was_persisted", run: persist::over_a_reboot },
    GuestCheck { name: "guest_takes_back_what_was_persisted", run: persist::taken_back },
    GuestCheck { name: "guest_rolls_back_after_a_power_cut", run: power::cut_in_a_sweep },
];

/// Checks that run only if they are named: how long they take under emulation is not known yet.
pub const ON_REQUEST: &[GuestCheck] = &[
    GuestCheck {
        name: "guest_receives_signals_by_each_mechanism",
        run: signals::by_each_mechanism,
    },
    GuestCheck { name: "guest_watches_and_adapts_readers", run: signals::of_readers },
];

/// Returns the checks with these names, or all of [`ALL`]. The first two prepare the others.
pub fn choose(names: &[&str]) -> Result<Vec<&'static GuestCheck>> {
    let known = || ALL.iter().chain(ON_REQUEST);
    if let Some(unknown) = names.iter().find(|name| known().all(|check| check.name != **name)) {
        bail!("there is no check {unknown} (cargo run -p xtask -- guest list)");
    }
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let chosen = |(at, check): &(usize, &GuestCheck)| *at < 2 || names.contains(&check.name);
    Ok(known().enumerate().filter(chosen).map(|(_, check)| check).collect())
}
