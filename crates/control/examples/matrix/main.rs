//! Compares `auto` with every static window for all micro-workloads, a database and mixes on every
//! kind of device: is it faster, and does it ever do harm?
//!
//! `cargo run --release -p foreread-control --example matrix [-- --device NAME] [--work WORDS]
//! [--policy WORDS] [--seconds S] [--seed N] [--jobs N] [--explain] [--remember FILE]
//! [--ablation]`. It prints tables in Markdown and whether `auto` meets each requirement; the book
//! contains this output. It exits with status 1 if a requirement is not met over all devices.
//! `--explain` adds exact counts and decisions for each cell. `--remember` stores the results of
//! static windows in a file, for work on the controller alone (remove the file after any other
//! change). `--ablation` prints one line for each part of `auto` that can be switched off.

#![allow(clippy::print_stdout, clippy::expect_used)]

mod cells;
mod scenes;
mod verdict;
mod works;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cells::{DEVICES, MatrixOptions, MatrixRow, RememberedCells, WINDOWS};
use units::Nanos;
use verdict::{MatrixVerdict, best_single};
use works::MatrixCase;

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != name).nth(1)
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    option(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| {
            eprintln!("{name} {text:?}: a number is wanted");
            std::process::exit(2)
        })
    })
}

fn main() -> ExitCode {
    let how = MatrixOptions {
        policy: option("--policy").unwrap_or_else(|| "auto".to_owned()),
        time: Nanos::from_secs_f64(number("--seconds", 10.0)),
        seed: number("--seed", 1),
    };
    let (device, wanted) = (option("--device"), option("--work").unwrap_or_default());
    let devices: Vec<&str> = DEVICES
        .iter()
        .copied()
        .filter(|name| device.as_deref().is_none_or(|it| it == *name))
        .collect();
    let cases = MatrixCase::ALL.iter().copied();
    let works: Vec<MatrixCase> = cases.filter(|case| case.name().contains(&wanted)).collect();
    if devices.is_empty() || works.is_empty() {
        eprintln!("no such device or workload; the devices are {}", DEVICES.join(", "));
        return ExitCode::from(2);
    }
    let remembered = match RememberedCells::of(option("--remember").map(Into::into)) {
        Ok(remembered) => remembered,
        Err(error) => {
            eprintln!("--remember: {error}");
            return ExitCode::from(2);
        }
    };
    if std::env::args().any(|word| word == "--ablation") {
        print_ablation(&devices, &works, &how, &remembered);
        return ExitCode::SUCCESS;
    }
    let row = |device: &str, case: MatrixCase| MatrixRow::of(device, case, &how, &remembered);
    let rows = run(&devices, &works, number("--jobs", 2), row);
    let tables: Vec<(&str, &[MatrixRow])> =
        devices.iter().copied().zip(rows.chunks(works.len())).collect();
    for table in &tables {
        print(table.0, table.1);
        MatrixVerdict::of(std::slice::from_ref(table)).print();
        if std::env::args().any(|word| word == "--explain") {
            explain(table.1);
        }
    }
    println!("\n### Over all\n");
    if MatrixVerdict::of(&tables).print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The parts of `auto` that can be switched off.
const PARTS: &[&str] =
    &["streams", "mappings", "misses", "trends", "files", "priming", "what_if", "trials"];

/// Prints the results with each part of `auto` switched off.
fn print_ablation(
    devices: &[&str],
    works: &[MatrixCase],
    how: &MatrixOptions,
    remembered: &RememberedCells,
) {
    println!("| without | of 128 KiB | worst cell | of the headroom | device bytes at most |");
    println!("|---|---:|---|---:|---:|");
    for part in std::iter::once(None).chain(PARTS.iter().map(Some)) {
        let policy = part.map_or("auto".to_owned(), |part| format!("auto,{part}=off"));
        let how = MatrixOptions { policy, time: how.time, seed: how.seed };
        let row = |device: &str, case: MatrixCase| MatrixRow::of(device, case, &how, remembered);
        let rows = run(devices, works, number("--jobs", 2), row);
        let tables: Vec<(&str, &[MatrixRow])> =
            devices.iter().copied().zip(rows.chunks(works.len())).collect();
        println!("{}", MatrixVerdict::of(&tables).ablation_row(part.unwrap_or(&"nothing")));
    }
}

/// Computes all rows with `jobs` threads and returns them device by device.
fn run(
    devices: &[&str],
    works: &[MatrixCase],
    jobs: usize,
    row: impl Fn(&str, MatrixCase) -> MatrixRow + Sync,
) -> Vec<MatrixRow> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(device) = devices.get(number / works.len()) else { break };
            let row = row(device, works[number % works.len()]);
            done.lock().expect("no panic").push((number, row));
        }
    };
    std::thread::scope(|scope| (0..jobs.max(1)).for_each(|_| drop(scope.spawn(worker))));
    let mut rows = done.into_inner().expect("no panic");
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn print(device: &str, rows: &[MatrixRow]) {
    let single = best_single(rows);
    println!("\n### {device}\n\nBest single static window: {} KiB.\n", WINDOWS[single]);
    println!(
        "| workload | 128 KiB MiB/s | kernel's own | best single | best for it | auto | of 128 KiB \
         | device bytes | primed | stalls |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for row in rows {
        let (base, best) = (row.default(), row.best());
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} ({} KiB) | {:.2} | {:.2} | {:.2} → {:.2} | {:.2} \
             | {} → {} |",
            row.name,
            base.rate,
            row.own.rate,
            row.statics[single].rate,
            row.statics[best].rate,
            WINDOWS[best],
            row.auto.rate,
            row.gain(),
            base.amplification,
            row.auto.amplification,
            row.auto.primed,
            base.stalls,
            row.auto.stalls
        );
    }
    println!();
}

fn explain(rows: &[MatrixRow]) {
    for row in rows {
        println!("\n{}", row.name);
        for (kib, cell) in WINDOWS.iter().zip(&row.statics) {
            cell.explain(&format!("{kib} KiB"));
        }
        row.auto.explain("auto");
    }
}
