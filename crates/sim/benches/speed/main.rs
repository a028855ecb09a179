//! Measures simulated page references per second: streams and mixed workloads with device, cache
//! and read-ahead, by extents and page by page; and page-number traces with an LRU cache, compared
//! with libCacheSim with its one-block-lookahead prefetcher.
//!
//! `cargo bench -p foreread-sim [-- --cachesim PROGRAM] [--traces DIR] [--seconds S] [--case
//! WORDS]`. Without the peer's program, it prints a note and only its own results.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod clock;
mod machines;
mod peer;

use machines::cases;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn option(name: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.next().and_then(|_| words.next())
}

fn main() {
    let seconds = option("--seconds").and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let (mut tried, mut slow) = (0, 0);
    println!(
        "{:<34} {:>14} {:>14} {:>8}",
        "page references a second (million)", "extents", "by page", "ratio"
    );
    let wanted = option("--case").unwrap_or_default();
    for case in cases().into_iter().filter(|case| case.name.contains(&wanted)) {
        let fast = case.rate(false, seconds) / 1e6;
        let naive = case.rate(true, seconds) / 1e6;
        (tried, slow) = (tried + 1, slow + i32::from(fast < 20.0));
        println!("{:<34} {fast:>14.1} {naive:>14.1} {:>8.2}", case.name, fast / naive);
    }
    println!("at least 20 million: {} of {tried}", tried - slow);
    peer::compare(option("--cachesim").as_deref(), option("--traces").as_deref());
}
