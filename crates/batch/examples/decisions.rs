//! Replays a trace of a real program in simulation, and prints what each policy decided.
//!
//! `cargo run --release -p foreread-batch --example decisions -- TRACE [DEVICE [POLICY ...]]`, by
//! default on cloud-ssd without and with `auto`. `foreread trace record` makes such a trace.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use foreread_batch::{LoadedTrace, SimCell};
use trace::ReadOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, rest @ ..] = &words[..] else {
        return Err("usage: decisions TRACE [DEVICE [POLICY ...]]".into());
    };
    let trace = LoadedTrace::open(Path::new(path), &ReadOptions::default())?;
    let (device, policies) =
        rest.split_first().map_or(("cloud-ssd", &[][..]), |(device, rest)| (device.as_str(), rest));
    let usual = ["linux-6.18".to_owned(), "auto".to_owned()];
    let policies = if policies.is_empty() { &usual } else { policies };
    for policy in policies {
        let cell = SimCell { policy: policy.clone(), device: device.into(), ..SimCell::default() };
        let outcome = trace.simulate(&cell)?;
        println!(
            "{policy}: {:.3} s, {} requests of {}, {} wanted",
            outcome.elapsed.as_secs_f64(),
            outcome.device.requests,
            outcome.device.bytes,
            outcome.useful(),
        );
        for (at, line) in &outcome.policy_stats.decisions {
            println!("    {:.3} s {line}", at.as_secs_f64());
        }
    }
    Ok(())
}
