//! Fuzzing on a stable compiler, for the tests of other rooms.
//!
//! A corpus of seeds is mutated until a budget of time is used up, and each input is given to what
//! is under test, which must not panic. The budget is short in an ordinary test run;
//! `FOREREAD_FUZZ_SECONDS=600` asks for the real thing. Inputs follow from a number, so a failure
//! can be had again; the input itself is written to a file, to become a seed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a test spends where nobody asks for more.
const BUDGET: Duration = Duration::from_secs(2);
/// Inputs do not grow beyond this: what is long is slow and shows nothing new.
const LONGEST: usize = 1 << 16;
/// Numbers at which code breaks.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "1e308",
    "1e-400",
    "nan",
    "inf",
    "0x7fffffffffffffff",
    "0.0000000001",
];
/// What means something to parsers of text.
const WORDS: &[&str] = &[
    "\n", "\r\n", "\0", "\"", "\\", ",", "=", "(", ")", "<", ">", "[", "]", "{", "}", "#", ";",
    ":", "+", " ", "\t", "-", "*", "%", "\u{fe0f}", "\u{a0}",
];

/// How long a test may fuzz: `FOREREAD_FUZZ_SECONDS`, or 2 s.
pub fn budget() -> Duration {
    let asked = std::env::var("FOREREAD_FUZZ_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).map_or(BUDGET, Duration::from_secs)
}

/// The files of a directory, in order of their names: a corpus that is kept.
pub fn seeds(dir: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// One input made of the corpus: a seed with a few changes, or two seeds in one.
pub fn mutate(corpus: &[Vec<u8>], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut input = pick(corpus, rng);
    for _ in 0..rng.random_range(1..=8u32) {
        change(&mut input, corpus, rng);
    }
    input.truncate(LONGEST);
    input
}

fn pick(corpus: &[Vec<u8>], rng: &mut Pcg64Mcg) -> Vec<u8> {
    if corpus.is_empty() { Vec::new() } else { corpus[rng.random_range(0..corpus.len())].clone() }
}

/// A part of the input that is not empty unless the input is.
fn part(input: &[u8], rng: &mut Pcg64Mcg) -> std::ops::Range<usize> {
    if input.is_empty() {
        return 0..0;
    }
    let start = rng.random_range(0..input.len());
    let longest = (input.len() - start).min(1 << rng.random_range(0..10u32));
    start..start + rng.random_range(1..=longest.max(1))
}

/// The line around a place.
fn line(input: &[u8], rng: &mut Pcg64Mcg) -> std::ops::Range<usize> {
    let at = part(input, rng).start;
    let start = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end =
        input[at..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |it| at + it + 1);
    start..end
}

/// The digits around a place, if there are any behind it.
fn number(input: &[u8], rng: &mut Pcg64Mcg) -> Option<std::ops::Range<usize>> {
    let at = part(input, rng).start;
    let start = at + input[at..].iter().position(u8::is_ascii_digit)?;
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(start..start + length)
}

fn word<'a>(words: &[&'a str], rng: &mut Pcg64Mcg) -> &'a [u8] {
    words[rng.random_range(0..words.len())].as_bytes()
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Pcg64Mcg) {
    let some = part(input, rng);
    match rng.random_range(0..12u32) {
        0 => {
            for byte in &mut input[some] {
                *byte ^= 1 << rng.random_range(0..8u32);
            }
        }
        1 => rng.fill_bytes(&mut input[some]),
        2 => drop(input.drain(some)),
        3 => input.truncate(some.start),
        4 => {
            let copy = input[some.clone()].to_vec();
            let place = part(input, rng).start;
            input.splice(place..place, copy);
        }
        5 => drop(input.splice(some.start..some.start, word(WORDS, rng).to_vec())),
        6 | 7 => {
            if let Some(digits) = number(input, rng) {
                input.splice(digits, word(NUMBERS, rng).to_vec());
            }
        }
        8 => drop(input.drain(line(input, rng))),
        9 => {
            let copy = input[line(input, rng)].to_vec();
            let place = line(input, rng).start;
            input.splice(place..place, copy);
        }
        10 => {
            let other = pick(corpus, rng);
            let piece = part(&other, rng);
            input.splice(some, other[piece].to_vec());
        }
        _ => {
            let other = pick(corpus, rng);
            let place = part(&other, rng).start;
            input.truncate(some.start);
            input.extend_from_slice(&other[place..]);
        }
    }
}

/// Gives mutated inputs to `test` until the budget is used up, and each seed first as it is.
/// Returns how many inputs there were.
///
/// # Panics
///
/// If `test` does: then the input is in a file whose name is printed, to be kept as a seed.
pub fn run(budget: Duration, corpus: &[Vec<u8>], mut test: impl FnMut(&[u8])) -> u64 {
    let start = Instant::now();
    let mut rng = Pcg64Mcg::seed_from_u64(0x00f0_5eed);
    let mut inputs = 0u64;
    for seed in corpus {
        guarded(seed, &mut test);
        inputs += 1;
    }
    while start.elapsed() < budget {
        for _ in 0..16 {
            guarded(&mutate(corpus, &mut rng), &mut test);
            inputs += 1;
        }
    }
    inputs
}

/// Where the input that made a test of this process panic is kept.
fn keepsake() -> PathBuf {
    std::env::temp_dir().join(format!("foreread-fuzz-{}.seed", std::process::id()))
}

fn guarded(input: &[u8], test: &mut impl FnMut(&[u8])) {
    let result = catch_unwind(AssertUnwindSafe(|| test(input)));
    if let Err(panic) = result {
        let path = keepsake();
        let kept = fs::write(&path, input);
        eprintln!("the input that did it ({kept:?}) is in {}", path.display());
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_differ_and_follow_from_the_number() {
        let corpus = vec![b"1 2 3\n4 5 6\n".to_vec(), b"x=10\n".to_vec()];
        let make = || {
            let mut rng = Pcg64Mcg::seed_from_u64(1);
            (0..200).map(|_| mutate(&corpus, &mut rng)).collect::<Vec<_>>()
        };
        let inputs = make();
        assert_eq!(inputs, make());
        let mut distinct = inputs.clone();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 150, "{} of 200", distinct.len());
    }

    #[test]
    fn a_panic_is_found() {
        let corpus = vec![b"abc".to_vec()];
        let found = catch_unwind(|| {
            run(Duration::from_secs(20), &corpus, |input| assert!(input != b"ab"));
        });
        assert!(found.is_err());
        // It was asked for, so it is not to be left behind.
        assert_eq!(fs::read(keepsake()).expect("the input is kept"), b"ab");
        fs::remove_file(keepsake()).expect("removed");
    }

    #[test]
    fn nothing_to_begin_with_is_no_harm() {
        assert!(run(Duration::from_millis(10), &[], |_| ()) > 0);
    }
}
