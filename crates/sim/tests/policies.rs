//! Properties of every read-ahead policy of the registry, on any cache and any disk.

mod holds;
mod scenes;

use holds::keeps_what_holds;
use policy::REGISTRY;
use proptest::prelude::*;
use scenes::{Scene, any_scene, with_policy};

/// Returns the number of scenes in which each policy is tested.
fn cases() -> u32 {
    scenes::cases() / 3
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Runs each scene with every policy of the registry, including policies added later.
    #[test]
    fn every_policy_keeps_what_holds_for_any_cache_and_any_disk(scene in any_scene()) {
        for entry in REGISTRY {
            let machine = with_policy(scene.machine.clone(), entry.name.parse().expect("a policy"));
            let scene = Scene { machine, ..scene.clone() };
            keeps_what_holds(&scene)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}", entry.name)))?;
        }
    }

    /// Runs each scene with its own policy, most often Linux's.
    #[test]
    fn what_holds_for_any_cache_and_any_disk_holds(scene in any_scene()) {
        keeps_what_holds(&scene)?;
    }
}
