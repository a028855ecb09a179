//! PostgreSQL 17: read streams that give advice on random blocks (`posix_fadvise`) and leave
//! sequential blocks to the kernel's read-ahead.
//!
//! Source: `src/backend/storage/aio/read_stream.c` of PostgreSQL 17.

use super::postgres::{PARAMETERS, PostgresRules, Scans};
use crate::entry::{Entry, Parameter, PolicyArgs, PolicyError};
use crate::policy::Policy;

pub const ENTRY: Entry = Entry {
    name: "postgres-17",
    summary: "PostgreSQL 17 read_stream: advice for random blocks, larger reads for sequential",
    source: "src/backend/storage/aio/read_stream.c of PostgreSQL 17",
    parameters: &[
        PARAMETERS[0],
        PARAMETERS[1],
        PARAMETERS[2],
        Parameter {
            name: "ios",
            summary: "reads at once (effective_io_concurrency)",
            default: "1",
        },
    ],
    build,
};

fn build(args: &PolicyArgs<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let (block, combine, full) = PostgresRules::sizes(args)?;
    Ok(Box::new(Scans::new(rules(block, combine, full, args.count("ios", 0, 1000)?))))
}

fn rules(block: u64, combine: u64, full: bool, ios: u64) -> PostgresRules {
    PostgresRules {
        block,
        max_ios: ios.max(1),
        combine,
        pins: (4 * ios).max(combine),
        full,
        trusts_kernel: true,
        asynchronous: false,
        advice: ios > 0,
        advises_runs: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::postgres::tests::{cached_up_to, distance, scan};
    use super::*;
    use crate::algorithm::testing::Bench;

    fn bench(ios: u64) -> Bench<Scans> {
        Bench::new(Scans::new(rules(2, 16, false, ios)), 1 << 16)
    }

    #[test]
    fn sequential_reads_grow_to_the_combine_limit_and_no_further() {
        let mut bench = bench(16);
        let blocks: Vec<_> = (0..200).collect();
        let reads: Vec<_> = scan(&mut bench, &blocks).concat();
        assert_eq!(reads[..5], [(0, 1), (1, 2), (3, 4), (7, 8), (15, 16)]);
        assert!(reads[5..].iter().all(|&(_, count)| count <= 16));
        assert_eq!(distance(&mut bench), 16);
    }

    #[test]
    fn up_to_four_random_blocks_per_concurrent_read_are_advised() {
        let mut bench = bench(16);
        let blocks: Vec<_> = (0..300).map(|nth| nth * 37 % 10_007).collect();
        scan(&mut bench, &blocks[..100]);
        assert_eq!(distance(&mut bench), 64);
    }

    #[test]
    fn the_number_of_reads_in_flight_is_limited() {
        let mut bench = bench(3);
        let blocks: Vec<_> = (0..60).map(|nth| nth * 37 % 10_007).collect();
        for (nth, reads) in scan(&mut bench, &blocks).iter().enumerate() {
            assert!(reads.len() <= 3 + usize::from(nth == 0), "{nth}: {reads:?}");
        }
    }

    #[test]
    fn cached_blocks_make_the_distance_decay() {
        let mut bench = bench(16);
        cached_up_to(&mut bench, 200);
        let blocks: Vec<_> = (0..100).chain((300..340).map(|nth| nth * 31)).collect();
        scan(&mut bench, &blocks[..100]);
        assert_eq!(distance(&mut bench), 1);
    }

    #[test]
    fn a_full_scan_skips_the_ramp() {
        let mut bench = Bench::new(Scans::new(rules(2, 16, true, 16)), 1 << 16);
        let blocks: Vec<_> = (0..40).collect();
        assert_eq!(scan(&mut bench, &blocks)[0], [(0, 16)]);
    }

    #[test]
    fn a_jump_starts_a_new_scan() {
        let mut bench = bench(16);
        let blocks: Vec<_> = (0..64).collect();
        scan(&mut bench, &blocks);
        bench.stage.scan = None;
        assert_eq!(bench.read(40_000, 2), [(40_000, 2)]);
    }

    #[test]
    fn the_end_of_the_file_is_the_end_of_the_scan() {
        let mut bench = Bench::new(Scans::new(rules(2, 16, false, 16)), 21);
        let reads: Vec<_> = (0..11).flat_map(|block| bench.read(2 * block, 2)).collect();
        assert_eq!(reads.iter().map(|read| read.1).sum::<u64>(), 21);
    }
}
