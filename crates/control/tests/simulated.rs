//! Checks that `auto` keeps the invariants of every read-ahead algorithm.

extern crate policy as foreread_policy;
extern crate sim as foreread_sim;

#[path = "../../policy/tests/contract/mod.rs"]
mod contract;
#[path = "../../sim/tests/holds/mod.rs"]
mod holds;
#[path = "../../sim/tests/scenes/mod.rs"]
mod scenes;

use contract::{keeps_its_contract, shape, step};
use foreread_control::POLICIES;
use holds::keeps_what_holds;
use policy::PolicySpec;
use proptest::prelude::*;
use scenes::{Scene, any_scene, same_by_extents_and_by_pages, with_policy};

fn auto() -> PolicySpec {
    POLICIES.parse("auto").expect("a policy")
}

fn any_scene_under_auto() -> impl Strategy<Value = Scene> {
    any_scene().prop_map(|scene| Scene { machine: with_policy(scene.machine, auto()), ..scene })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scenes::cases() / 3))]

    #[test]
    fn it_keeps_what_holds_for_any_cache_and_any_disk(scene in any_scene_under_auto()) {
        keeps_what_holds(&scene)?;
    }

    #[test]
    fn extents_and_single_pages_give_the_same(scene in any_scene_under_auto()) {
        same_by_extents_and_by_pages(&scene)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_keeps_the_contract_of_a_policy(
        shape in shape(), steps in prop::collection::vec(step(), 1..24),
    ) {
        keeps_its_contract(&auto(), shape, &steps)?;
    }
}
