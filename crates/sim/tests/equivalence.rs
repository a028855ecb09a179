//! The fast path and the slow path give equal results, and so do two runs with the same seed.

mod scenes;

use proptest::prelude::*;

use scenes::{any_scene, outcome, same_by_extents_and_by_pages};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scenes::cases()))]

    #[test]
    fn extents_and_single_pages_give_the_same(scene in any_scene()) {
        same_by_extents_and_by_pages(&scene)?;
    }

    #[test]
    fn the_same_seed_gives_the_same(scene in any_scene()) {
        prop_assert_eq!(outcome(&scene, false), outcome(&scene, false));
    }
}
