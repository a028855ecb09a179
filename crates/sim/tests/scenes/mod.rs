//! Scenes for property tests: machines and workloads of every kind, small enough for hundreds of
//! runs.

#![allow(dead_code)] // each test uses a part of it

use foreread_sim::{
    AccessSteps, Arrival, Costs, FileOnDisk, FileSystem, Limits, ReadStep, Replacement, Scenario,
    SimMachine, SimOutcome, lay_out, run_workload,
};
use model::Spec;
use policy::{PolicySpec, REGISTRY};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use units::{Bytes, Kib, Nanos, Pages};
use workload::{AccessMethod, Hint, Layout, Pattern, Sharing, Workload};

/// A machine, a workload and its duration.
#[derive(Clone, Debug)]
pub struct Scene {
    pub machine: SimMachine,
    pub workload: Workload,
    pub file_size: Bytes,
    pub time: Nanos,
    pub seed: u64,
}

/// Returns the number of scenes per test, which FOREREAD_SCENES overrides.
pub fn cases() -> u32 {
    std::env::var("FOREREAD_SCENES").ok().and_then(|words| words.parse().ok()).unwrap_or(48)
}

impl Scene {
    pub fn files(&self) -> Vec<FileOnDisk> {
        let sizes = vec![self.file_size; self.workload.files() as usize];
        lay_out(&sizes, self.workload.layout, self.machine.filesystem.layout, Bytes::ZERO)
    }

    pub fn scenario(&self) -> Scenario<AccessSteps> {
        let mut scenario =
            Scenario::of_workload(&self.workload, self.files(), self.seed).expect("a scenario");
        scenario.limits = Limits { time: self.time, ends_with_first: false };
        scenario
    }

    /// Returns the bytes that all readers request; `u64::MAX` for a pattern without an end.
    pub fn asked(&self) -> Bytes {
        if matches!(self.workload.pattern, Pattern::Zipf { .. }) {
            return Bytes::new(u64::MAX);
        }
        let length = |step: ReadStep| {
            let size = self.file_size.get();
            Bytes::new(step.length.get().min(size - step.offset.get().min(size)))
        };
        self.scenario().readers.into_iter().flat_map(|reader| reader.steps).map(length).sum()
    }

    pub fn runs_to_the_end(&self) -> bool {
        self.time == Nanos::MAX
    }

    /// Returns the number of pages of all files.
    pub fn pages(&self) -> Pages {
        Pages::new(self.file_size.get().div_ceil(4096) * u64::from(self.workload.files()))
    }
}

pub fn outcome(scene: &Scene, page_by_page: bool) -> SimOutcome {
    let machine = SimMachine { page_by_page, ..scene.machine.clone() };
    run_workload(&machine, scene.scenario()).expect("a scene that can be simulated")
}

/// Checks that the fast path and the slow path give equal results.
pub fn same_by_extents_and_by_pages(scene: &Scene) -> TestCaseResult {
    prop_assert_eq!(outcome(scene, false), outcome(scene, true));
    Ok(())
}

fn any_policy() -> impl Strategy<Value = PolicySpec> {
    let parse = |name: &str| name.parse::<PolicySpec>().expect("a policy");
    let all: Vec<PolicySpec> = REGISTRY.iter().map(|entry| parse(entry.name)).collect();
    prop_oneof![
        3 => Just(parse("linux-6.18")),
        1 => Just(parse("linux-on-demand")),
        4 => prop::sample::select(all),
    ]
}

/// Returns the machine with another policy, and a cache that holds at least the policy's window.
pub fn with_policy(machine: SimMachine, policy: PolicySpec) -> SimMachine {
    let own = policy.build().expect("a policy").own_window();
    let cache = machine.cache.max(own.to_bytes(policy::cache::PAGE));
    SimMachine { policy, cache, ..machine }
}

fn any_machine() -> impl Strategy<Value = SimMachine> {
    let models = [
        "zero",
        "hdd-2008",
        "raid10-2008",
        "raid5-2012",
        "nvme",
        "ssd-sata",
        "cloud-hdd",
        "cloud-ssd",
        "nfs",
        "mirror-2010",
    ];
    let arrivals = [None, Some(Arrival::Requests), Some(Arrival::Windows)];
    let filesystems = [FileSystem::XFS, FileSystem::EXT3, FileSystem::PLAIN];
    let costs =
        [Costs::TODAY, Costs::NONE, Costs { copy_ns: 1.37, submit_ns: 0.26, ..Costs::TODAY }];
    (
        prop::sample::select(models.to_vec()),
        any_policy(),
        prop::sample::select([0u64, 4, 32, 128, 272, 1024].to_vec()),
        // In KiB; `None` for the minimum that a window needs.
        prop::option::weighted(0.8, prop::sample::select([1024u64, 2048, 3072, 65536].to_vec())),
        prop::bool::weighted(0.3),
        prop::sample::select(filesystems.to_vec()),
        prop::sample::select(costs.to_vec()),
        any::<u64>(),
        prop::option::weighted(0.2, 1u64..6),
        prop::sample::select(arrivals.to_vec()),
    )
        .prop_map(
            |(model, policy, window, cache, lru, filesystem, costs, seed, depth, arrival)| {
                let mut model = Spec::preset(model).expect("a preset");
                if let Some(depth) = depth {
                    model.set("nr_requests", &depth.to_string()).expect("a depth");
                }
                let machine = SimMachine {
                    read_ahead: Kib::new(window),
                    cache: Bytes::from_kib(cache.unwrap_or(window.max(256))),
                    arrival,
                    replacement: if lru { Replacement::Lru } else { Replacement::TwoLists },
                    filesystem,
                    costs,
                    seed,
                    ..SimMachine::new(model)
                };
                with_policy(machine, policy)
            },
        )
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        3 => Just(Pattern::Sequential),
        1 => Just(Pattern::Uniform),
        1 => (0.3f64..1.5).prop_map(|theta| Pattern::Zipf { theta }),
        1 => Just(Pattern::Backward),
        1 => (2u32..40).prop_map(|blocks| Pattern::SeekAndRead { blocks }),
        1 => (2u32..9).prop_map(|streams| Pattern::Interleaved { streams }),
        2 => (0.05f64..0.6, any::<bool>()).prop_map(|(random_fraction, same_open_file)| {
            let random_block = Bytes::from_kib(4);
            Pattern::Mixed { random_fraction, random_block, same_open_file }
        }),
        1 => (2u32..9).prop_map(|span| Pattern::Disorder { span }),
        1 => Just(Pattern::Stride { step: Bytes::from_kib(256) }),
    ]
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let blocks = [1000u64, 2048, 4096, 16384, 65536, 200_000];
    let sharings = [Sharing::OwnFile, Sharing::SharedOpenFile, Sharing::SharedFile];
    let hints = [Hint::None, Hint::None, Hint::Sequential, Hint::Random];
    (
        any_pattern(),
        prop::sample::select(blocks.to_vec()),
        1u32..9,
        prop::sample::select(sharings.to_vec()),
        prop::bool::weighted(0.2),
        prop::sample::select(hints.to_vec()),
        prop::bool::weighted(0.2),
        prop::sample::select([0u64, 0, 5, 300].to_vec()),
    )
        .prop_map(|(pattern, block, readers, sharing, mapped, hint, interleaved, think)| {
            Workload {
                readers,
                sharing,
                access: if mapped { AccessMethod::Mmap } else { AccessMethod::Read },
                hint,
                layout: if interleaved { Layout::Interleaved } else { Layout::Contiguous },
                think: Nanos::from_micros(think),
                ..Workload::new("any", pattern, Bytes::new(block))
            }
        })
}

/// Machines, workloads, file sizes and durations of every kind.
pub fn any_scene() -> impl Strategy<Value = Scene> {
    let sizes =
        prop::sample::select([1, 5000, 70_001, 300_000u64, 1 << 20, 2_500_001, 6 << 20].to_vec());
    let times = prop_oneof![Just(Nanos::MAX), (1u64..400).prop_map(Nanos::from_millis)];
    (any_machine(), any_workload(), sizes, times, any::<u64>())
        .prop_map(|(machine, workload, size, time, seed)| {
            let endless = matches!(workload.pattern, Pattern::Zipf { .. });
            // A machine whose calls cost nothing executes a thousand reads in a microsecond.
            let free = machine.costs.call_ns < 1.0;
            let most = if free { Nanos::from_micros(50) } else { Nanos::from_millis(20) };
            let time = if endless { time.min(most) } else { time };
            Scene { machine, workload, file_size: Bytes::new(size), time, seed }
        })
        .prop_filter("is a workload, on files large enough", |scene| {
            let files = scene.files();
            scene.workload.validate().is_ok()
                && scene.machine.validate().is_ok()
                && Scenario::of_workload(&scene.workload, files, scene.seed).is_ok()
        })
}
