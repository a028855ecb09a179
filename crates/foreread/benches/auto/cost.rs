//! Costs of `auto`: processor time, memory, and the slowdown of cached reads.

use crate::Claim;
use crate::readers::{Readers, now};
use crate::stage::{Daemon, Stage, sleep_until};

/// Seconds over which processor time is counted; the kernel reports it in hundredths.
const COUNTED: f64 = 20.0;
const PAIRS: usize = 15;
/// Length of each half of a pair, in seconds.
const TURN: f64 = 0.6;

pub fn prove() -> Vec<Claim> {
    let stage = Stage::set("zero,fs=ext4,size=1G");
    stage.files(2, 64);
    let file = stage.mount.join("0");
    let file = file.to_str().unwrap();
    std::fs::read(file).unwrap(); // into the cache
    vec![idle(&stage), under_load(&stage, file), cached_reads(&stage, file), memory(&stage, file)]
}

/// Returns the share of one processor that `auto` and its guard use.
fn share(auto: &Daemon) -> f64 {
    sleep_until(auto.begun + 6.0);
    let (begun, before) = (now(), auto.cpu());
    sleep_until(begun + COUNTED);
    (auto.cpu() - before) / (now() - begun)
}

fn idle(stage: &Stage) -> Claim {
    let share = share(&stage.auto());
    Claim::new(
        format!("idle, it takes under 1 % of a processor: {:.2} %", share * 100.0),
        share < 0.01,
    )
}

fn under_load(stage: &Stage, file: &str) -> Claim {
    let readers = Readers::start(&["cached", file, "100000"], None);
    let auto = stage.auto();
    let share = share(&auto);
    let reads = readers.rate(now() - COUNTED, now()) * 256.0;
    let text = format!("at {reads:.0} cached reads a second, under 3 %: {:.2} %", share * 100.0);
    Claim::new(text, share < 0.03 && reads > 90_000.0)
}

fn cached_reads(stage: &Stage, file: &str) -> Claim {
    let readers = Readers::start(&["cached", file, "0"], None);
    // Reads per second of processor time.
    let turn = || {
        let begun = now();
        sleep_until(begun + TURN);
        let (a, b) = (readers.at(begun), readers.at(begun + TURN - 0.1));
        (b.bytes - a.bytes) as f64 / 4096.0 / (b.cpu - a.cpu)
    };
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        let with = |ratio: &mut f64| {
            let auto = stage.auto();
            sleep_until(auto.begun + 1.5);
            *ratio *= turn();
        };
        let mut ratio = 1.0;
        // The half that runs first alternates from pair to pair.
        if pair % 2 == 0 {
            with(&mut ratio);
            ratio /= turn();
        } else {
            ratio /= turn();
            with(&mut ratio);
        }
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[PAIRS / 2];
    // The order statistics that bound the 95 % confidence interval of the median.
    let off = (0.98 * (PAIRS as f64).sqrt()) as usize;
    let (low, high) = (ratios[PAIRS / 2 - off], ratios[PAIRS / 2 + off]);
    let text = format!(
        "cached reads run at 0.97 of their speed at least: {median:.3} ({low:.3} to {high:.3}, \
         {PAIRS} pairs)"
    );
    Claim::new(text, median >= 0.97)
}

fn memory(stage: &Stage, file: &str) -> Claim {
    let holders: Vec<Readers> =
        (0..100).map(|_| Readers::start(&["hold", file, "1000"], None)).collect();
    let one = stage.mount.to_str().unwrap();
    let readers = Readers::start(&["streams", "2", one], None);
    let auto = stage.auto();
    sleep_until(auto.begun + 8.0);
    let (now_mib, most_mib) = auto.memory();
    drop((readers, holders));
    Claim::new(
        format!(
            "with 100,000 open files it has under 64 MiB: {now_mib:.0} MiB, {most_mib:.0} at most"
        ),
        most_mib < 64.0,
    )
}
