//! The fast way and the slow way give the same, and the same seed gives the same.

mod scenes;

use foreread_sim::{Machine, Outcome, run};
use proptest::prelude::*;

use scenes::{Scene, any_scene};

fn outcome(scene: &Scene, page_by_page: bool) -> Outcome {
    let machine = Machine { page_by_page, ..scene.machine.clone() };
    run(&machine, scene.scenario()).expect("a scene that can be simulated")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scenes::cases()))]

    #[test]
    fn extents_and_single_pages_give_the_same(scene in any_scene()) {
        prop_assert_eq!(outcome(&scene, false), outcome(&scene, true));
    }

    #[test]
    fn the_same_seed_gives_the_same(scene in any_scene()) {
        prop_assert_eq!(outcome(&scene, false), outcome(&scene, false));
    }
}
