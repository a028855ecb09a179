//! Access pattern of an open file: steps between accesses, runs and majorities.

use crate::recording::{AccessKind, FileAccess};

/// Bytes around a fault that the kernel maps if they are cached (`fault_around_bytes`, 64 KiB).
const FAULT_AROUND_BYTES: i64 = 64 << 10;
const PAGE_BYTES: i64 = 4096;
/// Two windows of the default size.
const NEAR_BYTES: i64 = 256 << 10;

/// Statistics of a sequence of accesses.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccessShape {
    /// Number of calls; each merged call counts.
    pub calls: u64,
    pub steps: u64,
    /// Steps to the end of the previous access.
    pub contiguous: u64,
    /// Steps to before the start of the previous access.
    pub backward: u64,
    /// Contiguous steps, and steps forward by at most 256 KiB.
    pub near: u64,
    /// Majority candidate of the distances between starts in other steps, and its count.
    pub stride: Option<(i64, u64)>,
    /// Bytes of each run of contiguous accesses.
    pub runs: Vec<u64>,
    /// Calls in each run.
    pub run_calls: Vec<u64>,
    pub bytes: u64,
    pub median_length: u64,
}

impl AccessShape {
    /// Computes the shape of accesses in order of time.
    pub(crate) fn new<'a>(accesses: impl Iterator<Item = &'a FileAccess>) -> Self {
        let mut shape = Self::default();
        let mut last: Option<&FileAccess> = None;
        let mut candidate = (0_i64, 0_u64);
        let mut deltas: Vec<i64> = Vec::new();
        let mut lengths: Vec<u64> = Vec::new();
        for access in accesses {
            let (calls, length) = (u64::from(access.calls), access.length.get());
            shape.calls += calls;
            shape.bytes += length;
            lengths.push(length / calls.max(1));
            // Merged calls are contiguous.
            shape.steps += calls - 1;
            shape.contiguous += calls - 1;
            shape.near += calls - 1;
            if let Some(last) = last {
                shape.steps += 1;
                let delta = start(access) - start(last);
                if is_contiguous(last, access) {
                    shape.contiguous += 1;
                    shape.near += 1;
                } else {
                    shape.near += u64::from((1..=NEAR_BYTES).contains(&delta));
                    shape.backward += u64::from(delta < 0);
                    deltas.push(delta);
                    // Boyer and Moore's majority vote.
                    if candidate.1 == 0 {
                        candidate = (delta, 1);
                    } else if candidate.0 == delta {
                        candidate.1 += 1;
                    } else {
                        candidate.1 -= 1;
                    }
                }
            }
            let is_contiguous = last.is_some_and(|last| is_contiguous(last, access));
            match (shape.runs.last_mut(), shape.run_calls.last_mut()) {
                (Some(run), Some(count)) if is_contiguous => {
                    *run += length;
                    *count += calls;
                }
                _ => {
                    shape.runs.push(length);
                    shape.run_calls.push(calls);
                }
            }
            last = Some(access);
        }
        let count = deltas.iter().filter(|delta| **delta == candidate.0).count() as u64;
        shape.stride = (count > 0).then_some((candidate.0, count));
        shape.median_length = median(&mut lengths);
        shape
    }

    pub(crate) fn share(&self, count: u64) -> f64 {
        if self.steps == 0 { 0.0 } else { count as f64 / self.steps as f64 }
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.share(self.contiguous) >= 0.75
    }

    pub(crate) fn median_run(&self) -> u64 {
        median(&mut self.runs.clone())
    }

    pub(crate) fn median_run_calls(&self) -> u64 {
        median(&mut self.run_calls.clone())
    }
}

fn start(access: &FileAccess) -> i64 {
    i64::try_from(access.offset.get()).unwrap_or(i64::MAX)
}

/// Returns whether a read starts at the end of the last access or less than a page before it, or a
/// fault starts within the range that the last fault may have mapped.
fn is_contiguous(last: &FileAccess, next: &FileAccess) -> bool {
    let gap = start(next) - start(last) - i64::try_from(last.length.get()).unwrap_or(i64::MAX);
    match next.kind {
        AccessKind::Read => (-PAGE_BYTES + 1..=0).contains(&gap) && start(next) > start(last),
        AccessKind::Fault => (0..=FAULT_AROUND_BYTES).contains(&gap),
    }
}

/// Returns the middle value, the upper one of two, or 0 if there are no values.
pub(crate) fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
