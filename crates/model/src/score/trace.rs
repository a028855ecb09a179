//! Parses traces of real drives, in the format of the DiskSim validation set.

use std::borrow::Cow;
use std::io::Read;

use super::ScoreError;

/// One request of a closed loop, with its measured service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceRequest {
    pub is_write: bool,
    /// The first 512-byte sector.
    pub start: u64,
    pub sectors: u64,
    /// Measured service time in microseconds.
    pub service_us: f64,
    /// Time from the completion to the next arrival, in microseconds.
    pub gap_us: f64,
}

/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Maximum size of a decompressed trace: a hundred times the largest known one.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;

/// Returns the text of a trace, which may be compressed with zstd.
///
/// # Errors
///
/// If the compressed data is damaged or larger than 64 MiB, or the text is not UTF-8.
pub fn unpack(trace: &[u8]) -> Result<Cow<'_, str>, ScoreError> {
    if !trace.starts_with(&ZSTD) {
        let text = std::str::from_utf8(trace).map_err(|_| ScoreError::NotText)?;
        return Ok(Cow::Borrowed(text));
    }
    let broken = |why: String| ScoreError::Packed { why };
    let decoder = ruzstd::decoding::StreamingDecoder::new(trace)
        .map_err(|error| broken(error.to_string()))?;
    let mut bytes = Vec::new();
    let mut decoder = decoder.take(MAX_UNPACKED_BYTES + 1);
    decoder.read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
    if bytes.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(broken(format!("decompresses to more than {} MiB", MAX_UNPACKED_BYTES >> 20)));
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| ScoreError::NotText)
}

/// Parses the lines `R|W Hit|Miss BLOCK SECTORS SERVICE_US GAP_US`. Ignores the second word, which
/// is DiskSim's guess of a cache hit, and empty lines.
///
/// # Errors
///
/// With the number of the first invalid line.
pub fn parse_trace(text: &str) -> Result<Vec<TraceRequest>, ScoreError> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let broken = |why: &str| ScoreError::TraceLine { line: index + 1, why: why.to_owned() };
        requests.push(parse_request(line).map_err(broken)?);
    }
    Ok(requests)
}

fn parse_request(line: &str) -> Result<TraceRequest, &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[kind, _, start, sectors, service, gap] = words.as_slice() else {
        return Err("expected six words: R or W, Hit or Miss, block, sectors, service us, gap us");
    };
    let is_write = match kind {
        "R" | "r" => false,
        "W" | "w" => true,
        _ => return Err("the first word must be R or W"),
    };
    let span = |word: &str, what| {
        let span = word.parse::<f64>().ok().filter(|span| (0.0..=1e10).contains(span));
        span.ok_or(what)
    };
    let sectors = sectors.parse().ok().filter(|&sectors| (1..=1 << 22).contains(&sectors));
    Ok(TraceRequest {
        is_write,
        start: start.parse().ok().filter(|&start| start < 1 << 48).ok_or("not a block number")?,
        sectors: sectors.ok_or("not a length in sectors from 1 to 4194304")?,
        service_us: span(service, "the service time must be from 0 to 1e10 microseconds")?,
        gap_us: span(gap, "the gap must be from 0 to 1e10 microseconds")?,
    })
}

/// Parses a measured seek curve: a title line, then `CYLINDERS, MILLISECONDS[, DEVIATION]`. Returns
/// pairs of distance and time.
///
/// # Errors
///
/// With the number of the first invalid line, or if there is no point.
pub fn parse_seek(text: &str) -> Result<Vec<[f64; 2]>, ScoreError> {
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_title = points.is_empty() && line.starts_with(|first: char| first.is_alphabetic());
        if line.is_empty() || line.starts_with('#') || is_title {
            continue;
        }
        let mut words = line.split(',').map(str::trim);
        let mut number = |limit: f64| {
            let number = words.next().and_then(|word| word.parse::<f64>().ok());
            number.filter(|number| (0.0..=limit).contains(number))
        };
        match (number(1e9), number(1e4)) {
            (Some(distance), Some(time)) => points.push([distance, time]),
            _ => return Err(ScoreError::SeekLine { line: index + 1 }),
        }
    }
    if points.is_empty() { Err(ScoreError::NoSeekPoints) } else { Ok(points) }
}
