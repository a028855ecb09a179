//! Properties of the accesses of every workload, tested with random declarations.

#![allow(clippy::unwrap_used)] // A test may panic.

use std::collections::HashSet;

use foreread_workload::{
    Access, AccessClass, AccessMethod, Hint, Layout, Pattern, Sharing, Workload, WorkloadError,
};
use proptest::prelude::*;
use units::{Bytes, Nanos};

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Sequential),
        Just(Pattern::Uniform),
        Just(Pattern::Backward),
        (0.05f64..3.0).prop_map(|theta| Pattern::Zipf { theta }),
        (2u64..40).prop_map(|k| Pattern::Stride { step: Bytes::new(k * 5000) }),
        (1u32..20).prop_map(|blocks| Pattern::SeekAndRead { blocks }),
        (2u32..9).prop_map(|streams| Pattern::Interleaved { streams }),
        (0.01f64..0.99, 1u64..9000, any::<bool>()).prop_map(|(random_fraction, size, same)| {
            let random_block = Bytes::new(size);
            Pattern::Mixed { random_fraction, random_block, same_open_file: same }
        }),
        (2u32..20).prop_map(|span| Pattern::Disorder { span }),
    ]
}

prop_compose! {
    fn workloads()(
        pattern in pattern(),
        block in 1u64..9000,
        readers in 1u32..5,
        sharing in prop_oneof![
            Just(Sharing::OwnFile), Just(Sharing::SharedOpenFile), Just(Sharing::SharedFile)
        ],
        files in 1u32..4,
        think in 0u64..5_000_000,
        access in prop_oneof![Just(AccessMethod::Read), Just(AccessMethod::Mmap)],
        hint in prop_oneof![Just(Hint::None), Just(Hint::Sequential), Just(Hint::Random)],
        layout in prop_oneof![Just(Layout::Contiguous), Just(Layout::Interleaved)],
        file_size in prop::option::of(9000u64..1_000_000),
    ) -> Workload {
        let many_files = !matches!(pattern, Pattern::Interleaved { .. });
        Workload {
            readers,
            sharing,
            files_per_reader: if many_files { files } else { 1 },
            think: Nanos::new(think),
            access,
            hint,
            layout,
            file_size: file_size.map(Bytes::new),
            ..Workload::new("tried", pattern, Bytes::new(block))
        }
    }
}

fn sizes(workload: &Workload, size: u64) -> Vec<Bytes> {
    (0..workload.files_per_reader).map(|file| Bytes::new(size + u64::from(file) * 777)).collect()
}

fn all(workload: &Workload, reader: u32, sizes: &[Bytes], seed: u64) -> Vec<Access> {
    workload.accesses(reader, sizes, seed).unwrap().take(30_000).collect()
}

/// Returns how often all readers together read each byte of each file.
fn coverage(workload: &Workload, sizes: &[Bytes], seed: u64) -> Vec<Vec<u32>> {
    let mut counts: Vec<Vec<u32>> = sizes.iter().map(|size| vec![0; size.get() as usize]).collect();
    for reader in 0..workload.readers {
        for access in all(workload, reader, sizes, seed) {
            let start = access.offset.get() as usize;
            let range = start..start + access.length.get() as usize;
            counts[access.file as usize][range].iter_mut().for_each(|count| *count += 1);
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_access_lies_inside_its_file(w in workloads(), size in 40_000u64..300_000, seed: u64) {
        let sizes = sizes(&w, size);
        for reader in 0..w.readers {
            let Ok(accesses) = w.accesses(reader, &sizes, seed) else {
                // A few small files can be too little for many streams: then no reader has any.
                prop_assert!(size / w.block.get() < 100);
                continue;
            };
            for access in accesses.take(5_000) {
                let file_size = sizes[access.file as usize];
                prop_assert!(!access.length.is_zero());
                prop_assert!(access.offset + access.length <= file_size);
                let largest = match (w.pattern, access.class) {
                    (Pattern::Mixed { random_block, .. }, AccessClass::Random) => random_block,
                    _ => w.block,
                };
                prop_assert!(access.length <= largest);
            }
        }
    }

    #[test]
    fn a_seed_settles_everything(w in workloads(), size in 40_000u64..200_000, seed: u64) {
        let sizes = sizes(&w, size);
        if let Ok(first) = w.accesses(0, &sizes, seed) {
            let again = w.accesses(0, &sizes, seed).unwrap();
            prop_assert!(first.take(3_000).eq(again.take(3_000)));
        }
    }

    #[test]
    fn runs_are_the_accesses(w in workloads(), size in 40_000u64..200_000, seed: u64) {
        let sizes = sizes(&w, size);
        if let Ok(mut runs) = w.accesses(0, &sizes, seed) {
            let one_by_one = all(&w, 0, &sizes, seed);
            let mut expected = one_by_one.iter().copied().peekable();
            while let Some((first, times)) = runs.next_run() {
                for nth in 0..times {
                    let Some(access) = expected.next() else { return Ok(()) };
                    let offset = first.offset + first.length * nth;
                    prop_assert_eq!(access, Access { offset, ..first });
                }
                if expected.peek().is_none() {
                    return Ok(());
                }
            }
            prop_assert!(expected.peek().is_none());
        }
    }

    #[test]
    fn no_byte_is_read_twice(w in workloads(), size in 70_000u64..100_000, seed: u64) {
        prop_assume!(w.reads_each_block_once() && w.block.get() >= 50);
        let own = Workload { sharing: Sharing::SharedFile, ..w };
        if own.accesses(0, &sizes(&own, size), seed).is_ok() {
            let counts = coverage(&own, &sizes(&own, size), seed);
            prop_assert!(counts.iter().flatten().all(|count| *count <= 1));
        }
    }

    #[test]
    fn passes_cover_everything_once(
        pattern in prop_oneof![
            Just(Pattern::Sequential),
            Just(Pattern::Uniform),
            Just(Pattern::Backward),
            (1u32..9).prop_map(|blocks| Pattern::SeekAndRead { blocks }),
            (2u32..9).prop_map(|streams| Pattern::Interleaved { streams }),
            (2u32..20).prop_map(|span| Pattern::Disorder { span }),
        ],
        block in 50u64..3000,
        readers in 1u32..4,
        shared: bool,
        size in 80_000u64..120_000,
        seed: u64,
    ) {
        let sharing = if shared { Sharing::SharedOpenFile } else { Sharing::OwnFile };
        let w = Workload {
            sharing, readers, ..Workload::new("pass", pattern, Bytes::new(block))
        };
        let counts = coverage(&w, &sizes(&w, size), seed);
        // Own files are counted together here, since they have the same size.
        let times = if shared { 1 } else { readers };
        prop_assert!(counts.iter().flatten().all(|count| *count == times));
    }

    #[test]
    fn a_declaration_is_read_back_as_it_was(w in workloads()) {
        if w.validate().is_ok() {
            let text = w.to_toml();
            prop_assert_eq!(Workload::from_toml(&text).unwrap(), w, "{}", text);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9_=\"\\-. \n]{0,200}") {
        let _ = Workload::from_toml(&text);
    }

    #[test]
    fn no_sizes_make_it_panic(
        w in workloads(), size: u64, readers in 0u32..2000, block: u64, seed: u64,
    ) {
        let w = Workload { readers, block: Bytes::new(block), ..w };
        let sizes: Vec<Bytes> = (0..w.files_per_reader).map(|_| Bytes::new(size / 8)).collect();
        if let Ok(accesses) = w.accesses(readers.saturating_sub(1), &sizes, seed) {
            for access in accesses.take(20) {
                prop_assert!(access.offset + access.length <= sizes[access.file as usize]);
            }
        }
    }
}

const MIB: Bytes = Bytes::from_mib(1);

fn offsets_kib(workload: &Workload, size: Bytes, seed: u64) -> Vec<u64> {
    let accesses = workload.accesses(0, &[size], seed).unwrap();
    accesses.take(200).map(|access| access.offset.to_kib_exact().unwrap().get()).collect()
}

#[test]
fn simple_orders_are_what_their_names_say() {
    let tried = |pattern| {
        let workload = Workload::new("tried", pattern, Bytes::from_kib(64));
        offsets_kib(&workload, Bytes::from_kib(512), 1)
    };
    assert_eq!(tried(Pattern::Sequential), [0, 64, 128, 192, 256, 320, 384, 448]);
    assert_eq!(tried(Pattern::Backward), [448, 384, 320, 256, 192, 128, 64, 0]);
    assert_eq!(tried(Pattern::Stride { step: Bytes::from_kib(192) }), [0, 192, 384]);
    assert_eq!(tried(Pattern::Interleaved { streams: 2 }), [0, 256, 64, 320, 128, 384, 192, 448]);
}

#[test]
fn a_seek_is_followed_by_its_run() {
    let pattern = Pattern::SeekAndRead { blocks: 4 };
    let workload = Workload::new("seeks", pattern, Bytes::from_kib(16));
    let accesses = all(&workload, 0, &[MIB], 5);
    assert_eq!(accesses.len(), 64);
    for run in accesses.chunks(4) {
        assert_eq!(run[0].class, AccessClass::Random);
        assert!(run[1..].iter().all(|access| access.class == AccessClass::Stream));
        assert!(run.windows(2).all(|pair| pair[1].offset == pair[0].offset + pair[0].length));
    }
    let starts: Vec<Bytes> = accesses.iter().step_by(4).map(|access| access.offset).collect();
    assert!(!starts.is_sorted());
}

#[test]
fn a_mixture_has_its_share_of_random_reads_in_the_other_half() {
    let pattern = Pattern::Mixed {
        random_fraction: 0.2,
        random_block: Bytes::from_kib(4),
        same_open_file: false,
    };
    let workload = Workload::new("mixed", pattern, Bytes::from_kib(64));
    let size = Bytes::from_gib(1);
    let accesses = all(&workload, 0, &[size], 9);
    let (random, stream): (Vec<&Access>, Vec<&Access>) =
        accesses.iter().partition(|access| access.class == AccessClass::Random);
    let share = random.len() as f64 / accesses.len() as f64;
    assert!((share - 0.2).abs() < 0.02, "{share}");
    assert!(stream.windows(2).all(|pair| pair[1].offset == pair[0].offset + pair[0].length));
    assert!(stream.iter().all(|access| access.offset < Bytes::from_mib(512)));
    assert!(random.iter().all(|access| access.offset >= Bytes::from_mib(512)));
    assert!(random.iter().all(|access| access.length == Bytes::from_kib(4)));
}

#[test]
fn disorder_stays_within_its_span() {
    let workload = Workload::new("disorder", Pattern::Disorder { span: 8 }, Bytes::from_kib(4));
    let offsets = offsets_kib(&workload, Bytes::from_kib(4 * 99), 3);
    assert!(!offsets.is_sorted());
    for (place, offset) in (0u64..).zip(&offsets) {
        assert_eq!(place / 8, offset / 4 / 8, "block {} at place {place}", offset / 4);
    }
}

#[test]
fn readers_and_seeds_go_different_ways() {
    let workload = Workload { readers: 2, ..Workload::named("rand-pread").unwrap() };
    let of = |reader, seed| all(&workload, reader, &[MIB], seed);
    assert_ne!(of(0, 1), of(1, 1));
    assert_ne!(of(0, 1), of(0, 2));
}

#[test]
fn zipf_repeats_the_same_blocks() {
    let workload = Workload::new("zipf", Pattern::Zipf { theta: 0.99 }, Bytes::from_kib(4));
    let offsets: Vec<Bytes> =
        all(&workload, 0, &[Bytes::from_mib(64)], 1).iter().map(|access| access.offset).collect();
    let distinct: HashSet<Bytes> = offsets.iter().copied().collect();
    assert_eq!(offsets.len(), 30_000);
    assert!(distinct.len() < 10_000, "{} blocks", distinct.len());
}

#[test]
fn too_little_data_is_refused() {
    let pattern = Pattern::Interleaved { streams: 4 };
    let workload = Workload::new("tight", pattern, Bytes::from_kib(64));
    let problem = workload.accesses(0, &[Bytes::from_kib(192)], 1).unwrap_err();
    let expected = WorkloadError::TooSmall {
        workload: "tight".into(),
        size: Bytes::from_kib(192),
        needed: Bytes::from_kib(256),
    };
    assert_eq!(problem, expected);
    let empty = Workload::new("empty", Pattern::Uniform, MIB).accesses(0, &[Bytes::ZERO], 1);
    assert!(matches!(empty, Err(WorkloadError::TooSmall { .. })));
}
