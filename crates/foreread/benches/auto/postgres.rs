//! PostgreSQL with 1.5 million rows on an old disk: random selects by key, from a cold cache until
//! all data is cached, without and with `auto`. Takes a quarter of an hour.

use serde_json::Value;

use crate::Claim;
use crate::program::foreread_in;

/// Size of 1.5 million rows.
const SIZE: &str = "652M";
/// How many times faster than the kernel alone `auto` must be.
const FACTOR: f64 = 20.0;
/// Length of a slot in seconds, and the fraction by which queries in a slot may decrease.
const SLOT: usize = 5;
const LOSS: f64 = 0.10;

pub fn prove() -> Vec<Claim> {
    let dir = tempfile::tempdir().unwrap();
    let mut command = foreread_in(dir.path());
    command.args(["pg", "virtual:hdd-2008,fs=xfs,dilation=1,size=4G", "--test", "prime"]);
    command.args(["--auto", "--size", SIZE, "--limit", "20min", "--json"]);
    let output = command.output().unwrap();
    let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else {
        println!("  SKIP: {}", String::from_utf8_lossy(&output.stderr).trim());
        return Vec::new();
    };
    let seconds = |settings: &str| {
        let rows = answer["tables"][0]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["settings"] == settings).unwrap();
        row["seconds"].as_f64().unwrap()
    };
    // Queries per second, in slots.
    let slots = |settings: &str| -> Vec<f64> {
        let curves = answer["plots"][0]["curves"].as_array().unwrap();
        let curve = curves.iter().find(|curve| curve["name"] == settings).unwrap();
        let points: Vec<f64> = curve["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| point[1].as_f64().unwrap())
            .collect();
        points.chunks_exact(SLOT).map(|slot| slot.iter().sum::<f64>() / SLOT as f64).collect()
    };
    let (without, with) = (seconds("auto=off"), seconds("auto=on"));
    let (kernel, auto) = (slots("auto=off"), slots("auto=on"));
    println!("    queries/s in slots of {SLOT} s, without: {kernel:.0?}; with: {auto:.0?}");
    let worst = kernel.iter().zip(&auto).map(|(kernel, auto)| auto / kernel.max(1.0));
    let worst = worst.fold(f64::INFINITY, f64::min);
    // If the kernel alone ran into the time limit, its time is a lower bound.
    let least = if answer["decided"] == true { "" } else { "at least " };
    vec![
        Claim::new(
            format!(
                "all is cached in 1/{FACTOR:.0} of the time: {with:.0} s, the kernel alone \
                 {least}{without:.0} s"
            ),
            with * FACTOR <= without,
        ),
        Claim::new(
            format!("no slot has fewer queries by more than 10 %: the worst {worst:.2} times"),
            worst >= 1.0 - LOSS,
        ),
    ]
}
