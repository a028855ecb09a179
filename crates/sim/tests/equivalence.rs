//! The fast way and the slow way give the same, the same seed gives the same, and nothing that is
//! simulated breaks what holds for any cache and any disk.

mod scenes;

use foreread_sim::{Machine, Outcome, Replacement, run};
use proptest::prelude::*;
use units::{Bytes, Nanos};

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

    #[test]
    fn what_holds_for_any_cache_and_any_disk_holds(scene in any_scene()) {
        let outcome = outcome(&scene, false);
        let asked = scene.asked();
        // Bytes delivered are bytes asked for.
        if scene.runs_to_the_end() {
            prop_assert_eq!(outcome.useful(), asked);
        } else {
            prop_assert!(outcome.useful() <= asked);
        }
        let got: Bytes = outcome.readers.iter().map(|reader| reader.useful).sum();
        prop_assert_eq!(outcome.stream.useful + outcome.random.useful, got);
        let (latencies, requests) =
            (outcome.stream.latency.count() + outcome.random.latency.count(), outcome.requests());
        prop_assert_eq!(latencies, requests);
        let cache = &outcome.cache;
        prop_assert_eq!(cache.hits + cache.late + cache.misses, cache.references);
        prop_assert!(cache.used + cache.thrashed <= cache.read);
        prop_assert!(cache.used <= cache.references);
        // Every page that was read came through a request, and nothing else did.
        let data = outcome.device.bytes - outcome.device.metadata;
        prop_assert_eq!(data, Bytes::new(cache.read.get() * 4096));
        // No policy reads beyond the end of a file: a page is read again only if it was evicted.
        prop_assert!(cache.read <= scene.pages() + cache.evicted);
        // No time is below what the processor, and what the device at its best, take.
        prop_assert!(outcome.settled >= outcome.elapsed);
        let peak = scene.machine.model.peak().throughput;
        let least = peak.time_for(outcome.device.bytes).scaled(0.99);
        prop_assert!(outcome.settled >= least, "{} {}", outcome.settled, least);
        let readers = outcome.readers.len() as u64;
        prop_assert!(outcome.processor.get() <= outcome.settled.get() * readers + 10_000_000);
        for reader in &outcome.readers {
            prop_assert!(reader.stalled <= outcome.settled);
            prop_assert!(reader.elapsed <= outcome.settled.max(reader.elapsed));
        }
        if scene.machine.replacement == Replacement::Lru {
            prop_assert!(cache.activated.is_zero());
        }
        prop_assert!(outcome.elapsed <= scene.time.max(outcome.elapsed).max(Nanos::ZERO));
    }
}
