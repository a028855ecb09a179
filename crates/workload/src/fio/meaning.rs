//! The meaning of single options.

use units::Bytes;

use super::error::FioError;
use super::value::Given;
use crate::parameters::BLOCK_MAX;

/// How a job accesses data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FioEngine {
    Sync,
    /// Several requests may be in flight.
    Async,
    Mmap,
}

/// The distribution of random requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Distribution {
    Uniform,
    Zipf(f64),
    /// A distribution that only fio supports.
    Other,
}

/// The advice that fio gives the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FioAdvice {
    None,
    /// According to the job's pattern.
    Pattern,
    Random,
    Sequential,
    NoReuse,
}

/// Returns the part before the first comma, which applies to reads.
pub(crate) fn first(value: &str) -> &str {
    value.split(',').next().unwrap_or_default()
}

/// Parses the smallest and largest read: `4k`, `4k,8k` (read, write), `4k-8k`.
pub(crate) fn block(given: &Given<'_>) -> Result<(Bytes, Bytes), FioError> {
    let mut all = given.value.split(',').map(|part| match part {
        "" => Ok(None),
        part => range(given, part).map(Some),
    });
    // The values for writes and trims must be valid as well.
    let read = all.next().unwrap_or(Ok(None))?;
    for rest in all {
        rest?;
    }
    let page = Bytes::from_kib(4);
    let (low, high) = read.unwrap_or((page, page));
    if low.is_zero() || high > BLOCK_MAX {
        return Err(given.wrong(format!("1 B to {}", BLOCK_MAX)));
    }
    Ok((low, high))
}

fn range(given: &Given<'_>, text: &str) -> Result<(Bytes, Bytes), FioError> {
    let ends = match given.option {
        "bsrange" => text.split_once(['-', ':']),
        _ => text.split_once('-'),
    };
    match ends {
        Some((low, high)) => {
            let (a, b) = (given.part(low).bytes()?, given.part(high).bytes()?);
            Ok((a.min(b), a.max(b)))
        }
        None if given.option == "bsrange" => Err(given.wrong("two sizes, as in 4k-64k")),
        None => given.part(text).bytes().map(|size| (size, size)),
    }
}

/// Converts `bs` with ranges to the equivalent `bsrange`: fio's `bs` takes one size for each
/// direction and ignores the rest of `4k-64k`.
pub(crate) fn as_range(value: &str) -> Option<String> {
    let parts = value.split(',').map(|part| match part {
        part if part.is_empty() || part.contains('-') => part.to_owned(),
        part => format!("{part}-{part}"),
    });
    value.contains('-').then(|| parts.collect::<Vec<_>>().join(","))
}

pub(crate) fn file_size(given: &Given<'_>) -> Result<Bytes, FioError> {
    if given.value.contains('-') {
        return Err(given.refused("files of random sizes are not supported"));
    }
    given.bytes()
}

/// Parses names separated by colons; `\:` is a colon within a name.
pub(crate) fn file_names(given: &Given<'_>) -> Result<Vec<String>, FioError> {
    let mut names = vec![String::new()];
    let mut letters = given.value.chars();
    while let Some(letter) = letters.next() {
        match (letter, names.last_mut()) {
            (':', _) => names.push(String::new()),
            ('\\', Some(name)) => name.extend(letters.next()),
            (letter, Some(name)) => name.push(letter),
            (_, None) => {}
        }
    }
    match names.iter().any(|name| name.is_empty()) {
        true => Err(given.wrong("names with colons between them")),
        false if names.iter().any(|name| name == "-") => {
            Err(given.refused("standard input is not storage"))
        }
        false => Ok(names),
    }
}

pub(crate) fn engine(given: &Given<'_>) -> Result<FioEngine, FioError> {
    match given.value {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(FioEngine::Sync),
        "libaio" | "io_uring" | "posixaio" => Ok(FioEngine::Async),
        "mmap" => Ok(FioEngine::Mmap),
        _ => Err(given.refused(
            "this ioengine does not read files or block devices of this kernel: psync, sync, \
             vsync, pvsync, pvsync2, libaio, io_uring, posixaio and mmap do",
        )),
    }
}

pub(crate) fn advice(given: &Given<'_>) -> Result<FioAdvice, FioError> {
    match given.value {
        "0" => Ok(FioAdvice::None),
        "1" => Ok(FioAdvice::Pattern),
        "random" => Ok(FioAdvice::Random),
        "sequential" => Ok(FioAdvice::Sequential),
        "noreuse" => Ok(FioAdvice::NoReuse),
        _ => Err(given.wrong("0, 1, random, sequential or noreuse")),
    }
}

pub(crate) fn distribution(given: &Given<'_>) -> Result<Distribution, FioError> {
    let (name, parameter) = given.value.split_once(':').unwrap_or((given.value, ""));
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            // A centre may follow after a slash, which our own engine does not support.
            let theta = if parameter.is_empty() { "1.1" } else { parameter };
            match theta.parse::<f64>() {
                Ok(theta) if theta > 0.0 && theta <= 10.0 => Ok(Distribution::Zipf(theta)),
                _ if theta.contains('/') => Ok(Distribution::Other),
                _ => Err(given.wrong("zipf:THETA with a number above 0, at most 10")),
            }
        }
        "pareto" | "normal" | "zoned" | "zoned_abs" | "sequence" => Ok(Distribution::Other),
        _ => {
            Err(given.wrong("random, zipf:THETA, pareto:H, normal:PERCENT, zoned:… or sequence:…"))
        }
    }
}
