//! Properties of every algorithm in the registry, for random operations.

mod contract;

use contract::{keeps_its_contract, shape, step};
use foreread_policy::REGISTRY;
use proptest::prelude::*;

/// Each case runs every policy twice.
const CASES: u32 = 64;

/// Parameters with smaller values than the defaults, which reach more states.
const VARIANTS: &[&str] = &[
    "fixed,blocks=3",
    "linux-on-demand,since=2.6.23",
    "linux-on-demand,since=4.10",
    "ara-2006,ratio=100,hit_rate=4",
    "ara-2006,ratio=0",
    "freebsd,block=4K,max_io=4K,read_max=3,read_min=2",
    "freebsd,block=16K,max_io=128K",
    "zfs,record=8K,min_distance=16K,max_distance=64K,max_reorder=64K",
    "zfs,record=4K,max_streams=1,hole_shift=16",
    "postgres-17,ios=4",
    "postgres-17,ios=0,full=on",
    "postgres-18,method=sync",
    "postgres-18,ios=2,combine=8K",
    "innodb,pool=1M,random=on,threshold=8",
    "innodb,page=4K,pool=16M,threshold=64",
    "rocksdb,async_io=on",
    "rocksdb,compaction=on,max=16K",
    "amp,max=16K",
];

fn policies() -> Vec<String> {
    let named = REGISTRY.iter().map(|entry| entry.name.to_owned());
    named.chain(VARIANTS.iter().map(|&words| words.to_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn every_policy_keeps_its_contract(
        shape in shape(), steps in prop::collection::vec(step(), 1..24),
    ) {
        for policy in policies() {
            keeps_its_contract(&policy.parse().expect("a policy"), shape, &steps)?;
        }
    }
}
