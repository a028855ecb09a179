//! Sixty-four streams in a memory cgroup of 64 MiB.

use std::fs;
use std::path::{Path, PathBuf};

use stats::Estimate;

use crate::Claim;
use crate::readers::{Readers, now};
use crate::stage::{Stage, sleep_until};

const STREAMS: &str = "64";
const STATIC_KIB: [u64; 7] = [32, 64, 128, 256, 512, 1024, 2048];
/// Seconds that readers run before a measurement, and seconds of the measurement.
const SETTLE: f64 = 3.0;
const MEASURE: f64 = 5.0;
/// Seconds that `auto` has to find its window.
const LEARN: f64 = 10.0;
/// Number of the best static windows that are compared with `auto`, and rounds of comparison.
const BEST: usize = 2;
const ROUNDS: usize = 6;

/// A memory cgroup of 64 MiB, v1 or v2; removed when dropped.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let limits = ["memory/{}/memory.limit_in_bytes", "{}/memory.max"];
        limits.iter().find_map(|limit| {
            let name = format!("foreread-bench-{}", std::process::id());
            let limit = Path::new("/sys/fs/cgroup").join(limit.replace("{}", &name));
            let dir = limit.parent().unwrap().to_owned();
            // Fails if the controller is not mounted: a plain directory would be useless.
            fs::create_dir(&dir).ok()?;
            let group = Self(dir);
            fs::write(&limit, (64_u64 << 20).to_string()).ok().map(|()| group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Killed processes need a moment to leave the cgroup.
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Throughput in MiB/s, and device bytes per byte that readers received.
type Measured = (f64, f64);

/// Readers of many streams on a disk, limited to the memory of a cgroup.
struct Field {
    stage: Stage,
    dir: String,
    group: Group,
}

impl Field {
    fn lay_out(group: Group) -> Self {
        let stage = Stage::set("raid10-2008,fs=ext4,size=6G,dilation=1");
        stage.files(64, 64);
        let dir = stage.mount.to_str().unwrap().to_owned();
        Self { stage, dir, group }
    }

    fn start(&self) -> Readers {
        Readers::start(&["streams", STREAMS, &self.dir], Some(&self.group.0))
    }

    fn measure(&self, readers: &Readers, from: f64) -> Measured {
        sleep_until(from);
        let (begun, before) = (now(), self.stage.device_bytes());
        sleep_until(begun + MEASURE);
        let (end, after) = (now(), self.stage.device_bytes());
        let got = readers.at(end).bytes - readers.at(begun).bytes;
        (readers.rate(begun, end), (after - before) as f64 / got.max(1) as f64)
    }

    /// Measures under a fixed window.
    fn under(&self, kib: u64) -> Measured {
        self.stage.set_window(kib);
        let readers = self.start();
        self.measure(&readers, now() + SETTLE)
    }

    /// Measures under `auto`, which starts at 128 KiB and has [`LEARN`] seconds to adapt.
    fn under_auto(&self, is_shown: bool) -> Measured {
        self.stage.set_window(128);
        let readers = self.start();
        let auto = self.stage.auto();
        let measured = self.measure(&readers, auto.begun + LEARN);
        if is_shown {
            auto.show(12);
        }
        measured
    }

    /// Returns the windows that are fastest in one run each, fastest first.
    fn best(&self) -> Vec<u64> {
        let mut all: Vec<(f64, u64)> = Vec::new();
        for kib in STATIC_KIB {
            let (rate, amplification) = self.under(kib);
            println!("    {kib} KiB: {rate:.0} MiB/s, {amplification:.2} device bytes for each");
            all.push((rate, kib));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.into_iter().take(BEST).map(|one| one.1).collect()
    }
}

pub fn prove() -> Vec<Claim> {
    let Some(group) = Group::make() else {
        println!("  SKIP: no memory cgroup can be made here");
        return Vec::new();
    };
    let field = Field::lay_out(group);
    let best = field.best();
    // Single runs vary by more than the windows differ, so `auto` and the best windows take turns.
    let mut runs = vec![Vec::new(); BEST];
    let (mut rates, mut most) = (Vec::new(), 0.0_f64);
    for round in 0..ROUNDS {
        for (kib, rates) in best.iter().zip(&mut runs) {
            rates.push(field.under(*kib).0);
        }
        let (rate, amplification) = field.under_auto(round == 0);
        rates.push(rate);
        most = most.max(amplification);
    }
    let of_window = |(kib, of): (&u64, &Vec<f64>)| no_less(&rates, *kib, of);
    let mut claims: Vec<Claim> = best.iter().zip(&runs).map(of_window).collect();
    claims.push(Claim::new(
        format!("and the disk reads at most 1.2 times as much: {most:.2} at worst"),
        most <= 1.2,
    ));
    claims
}

/// Claims that `auto` is not measurably slower than this window.
fn no_less(rates: &[f64], kib: u64, of: &[f64]) -> Claim {
    let ratio = Estimate::of_ratios(rates, of).unwrap();
    println!("    auto {rates:.0?}; {kib} KiB {of:.0?} MiB/s");
    Claim::new(
        format!(
            "64 streams in 64 MiB get no less than under {kib} KiB: {:.3} times as much (95 %: \
             {:.3} to {:.3}, {ROUNDS} runs of each in turns)",
            ratio.median,
            ratio.low(),
            ratio.high()
        ),
        ratio.high() >= 1.0,
    )
}
