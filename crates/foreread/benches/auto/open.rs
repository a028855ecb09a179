//! Eight running readers become at least three times as fast within three seconds.

use crate::Claim;
use crate::readers::{Readers, now};
use crate::stage::{Stage, sleep_until};

const FACTOR: f64 = 3.0;
const WITHIN: f64 = 3.0;
/// Seconds observed before and after `auto` starts.
const BEFORE: f64 = 4.0;
const AFTER: usize = 10;

pub fn prove() -> Vec<Claim> {
    let stage = Stage::set("raid10-2008,fs=ext4,size=6G,dilation=1");
    stage.files(8, 384);
    stage.set_window(128);
    let dir = stage.mount.to_str().unwrap();
    let readers = Readers::start(&["streams", "8", dir], None);
    let begun = now() + 1.0;
    sleep_until(begun + BEFORE);
    let auto = stage.auto();
    let before = readers.rate(begun, auto.begun);
    sleep_until(auto.begun + AFTER as f64 + 0.2);
    print!("    MiB/s before: {before:.0}; in each second after the start:");
    for second in 0..AFTER {
        let from = auto.begun + second as f64;
        print!(" {:.0}", readers.rate(from, from + 1.0));
    }
    println!();
    auto.show(24);
    // The first time, in tenths of a second, from which one second is fast enough.
    let fast = |tenth: &usize| {
        let from = auto.begun + *tenth as f64 / 10.0;
        readers.rate(from, from + 1.0) >= FACTOR * before
    };
    let since = (0..(AFTER - 1) * 10).find(fast).map(|tenth| tenth as f64 / 10.0);
    let last = readers.rate(auto.begun + AFTER as f64 - 2.0, auto.begun + AFTER as f64);
    let when = since.map_or("never".to_owned(), |since| format!("from {since:.1} s on"));
    let text = format!(
        "8 running readers, opened at 128 KiB, are {FACTOR:.0} times as fast within {WITHIN:.0} s: \
         {when}; {:.1} times at the end",
        last / before
    );
    vec![Claim::new(text, since.is_some_and(|since| since <= WITHIN))]
}
