//! Measures a diagnosis of a machine with twenty disks and one udev rule for them, from reading the
//! snapshot to the findings. The target is less than 50 ms without root.
#![allow(clippy::unwrap_used)] // a benchmark may panic
#![allow(clippy::print_stdout)] // a benchmark prints its results

#[path = "../tests/hosts/mod.rs"]
mod hosts;

use std::time::{Duration, Instant};

use foreread_doctor::{Windows, diagnose};
use hosts::{FLASH, Machine};

const DISKS: u32 = 20;
const ROUNDS: usize = 50;

fn main() {
    let rule = "SUBSYSTEM==\"block\", KERNEL==\"sd*\", ATTR{queue/read_ahead_kb}=\"128\"\n";
    let mut machine = Machine::new("6.18.0").with("etc/udev/rules.d/60-ra.rules", rule);
    for index in 0..DISKS {
        let name = format!("sd{}", char::from(b'a' + index as u8));
        let number = format!("8:{}", index * 16);
        machine = machine.device(&name, &number, FLASH).mount(
            &number,
            &format!("/data{index}"),
            "xfs",
            &format!("/dev/{name}"),
        );
    }
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let found = diagnose(&machine.snapshot(Windows::not_asked()));
            assert_eq!(found.len(), DISKS as usize);
            start.elapsed()
        })
        .collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "doctor, {DISKS} disks: median {:.1} ms, fastest {:.1} ms, slowest {:.1} ms of {ROUNDS}",
        ms(times[ROUNDS / 2]),
        ms(times[0]),
        ms(times[ROUNDS - 1])
    );
}
