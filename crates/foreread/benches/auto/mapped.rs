//! A mapping that is read at random under a window of 8 MiB.

use crate::Claim;
use crate::readers::{Readers, now};
use crate::stage::{Stage, sleep_until};

const MOST: f64 = 3.0;
const WITHIN: f64 = 2.0;
const AFTER: usize = 6;

pub fn prove() -> Vec<Claim> {
    let stage = Stage::set("hdd-2008,fs=ext4,size=3G,dilation=1");
    stage.files(1, 2048);
    stage.set_window(8192);
    let file = stage.mount.join("0");
    let readers = Readers::start(&["mapped", file.to_str().unwrap()], None);
    let (begun, read) = (now(), stage.device_bytes());
    sleep_until(begun + 3.0);
    let auto = stage.auto();
    // Time and device bytes at each tenth of a second.
    let mut read_at = Vec::new();
    for tenth in 0..=AFTER * 10 {
        sleep_until(auto.begun + tenth as f64 / 10.0);
        read_at.push((now(), stage.device_bytes()));
    }
    let amplification = |from: (f64, u64), to: (f64, u64)| {
        let wanted = readers.at(to.0).bytes - readers.at(from.0).bytes;
        (to.1 - from.1) as f64 / wanted.max(4096) as f64
    };
    let before = amplification((begun, read), read_at[0]);
    print!("    device bytes for each wanted one before: {before:.0}; in each second after:");
    for second in 0..AFTER {
        print!(" {:.1}", amplification(read_at[second * 10], read_at[second * 10 + 10]));
    }
    println!();
    auto.show(8);
    let low = |tenth: &usize| amplification(read_at[*tenth], read_at[*tenth + 10]) < MOST;
    let since = (0..(AFTER - 1) * 10).find(low).map(|tenth| tenth as f64 / 10.0);
    let when = since.map_or("never".to_owned(), |since| format!("from {since:.1} s on"));
    let text = format!(
        "of a mapping read at random under 8 MiB the disk reads less than {MOST:.0} times what is \
         wanted within {WITHIN:.0} s: {when}"
    );
    // The claim is met only if the disk read more than the limit before `auto` started.
    vec![Claim::new(text, before > MOST && since.is_some_and(|since| since <= WITHIN))]
}
