//! Page numbers without time: the table of pages gives the same counts as the simulation's cache.

use foreread_sim::{FileSystem, Replacement, SimMachine, replay};
use model::Spec;
use policy::PolicySpec;
use policy::cache::PAGE;
use proptest::prelude::*;
use units::{Bytes, Kib, Pages};

fn any_numbers() -> impl Strategy<Value = Vec<u64>> {
    let run = (0u64..3000, 1u64..60, 0u64..3);
    prop::collection::vec(run, 1..60).prop_map(|runs| {
        let of =
            |(start, length, step): (u64, u64, u64)| (0..length).map(move |i| start + i * step);
        runs.into_iter().flat_map(of).collect()
    })
}

fn any_policy() -> impl Strategy<Value = &'static str> {
    let names = policy::REGISTRY.iter().map(|entry| entry.name);
    prop::sample::select(names.chain(["fixed,blocks=2"]).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_table_of_pages_is_the_cache(
        numbers in any_numbers(),
        policy in any_policy(),
        window in prop::sample::select(vec![0u64, 8, 128, 1024]),
        cache in prop::sample::select(vec![64u64, 256, 700, 4000]),
    ) {
        let policy: PolicySpec = policy.parse().expect("a policy");
        let own = policy.build().expect("a policy").own_window().to_bytes(PAGE);
        let machine = SimMachine {
            policy,
            read_ahead: Kib::new(window),
            cache: Bytes::new(cache * 4096).max(Bytes::from_kib(window)).max(own),
            replacement: Replacement::Lru,
            filesystem: FileSystem::PLAIN,
            ..SimMachine::new(Spec::preset("zero").expect("a preset"))
        };
        let pages = Pages::new(2900);
        let counts = |page_by_page| {
            let machine = SimMachine { page_by_page, ..machine.clone() };
            replay(&machine, pages, numbers.iter().copied()).expect("a machine that can be")
        };
        prop_assert_eq!(counts(false), counts(true));
    }
}
