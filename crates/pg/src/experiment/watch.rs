//! Device activity during a test: counted from start to end, and sampled in between.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use bench::Series;
use host::{BlockStat, Root, Storage};
use sys::realtime;
use units::Nanos;

use crate::error::PgError;

/// First interval between two samples; it doubles whenever there are too many samples.
const FIRST_INTERVAL: Nanos = Nanos::from_millis(100);
/// Maximum number of samples; a chart cannot show more.
const MAX_SAMPLES: usize = 240;

/// Quantities that are sampled together; the interval grows with the duration.
#[derive(Clone, Debug)]
pub(super) struct SampledSeries {
    every: Nanos,
    next: Nanos,
    looks: usize,
    series: Vec<Series>,
}

impl SampledSeries {
    pub(super) fn new(series: Vec<Series>) -> Self {
        Self { every: FIRST_INTERVAL, next: FIRST_INTERVAL, looks: 0, series }
    }

    /// Returns whether a sample is due at this time.
    pub(super) fn is_due(&self, at: Nanos) -> bool {
        at >= self.next
    }

    /// Adds one value of each quantity.
    pub(super) fn push(&mut self, at: Nanos, values: &[f64]) {
        for (series, value) in self.series.iter_mut().zip(values) {
            series.push(at, *value);
        }
        self.looks += 1;
        if self.looks >= MAX_SAMPLES {
            self.series.iter_mut().for_each(halve);
            self.looks /= 2;
            self.every = self.every * 2;
        }
        self.next = at + self.every;
    }

    pub(super) fn series(self) -> Vec<Series> {
        self.series.into_iter().filter(|series| !series.at.is_empty()).collect()
    }
}

/// Merges pairs of samples: their mean, at the later time.
fn halve(series: &mut Series) {
    let pairs = series.at.chunks_exact(2).zip(series.values.chunks_exact(2));
    let (at, values) = pairs.map(|(at, values)| (at[1], (values[0] + values[1]) / 2.0)).unzip();
    (series.at, series.values) = (at, values);
}

/// Device activity, in wall time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeviceActivity {
    pub(super) stat: BlockStat,
    pub(super) seconds: f64,
    pub(super) series: Vec<Series>,
}

impl DeviceActivity {
    /// Returns the share of time with at least one request at the device; `None` for an empty time.
    pub(super) fn utilisation(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| (self.stat.busy.as_secs_f64() / self.seconds).min(1.0))
    }
}

pub(super) struct DeviceSampler {
    reader: Reader,
    begun: Nanos,
    before: BlockStat,
    stop: Sender<()>,
    looking: JoinHandle<Vec<Series>>,
}

impl DeviceSampler {
    pub(super) fn start(root: &Root, storage: &Storage) -> Result<Self, PgError> {
        let reader = Reader { root: root.clone(), storage: storage.clone() };
        let before = reader.stat()?;
        let begun = realtime::now();
        let (stop, stopped) = mpsc::channel();
        let own = reader.clone();
        let looking = std::thread::spawn(move || {
            let wait = |left: Nanos| {
                let left = Duration::from_nanos(left.get());
                stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout)
            };
            own.look(begun, before, wait)
        });
        Ok(Self { reader, begun, before, stop, looking })
    }

    pub(super) fn end(self) -> Result<DeviceActivity, PgError> {
        let seconds = realtime::now().saturating_sub(self.begun).as_secs_f64();
        let after = self.reader.stat()?;
        drop(self.stop);
        let series = self.looking.join().unwrap_or_default();
        Ok(DeviceActivity { stat: after - self.before, seconds, series })
    }
}

#[derive(Clone)]
struct Reader {
    root: Root,
    storage: Storage,
}

impl Reader {
    fn stat(&self) -> Result<BlockStat, PgError> {
        Ok(self.storage.stat(&self.root)?.unwrap_or_default())
    }

    /// Samples the counters until `wait` returns false.
    fn look(&self, begun: Nanos, first: BlockStat, wait: impl Fn(Nanos) -> bool) -> Vec<Series> {
        let mut course = SampledSeries::new(vec![
            Series::level("device busy", "%"),
            Series::level("requests under way", "requests"),
            Series::rate("data from the device", "MiB/s"),
            Series::level("size of requests", "KiB"),
        ]);
        let (mut at, mut before) = (Nanos::ZERO, first);
        loop {
            let goes_on = wait(course.every);
            let now = realtime::now().saturating_sub(begun);
            let span = now.saturating_sub(at).as_secs_f64();
            // The last interval may be too short.
            if !goes_on && span < course.every.as_secs_f64() / 2.0 {
                return course.series();
            }
            let Ok(stat) = self.stat() else { return course.series() };
            course.push(now, &rates(&(stat - before), span));
            (at, before) = (now, stat);
            if !goes_on {
                return course.series();
            }
        }
    }
}

/// Returns busy time in percent, mean queue, MiB/s, and mean KiB per read, over this time.
fn rates(delta: &BlockStat, seconds: f64) -> [f64; 4] {
    let over = |value: f64| value / seconds.max(1e-9);
    let reads = delta.reads as f64;
    [
        (over(delta.busy.as_secs_f64()) * 100.0).min(100.0),
        over(delta.queue_time.as_secs_f64()),
        over(delta.read_bytes.as_mib()),
        // Without reads this is NaN, which is skipped.
        delta.read_bytes.get() as f64 / 1024.0 / reads,
    ]
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    #[test]
    fn a_long_course_stays_short_and_keeps_its_mean() {
        let mut course = SampledSeries::new(vec![Series::level("busy", "%")]);
        for n in 1..=10_000u64 {
            let at = Nanos::from_millis(100 * n);
            if course.is_due(at) {
                course.push(at, &[n as f64]);
            }
        }
        let series = course.series().remove(0);
        assert!(
            series.at.len() < MAX_SAMPLES && series.at.len() >= MAX_SAMPLES / 2 - 1,
            "{}",
            series.at.len()
        );
        assert!(series.at.is_sorted() && series.at.last() > Some(&Nanos::from_secs(980)));
        let mean = series.values.iter().sum::<f64>() / series.values.len() as f64;
        assert!((mean / 5000.0 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn rates_are_those_of_the_stretch() {
        let delta = BlockStat {
            reads: 4,
            read_bytes: Bytes::from_mib(1),
            busy: Nanos::from_millis(250),
            queue_time: Nanos::from_secs(1),
            ..BlockStat::default()
        };
        assert_eq!(rates(&delta, 0.5), [50.0, 2.0, 2.0, 256.0]);
        assert!(rates(&BlockStat::default(), 0.5)[3].is_nan());
    }
}
