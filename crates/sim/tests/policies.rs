//! What holds for every read-ahead policy that there is, on any cache and any disk.

mod holds;
mod scenes;

use holds::keeps_what_holds;
use policy::REGISTRY;
use proptest::prelude::*;
use scenes::{Scene, any_scene, with_policy};

/// How many scenes each policy is tried in.
fn cases() -> u32 {
    scenes::cases() / 3
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Each scene is run with every policy, whichever there are: one that is added is among them.
    #[test]
    fn every_policy_keeps_what_holds_for_any_cache_and_any_disk(scene in any_scene()) {
        for entry in REGISTRY {
            let machine = with_policy(scene.machine.clone(), entry.name.parse().expect("a policy"));
            let scene = Scene { machine, ..scene.clone() };
            keeps_what_holds(&scene)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}", entry.name)))?;
        }
    }

    /// The scene's own policy, which is Linux's most often.
    #[test]
    fn what_holds_for_any_cache_and_any_disk_holds(scene in any_scene()) {
        keeps_what_holds(&scene)?;
    }
}
