//! Measures one row of the table: processes that read requests of one size.

use std::path::Path;
use std::sync::Barrier;

use bench::Cancel;
use rand::RngExt;
use rand_pcg::Pcg64;
use stats::{Estimate, INTERVAL_FROM, student_975};
use sys::realtime;
use units::{Bytes, Nanos};

use crate::ExperimentError;
use crate::direct::{Aligned, Direct};
use crate::simulated::{DirectLoad, SimulatedDisk};

/// The confidence interval of a mean comes from the means of this many groups of requests.
const MEAN_GROUPS: usize = 20;

pub(super) struct BlockReads<'a> {
    pub(super) path: &'a Path,
    pub(super) processes: u32,
    pub(super) blocks: u64,
    pub(super) block: Bytes,
    /// Size of the first part of the storage, from which offsets are drawn.
    pub(super) span: Bytes,
    /// Size of the largest request of the table, which fits at every offset: all rows use the same
    /// offsets.
    pub(super) largest: Bytes,
    /// Size of the parts of larger requests, read one after another; `None` for no split.
    pub(super) part: Option<Bytes>,
    pub(super) duration: Nanos,
    pub(super) dilation: f64,
    pub(super) seed: u64,
}

/// One row of the table; times are in the storage's own time.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCell {
    pub processes: u32,
    pub blocks: u64,
    pub requests: u64,
    /// Milliseconds per request of a process.
    pub ms: Estimate,
}

impl BlockCell {
    pub fn requests_s(&self) -> f64 {
        1000.0 / self.ms.median
    }
    pub fn ms_per_block(&self) -> f64 {
        self.ms.median / self.blocks as f64
    }
}

impl BlockReads<'_> {
    pub(super) fn run(&self, cancel: &Cancel) -> Result<BlockCell, ExperimentError> {
        let start = Barrier::new(self.processes as usize);
        let results: Vec<Result<Vec<f64>, ExperimentError>> = std::thread::scope(|scope| {
            let process = |number| {
                let start = &start;
                scope.spawn(move || self.process(number, start, cancel))
            };
            let threads: Vec<_> = (0..self.processes).map(process).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let times = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        if cancel.is_cancelled() {
            return Err(ExperimentError::Cancelled);
        }
        let times: Vec<f64> = times.into_iter().flatten().collect();
        self.cell(&times)
    }

    pub(super) fn simulate(
        &self,
        disk: &mut SimulatedDisk,
        cancel: &Cancel,
    ) -> Result<BlockCell, ExperimentError> {
        if cancel.is_cancelled() {
            return Err(ExperimentError::Cancelled);
        }
        let places = self.places();
        let random = |number| Pcg64::new(u128::from(self.seed), u128::from(number));
        let mut random: Vec<Pcg64> = (0..self.processes).map(random).collect();
        let mut place = |reader: usize| {
            let place = random.get_mut(reader).map(|random| random.random_range(0..places));
            self.block * place.unwrap_or_default()
        };
        let served = disk.serve(&mut DirectLoad {
            readers: self.processes as usize,
            length: self.block * self.blocks,
            part: self.part,
            duration: self.duration,
            place: &mut place,
        });
        let times: Vec<f64> = served.times.iter().map(|time| time.as_millis_f64()).collect();
        self.cell(&times)
    }

    fn places(&self) -> u64 {
        (self.span.saturating_sub(self.largest).get() / self.block.get()).max(1)
    }

    /// Returns the row for these times of all requests, in milliseconds.
    fn cell(&self, times: &[f64]) -> Result<BlockCell, ExperimentError> {
        let ms = mean(times).ok_or_else(|| {
            let (size, span) = (self.block * self.blocks, self.duration);
            ExperimentError::Usage(format!(
                "no read of {size} completed in {span}: use a longer \
                                            --duration"
            ))
        })?;
        let requests = times.len() as u64;
        Ok(BlockCell { processes: self.processes, blocks: self.blocks, requests, ms })
    }

    /// Runs one process and returns the time of each of its requests, in milliseconds.
    fn process(
        &self,
        number: u32,
        start: &Barrier,
        cancel: &Cancel,
    ) -> Result<Vec<f64>, ExperimentError> {
        let opened = Direct::open(self.path);
        // The thread mostly waits for the storage. Real-time priority keeps waits for a processor
        // out of the measured time; without permission the call has no effect.
        let _ = realtime::set_realtime_priority(1);
        start.wait();
        let file = opened?;
        let mut buffer = Aligned::new(self.block * self.blocks);
        let places = self.places();
        let mut random = Pcg64::new(u128::from(self.seed), u128::from(number));
        let end = realtime::now() + self.duration.scaled(self.dilation);
        let mut times = Vec::new();
        let mut now = realtime::now();
        while now < end && !cancel.is_cancelled() {
            let at = self.block * random.random_range(0..places);
            self.read(&file, at, buffer.as_mut())?;
            let after = realtime::now();
            times.push((after - now).as_millis_f64() / self.dilation);
            now = after;
        }
        Ok(times)
    }
}

impl BlockReads<'_> {
    /// Reads one request, split into parts as the system would split it.
    fn read(&self, file: &Direct, at: Bytes, buffer: &mut [u8]) -> Result<(), ExperimentError> {
        let part = self.part.map_or(buffer.len(), |part| part.get() as usize);
        let mut place = at;
        for part in buffer.chunks_mut(part) {
            file.read(place, part)?;
            place += Bytes::new(part.len() as u64);
        }
        Ok(())
    }
}

/// Returns the mean and its interval. Consecutive requests of a process may be correlated, so the
/// interval comes from the means of groups, by Student's distribution.
fn mean(times: &[f64]) -> Option<Estimate> {
    let of = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let all = of(times);
    if !all.is_finite() {
        return None;
    }
    let groups: Vec<f64> = times.chunks(times.len().div_ceil(MEAN_GROUPS).max(1)).map(of).collect();
    if groups.len() < INTERVAL_FROM {
        let spread = Estimate::from_values(&groups)?;
        return Some(Estimate::range(all, spread.low(), spread.high(), groups.len() as u32));
    }
    let count = groups.len() as f64;
    let squares: f64 = groups.iter().map(|group| (group - of(&groups)).powi(2)).sum();
    let half = student_975(groups.len() - 1) * (squares / (count - 1.0) / count).sqrt();
    Some(Estimate::interval(all, all - half, all + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_lies_in_its_interval() {
        let times: Vec<f64> = (0..1000).map(|n| 3.0 + f64::from(n % 7)).collect();
        let ms = mean(&times).unwrap();
        assert!(ms.low() <= 6.0 && 6.0 <= ms.high() && ms.high() < 6.5, "{ms:?}");
        assert_eq!(mean(&[]), None);
        assert!(!mean(&[2.0]).unwrap().is_bounded());
    }
}
