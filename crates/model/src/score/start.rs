//! Initial constants of the fit, estimated from the trace without a model.

use std::collections::BTreeMap;

use units::SECTOR_BYTES;

use crate::drive::ReadBefore;

use super::classes::{CONTIGUOUS_READ, CONTIGUOUS_WRITE, is_write};
use super::constants::Constants;
use super::trace::TraceRequest;

/// Minimum number of requests of one length for their median to be used.
const MIN_REQUESTS: usize = 10;

/// Returns the mean length of a request in bytes.
pub(super) fn mean_length(trace: &[TraceRequest]) -> f64 {
    let sectors: u64 = trace.iter().map(|request| request.sectors).sum();
    (sectors * SECTOR_BYTES) as f64 / trace.len().max(1) as f64
}

/// Estimates initial constants: the bus rate from the slope of service time over length for
/// requests that the cache serves, and the overheads from the remainder.
pub(super) fn first_guess(trace: &[TraceRequest], kinds: &[usize]) -> Constants {
    let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<(u64, f64)> {
        let both = trace.iter().zip(kinds).filter(|&(_, &kind)| wanted(kind));
        both.map(|(request, _)| (request.sectors, request.service_us / 1e3)).collect()
    };
    let writes = of(&is_write);
    let hits = of(&|kind| kind == CONTIGUOUS_READ);
    let write_back = median(writes.iter().map(|write| write.1)).is_none_or(|time| time < 4.0);
    let answered = if write_back && !writes.is_empty() { &writes } else { &hits };
    // Milliseconds per sector, limited to the bus rates of mechanical drives: 0.5 to 1000 MB/s.
    let slope = slope(answered).unwrap_or(0.1).clamp(0.000_512, 1.024);
    let overhead = |times: &[(u64, f64)]| {
        let rest = times.iter().map(|&(sectors, time)| time - sectors as f64 * slope);
        median(rest).map(|overhead| overhead.clamp(0.0, 2.0))
    };
    let write = overhead(&of(&|kind| is_write(kind) && kind != CONTIGUOUS_WRITE)).unwrap_or(0.5);
    let streak = overhead(&of(&|kind| kind == CONTIGUOUS_WRITE)).unwrap_or(write);
    Constants {
        overhead_ms: 0.4,
        hit_overhead_ms: overhead(&hits).unwrap_or(0.3),
        write_overhead_ms: write,
        write_streak_ms: (write - streak).max(0.0),
        bus_mb_s: SECTOR_BYTES as f64 / 1e3 / slope,
        seek_scale: 1.0,
        settle_ms: 0.5,
        jitter_ms: 0.0,
        read_before: ReadBefore::Nothing,
        keep_delivered: true,
        read_ahead_after_run: false,
        read_ahead_within_track: false,
        store_and_forward: false,
        write_back,
        read_ahead_kib: 128,
        segments: 4,
    }
}

fn median(times: impl Iterator<Item = f64>) -> Option<f64> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Returns the slope of time over length through the medians by length, weighted by count.
fn slope(times: &[(u64, f64)]) -> Option<f64> {
    let mut by_length: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &(length, time) in times {
        by_length.entry(length).or_default().push(time);
    }
    let points: Vec<[f64; 3]> = by_length
        .into_iter()
        .filter(|(_, times)| times.len() >= MIN_REQUESTS)
        .filter_map(|(length, times)| {
            let weight = times.len() as f64;
            median(times.into_iter()).map(|time| [length as f64, time, weight])
        })
        .collect();
    let total: f64 = points.iter().map(|point| point[2]).sum();
    let mean = |axis: usize| points.iter().map(|p| p[axis] * p[2]).sum::<f64>() / total;
    let (x, y) = (mean(0), mean(1));
    let covariance: f64 = points.iter().map(|p| p[2] * (p[0] - x) * (p[1] - y)).sum();
    let variance: f64 = points.iter().map(|p| p[2] * (p[0] - x).powi(2)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_medians_is_found_in_spite_of_outliers() {
        let mut times: Vec<(u64, f64)> =
            (0..400).map(|i| (4 + i % 4 * 4, 1.0 + (4 + i % 4 * 4) as f64 * 0.1)).collect();
        times.iter_mut().step_by(7).for_each(|time| time.1 += 50.0);
        assert!((slope(&times).unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(slope(&times[..1]), None);
        assert_eq!(median(std::iter::empty()), None);
    }
}
