//! PostgreSQL 18: read streams over asynchronous I/O, whose distance doubles with every wait.
//!
//! Source: `src/backend/storage/aio/read_stream.c` of PostgreSQL 18. `method=sync` only gives
//! advice, and in a sequential run only until the reads have reached the advised blocks.

use super::postgres::{PARAMETERS, PostgresRules, Scans};
use crate::entry::{Entry, Parameter, PolicyArgs, PolicyError};
use crate::policy::Policy;

pub const ENTRY: Entry = Entry {
    name: "postgres-18",
    summary: "PostgreSQL 18 read_stream: look-ahead distance doubled by every wait",
    source: "src/backend/storage/aio/read_stream.c of PostgreSQL 18",
    parameters: &[
        PARAMETERS[0],
        PARAMETERS[1],
        PARAMETERS[2],
        Parameter {
            name: "ios",
            summary: "reads at once (effective_io_concurrency)",
            default: "16",
        },
        Parameter {
            name: "method",
            summary: "worker (or io_uring) or sync (io_method)",
            default: "worker",
        },
    ],
    build,
};

fn build(args: &PolicyArgs<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let (block, combine, full) = PostgresRules::sizes(args)?;
    let methods = [("worker", true), ("io_uring", true), ("sync", false)];
    let asynchronous = args.choice("method", &methods)?;
    let ios = args.count("ios", 0, 1000)?;
    Ok(Box::new(Scans::new(rules(block, combine, full, ios, asynchronous))))
}

fn rules(block: u64, combine: u64, full: bool, ios: u64, asynchronous: bool) -> PostgresRules {
    PostgresRules {
        block,
        max_ios: ios.max(1),
        combine,
        pins: (ios + 1) * combine,
        full,
        trusts_kernel: false,
        asynchronous: asynchronous && ios > 0,
        advice: !asynchronous && ios > 0,
        advises_runs: true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::postgres::tests::{cached_up_to, distance, scan};
    use super::*;
    use crate::algorithm::testing::Bench;

    fn bench(asynchronous: bool) -> Bench<Scans> {
        Bench::new(Scans::new(rules(2, 16, false, 4, asynchronous)), 1 << 16)
    }

    #[test]
    fn a_sequential_scan_ramps_up_to_all_pins() {
        let mut bench = bench(true);
        let blocks: Vec<_> = (0..300).collect();
        let reads = scan(&mut bench, &blocks);
        assert_eq!(distance(&mut bench), 80);
        assert!(reads.concat().iter().all(|&(_, count)| count <= 16));
        // After the ramp, reads have the largest size, far ahead of their use.
        let late = &reads[200];
        assert!(reads[190..210].concat().iter().all(|&(_, count)| count == 16), "{late:?}");
    }

    #[test]
    fn a_read_that_is_still_small_is_held_back() {
        let mut bench = bench(true);
        let blocks: Vec<_> = (0..10).collect();
        let reads = scan(&mut bench, &blocks);
        // The distance doubles with each wait: 2, then 4. At block 1, three of the next four blocks
        // are known, but one block is still to be returned, so the read waits for the fourth.
        assert_eq!(reads[..3], [vec![(0, 1), (1, 2)], vec![], vec![(3, 4)]]);
    }

    #[test]
    fn the_method_sync_reads_a_run_when_it_is_needed() {
        let mut bench = bench(false);
        let blocks: Vec<_> = (0..100).collect();
        let reads = scan(&mut bench, &blocks);
        let waits = reads.iter().filter(|reads| !reads.is_empty()).count();
        assert!(waits > 4, "{waits}");
        // Advice stops when the reads have reached the advised blocks.
        assert!(reads.concat().iter().all(|&(_, count)| count <= 16));
    }

    #[test]
    fn cached_blocks_make_the_distance_decay() {
        let mut bench = bench(true);
        cached_up_to(&mut bench, 400);
        let blocks: Vec<_> = (0..300).collect();
        scan(&mut bench, &blocks);
        assert_eq!(distance(&mut bench), 1);
    }

    #[test]
    fn without_concurrency_nothing_is_read_in_advance() {
        let mut bench = Bench::new(Scans::new(rules(2, 16, false, 0, true)), 1 << 16);
        let blocks: Vec<_> = (0..30).map(|nth| nth * 37).collect();
        for (nth, reads) in scan(&mut bench, &blocks).iter().enumerate() {
            assert_eq!(*reads, [(nth as u64 * 37, 1)]);
        }
    }
}
