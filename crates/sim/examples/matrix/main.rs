//! Every micro-workload on every kind of device, with every static window and with `auto`: is it
//! worth having, and does it ever do harm?
//!
//! `cargo run --release -p foreread-sim --example matrix [-- --device NAME] [--work WORDS]
//! [--policy NAME] [--seconds S]`. It prints tables in Markdown; those in the book are its output.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod works;

use foreread_sim::{Machine, Outcome};
use model::Spec;
use units::{Bytes, Kib, Nanos};
use works::{Work, works};

const DEVICES: &[&str] = &["hdd-2008", "raid10-2008", "cloud-hdd", "ssd-sata", "nvme", "nfs"];
/// Both families of windows, in KiB.
const WINDOWS: &[u64] =
    &[0, 4, 16, 64, 128, 256, 512, 544, 1024, 1088, 2048, 2176, 4096, 4352, 8192];

fn option(name: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.next().and_then(|_| words.next())
}

/// What came of one cell.
#[derive(Clone, Copy)]
struct Cell {
    rate: f64,
    amplification: f64,
    stalls: u64,
}

impl Cell {
    fn of(outcome: &Outcome) -> Self {
        let seconds = outcome.elapsed.as_secs_f64().max(1e-9);
        Self {
            rate: outcome.useful().as_mib() / seconds,
            amplification: outcome.amplification().unwrap_or(0.0),
            stalls: outcome.readers.iter().map(|reader| reader.stalls).sum(),
        }
    }
}

struct Row {
    name: &'static str,
    statics: Vec<Cell>,
    own: Cell,
    auto: Cell,
}

fn main() {
    let seconds = option("--seconds").map_or(20.0, |text| text.parse().unwrap());
    let policy = option("--policy").unwrap_or_else(|| "auto".to_owned());
    let (device, wanted) = (option("--device"), option("--work").unwrap_or_default());
    let works: Vec<Work> = works().into_iter().filter(|work| work.name.contains(&wanted)).collect();
    let (mut gains, mut over_best) = (Vec::new(), Vec::new());
    let (mut worst, mut captured, mut possible) = (f64::MAX, 0.0, 0.0);
    for name in DEVICES.iter().filter(|name| device.as_deref().is_none_or(|it| it == **name)) {
        let rows: Vec<Row> = works
            .iter()
            .map(|work| row(name, work, &policy, Nanos::from_secs_f64(seconds)))
            .collect();
        let single = best_single(&rows);
        println!("\n### {name}\n\nBest single static window: {} KiB.\n", WINDOWS[single]);
        println!(
            "| workload | 128 KiB MiB/s | kernel's own | best single | best for it | auto | \
                  of 128 KiB | device bytes | stalls |\n|---|---|---|---|---|---|---|---|---|"
        );
        for row in &rows {
            let (base, best) = (row.statics[4].rate, best_of(row));
            let gain = row.auto.rate / base;
            let best_rate = row.statics[best].rate;
            println!(
                "| {} | {base:.2} | {:.2} | {:.2} | {best_rate:.2} ({} KiB) | {:.2} | {gain:.2} | \
                 {:.2} | {} → {} |",
                row.name,
                row.own.rate,
                row.statics[single].rate,
                WINDOWS[best],
                row.auto.rate,
                row.auto.amplification,
                row.statics[4].stalls,
                row.auto.stalls
            );
            gains.push(gain);
            over_best.push(row.auto.rate / row.statics[single].rate);
            worst = f64::min(worst, gain);
            if best_rate > base * 1.02 {
                // Time saved for the same work, of what the best window saves.
                captured +=
                    ((1.0 / base - 1.0 / row.auto.rate) / (1.0 / base - 1.0 / best_rate)).min(2.0);
                possible += 1.0;
            }
        }
    }
    println!(
        "\nGeometric mean of the throughput: {:.2} times that of 128 KiB, {:.2} times that of the \
         best single window of each device. The worst cell is {worst:.2} of 128 KiB. Of what the \
         best window for each workload saves, {:.0} % is saved on average.",
        mean(&gains),
        mean(&over_best),
        100.0 * captured / f64::max(possible, 1.0)
    );
}

fn row(device: &str, work: &Work, policy: &str, time: Nanos) -> Row {
    let fast = matches!(device, "nvme" | "ssd-sata");
    let data = Bytes::from_gib(if fast { 8 } else { 4 });
    let base = Machine {
        cache: Bytes::from_gib(1),
        seed: 1,
        ..Machine::new(Spec::parse(device).unwrap())
    };
    let cell = |policy: &str, kib: u64| {
        let machine =
            Machine { policy: policy.to_owned(), read_ahead: Kib::new(kib), ..base.clone() };
        Cell::of(&work.run(&machine, data, time))
    };
    let statics = WINDOWS.iter().map(|kib| cell("linux-6.18", *kib)).collect();
    // What looks rotational gets twice its largest request.
    let rotational = matches!(device, "hdd-2008" | "raid10-2008" | "cloud-hdd");
    let own = if rotational { 2 * base.model.host().max_request.to_kib_floor().get() } else { 128 };
    Row {
        name: work.name,
        statics,
        own: cell("linux-6.18", own.min(8192)),
        auto: cell(policy, 128),
    }
}

fn best_of(row: &Row) -> usize {
    let rates = row.statics.iter().enumerate();
    rates.max_by(|a, b| a.1.rate.total_cmp(&b.1.rate)).map_or(0, |(at, _)| at)
}

fn best_single(rows: &[Row]) -> usize {
    let score =
        |at: &usize| rows.iter().map(|row| row.statics[*at].rate.max(1e-9).ln()).sum::<f64>();
    (0..WINDOWS.len()).max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0)
}

fn mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}
