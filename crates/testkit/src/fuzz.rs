//! Fuzzing on a stable compiler.
//!
//! Mutations of a corpus are given to the code under test, which must not panic, until a time
//! budget is used up: 2 s, or `FOREREAD_FUZZ_SECONDS`. Every run draws a new seed for its random
//! numbers and prints it; `FOREREAD_FUZZ_SEED` repeats a run. An input that causes a panic is
//! written to a file, to be added to the corpus.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const DEFAULT_BUDGET: Duration = Duration::from_secs(2);
/// Inputs do not grow beyond this: longer ones are slow and reveal nothing new.
const MAX_INPUT_BYTES: usize = 1 << 16;
/// Numbers at the limits of integer and floating-point types.
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
/// Characters with a meaning in text formats.
const TOKENS: &[&str] = &[
    "\n", "\r\n", "\0", "\"", "\\", ",", "=", "(", ")", "<", ">", "[", "]", "{", "}", "#", ";",
    ":", "+", " ", "\t", "-", "*", "%", "\u{fe0f}", "\u{a0}",
];

/// Returns the time that a test may spend: `FOREREAD_FUZZ_SECONDS`, or 2 s.
pub fn budget() -> Duration {
    let asked = std::env::var("FOREREAD_FUZZ_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).map_or(DEFAULT_BUDGET, Duration::from_secs)
}

/// Returns the contents of the files of a directory, in order of their names.
pub fn seeds(dir: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Returns an input made from the corpus: one of its members with up to eight changes.
pub fn mutate(corpus: &[Vec<u8>], rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut input = pick(corpus, rng);
    for _ in 0..rng.random_range(1..=8u32) {
        change(&mut input, corpus, rng);
    }
    input.truncate(MAX_INPUT_BYTES);
    input
}

fn pick(corpus: &[Vec<u8>], rng: &mut Pcg64Mcg) -> Vec<u8> {
    if corpus.is_empty() { Vec::new() } else { corpus[rng.random_range(0..corpus.len())].clone() }
}

/// Returns a random range of the input, which is empty only if the input is.
fn part(input: &[u8], rng: &mut Pcg64Mcg) -> std::ops::Range<usize> {
    if input.is_empty() {
        return 0..0;
    }
    let start = rng.random_range(0..input.len());
    let longest = (input.len() - start).min(1 << rng.random_range(0..10u32));
    start..start + rng.random_range(1..=longest.max(1))
}

fn line(input: &[u8], rng: &mut Pcg64Mcg) -> std::ops::Range<usize> {
    let at = part(input, rng).start;
    let start = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end =
        input[at..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |it| at + it + 1);
    start..end
}

/// Returns the range of the digits that follow a random position, if any do.
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
            let at = part(input, rng).start;
            input.splice(at..at, copy);
        }
        5 => drop(input.splice(some.start..some.start, word(TOKENS, rng).to_vec())),
        6 | 7 => {
            if let Some(digits) = number(input, rng) {
                input.splice(digits, word(NUMBERS, rng).to_vec());
            }
        }
        8 => drop(input.drain(line(input, rng))),
        9 => {
            let copy = input[line(input, rng)].to_vec();
            let at = line(input, rng).start;
            input.splice(at..at, copy);
        }
        10 => {
            let other = pick(corpus, rng);
            let piece = part(&other, rng);
            input.splice(some, other[piece].to_vec());
        }
        _ => {
            let other = pick(corpus, rng);
            let at = part(&other, rng).start;
            input.truncate(some.start);
            input.extend_from_slice(&other[at..]);
        }
    }
}

/// Calls `test` with each member of the corpus and then with mutations of them until the budget is
/// used up. Returns the number of inputs.
///
/// # Panics
///
/// If `test` panics; the name of a file with the input and the seed are printed.
pub fn run(budget: Duration, corpus: &[Vec<u8>], mut test: impl FnMut(&[u8])) -> u64 {
    let start = Instant::now();
    let seed = seed();
    eprintln!("FOREREAD_FUZZ_SEED={seed}");
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut inputs = 0u64;
    for input in corpus {
        guarded(input, &mut test);
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

/// Returns `FOREREAD_FUZZ_SEED`, or another number in every run.
fn seed() -> u64 {
    let given = std::env::var("FOREREAD_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    given.unwrap_or_else(|| u64::from(now().subsec_nanos()))
}

/// Returns the path of the file for the input that made a test of this process panic.
fn panic_input_path() -> PathBuf {
    std::env::temp_dir().join(format!("foreread-fuzz-{}.seed", std::process::id()))
}

fn guarded(input: &[u8], test: &mut impl FnMut(&[u8])) {
    let result = catch_unwind(AssertUnwindSafe(|| test(input)));
    if let Err(panic) = result {
        let path = panic_input_path();
        let written = fs::write(&path, input);
        eprintln!("input that caused the panic: {} ({written:?})", path.display());
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_differ_and_follow_from_the_seed() {
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
        // The panic was provoked, so its input must not stay behind.
        assert_eq!(fs::read(panic_input_path()).expect("the input is kept"), b"ab");
        fs::remove_file(panic_input_path()).expect("removed");
    }

    #[test]
    fn an_empty_corpus_is_fuzzed_too() {
        assert!(run(Duration::from_millis(10), &[], |_| ()) > 0);
    }
}
