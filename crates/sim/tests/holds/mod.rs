//! Properties of every read-ahead algorithm, on any cache and any disk.

use foreread_sim::oracle::{OracleWork, lower_bound};
use foreread_sim::{Replacement, SimOutcome, run};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use units::{Bytes, Pages};
use workload::AccessMethod;

use super::scenes::Scene;

/// Checks that every requested byte was delivered, and that each is counted once.
fn delivers(scene: &Scene, outcome: &SimOutcome) -> TestCaseResult {
    let asked = scene.asked();
    if scene.runs_to_the_end() {
        prop_assert_eq!(outcome.useful(), asked);
    } else {
        prop_assert!(outcome.useful() <= asked);
    }
    let got: Bytes = outcome.readers.iter().map(|reader| reader.useful).sum();
    prop_assert_eq!(outcome.stream.useful + outcome.random.useful, got);
    let latencies = outcome.stream.latency.count() + outcome.random.latency.count();
    prop_assert_eq!(latencies, outcome.requests());
    Ok(())
}

/// Checks that no page is read beyond the end of a file, without a request, or while it is cached:
/// a page is read again only after its eviction.
fn reads_within_files(scene: &Scene, outcome: &SimOutcome) -> TestCaseResult {
    let cache = &outcome.cache;
    prop_assert_eq!(cache.hits + cache.late + cache.misses, cache.references);
    prop_assert!(cache.used + cache.thrashed <= cache.read);
    prop_assert!(cache.used <= cache.references);
    // Every page that was read came through a request, and nothing else did.
    let data = outcome.device.bytes - outcome.device.metadata;
    prop_assert_eq!(data, Bytes::new(cache.read.get() * 4096));
    prop_assert!(cache.read <= scene.pages() + cache.evicted);
    if scene.machine.replacement == Replacement::Lru {
        prop_assert!(cache.activated.is_zero());
    }
    // No policy removes pages from the cache: if all pages fit, none is evicted.
    let room = scene.machine.cache.get() / 4096;
    prop_assert!(cache.evicted.is_zero() || cache.read > Pages::new(room));
    Ok(())
}

/// Checks that nothing takes less time than the processor and the device need at their best.
fn takes_its_time(scene: &Scene, outcome: &SimOutcome) -> TestCaseResult {
    prop_assert!(outcome.settled >= outcome.elapsed);
    // Repeated reads may come from the device's own cache.
    let once = outcome.device.bytes.min(scene.pages().to_bytes(policy::cache::PAGE));
    let least = scene.machine.model.least_time(once).scaled(0.99);
    prop_assert!(outcome.settled >= least, "{} {}", outcome.settled, least);
    let readers = outcome.readers.len() as u64;
    prop_assert!(outcome.processor.get() <= outcome.settled.get() * readers + 10_000_000);
    for reader in &outcome.readers {
        prop_assert!(reader.stalled <= outcome.settled);
    }
    prop_assert!(outcome.elapsed <= scene.time);
    // The lower bound, which `--limits` prints, covers all requested data.
    if scene.runs_to_the_end() && scene.workload.access == AccessMethod::Read {
        let bound = lower_bound(&scene.machine, &work(scene)).time();
        let least = bound.scaled(0.99);
        prop_assert!(outcome.settled >= least, "{} {}", outcome.settled, least);
    }
    Ok(())
}

fn work(scene: &Scene) -> OracleWork {
    let scenario = scene.scenario();
    let steps = |reader: foreread_sim::Reader<foreread_sim::AccessSteps>| {
        reader.steps.into_iter().collect()
    };
    OracleWork {
        files: scenario.files,
        opens: scenario.opens,
        readers: scenario.readers.into_iter().map(steps).collect(),
    }
}

/// Checks the properties of a policy of the registry in any scene.
pub fn keeps_what_holds(scene: &Scene) -> TestCaseResult {
    let outcome = run(&scene.machine, scene.scenario()).expect("a scene that can be simulated");
    delivers(scene, &outcome)?;
    reads_within_files(scene, &outcome)?;
    takes_its_time(scene, &outcome)
}
