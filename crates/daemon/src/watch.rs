//! The loop of `watch`: each interval it collects records from a source, or reads them from a
//! recording, and passes a view of them to a display.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::{Record, SourceError, Tracker, WatchSource, WatchView, write_record};

/// How long the loop waits before it checks again whether to stop.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// The longest pause between two views of a recording, in seconds.
const MAX_REPLAY_WAIT_S: f64 = 60.0;

#[derive(Debug, Error)]
pub enum WatchError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("cannot write the recording")]
    Recording(#[source] io::Error),
}

/// Shows views, and decides when to stop.
pub trait WatchDisplay {
    type Error: From<WatchError>;

    /// Shows the view of an interval, which was cut short if `is_stopping` is true.
    ///
    /// # Errors
    ///
    /// Errors of the display.
    fn show(&mut self, view: WatchView, is_stopping: bool) -> Result<(), Self::Error>;

    /// Returns whether the loop must stop.
    fn is_stopped(&self) -> bool;

    /// Waits for `time`. Returns true early if the user asks to stop.
    ///
    /// # Errors
    ///
    /// Errors of the display.
    fn wait(&mut self, time: Duration) -> Result<bool, Self::Error>;
}

/// The loop of `watch` on a source, with its recording.
pub struct WatchLoop<S> {
    source: S,
    tracker: Tracker,
    recording: Option<BufWriter<Box<dyn Write>>>,
}

impl<S: WatchSource> WatchLoop<S> {
    /// Takes the snapshot at which the first interval starts. Every record is also written to
    /// `recording`.
    ///
    /// # Errors
    ///
    /// If the source or the recording fails.
    pub fn new(source: S, recording: Option<Box<dyn Write>>) -> Result<Self, WatchError> {
        let recording = recording.map(BufWriter::new);
        let mut watch = Self { source, tracker: Tracker::new(), recording };
        let first = watch.source.beginning();
        if let Some(recording) = &mut watch.recording {
            write_record(recording, &first).map_err(WatchError::Recording)?;
        }
        watch.tracker.take(first);
        watch.collect()?;
        Ok(watch)
    }

    /// Shows a view after each interval, `count` times or until the display is stopped.
    ///
    /// # Errors
    ///
    /// If the source, the recording or the display fails.
    pub fn run<D: WatchDisplay>(
        mut self,
        interval: Duration,
        count: Option<u64>,
        display: &mut D,
    ) -> Result<(), D::Error> {
        for _ in 0..count.unwrap_or(u64::MAX) {
            let is_stopping = wait(interval, display)?;
            if let Some(view) = self.collect()? {
                display.show(view, is_stopping)?;
            }
            if is_stopping {
                break;
            }
        }
        Ok(())
    }

    /// Returns the view of the time since the last call.
    fn collect(&mut self) -> Result<Option<WatchView>, WatchError> {
        let Self { source, tracker, recording } = self;
        let (mut view, mut written) = (None, Ok(()));
        source.collect(&mut |record| {
            if let (Some(recording), Ok(())) = (recording.as_mut(), &written) {
                written = write_record(recording, &record);
            }
            view = tracker.take(record).or(view.take());
        })?;
        let flush = |()| recording.as_mut().map_or(Ok(()), Write::flush);
        written.and_then(flush).map_err(WatchError::Recording)?;
        Ok(view)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// Maximum number of views; `None` for all.
    pub count: Option<u64>,
    /// Whether to show views at the pace at which they were recorded.
    pub is_paced: bool,
    /// Whether to show only the last view.
    pub is_last_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayEnd {
    /// All records, or the requested number of views, were shown.
    Complete,
    Stopped,
    /// The recording has no complete interval.
    NoInterval,
}

/// Shows the views of a recording.
///
/// # Errors
///
/// Errors of the records and of the display.
pub fn replay<D: WatchDisplay>(
    records: impl Iterator<Item = Result<Record, D::Error>>,
    options: ReplayOptions,
    display: &mut D,
) -> Result<ReplayEnd, D::Error> {
    let mut tracker = Tracker::new();
    let (mut last, mut shown) = (None, 0);
    for record in records {
        let Some(view) = tracker.take(record?).filter(|view| view.interval_s > 0.0) else {
            continue;
        };
        if options.is_last_only {
            last = Some(view);
            continue;
        }
        let pace = Duration::from_secs_f64(view.interval_s.min(MAX_REPLAY_WAIT_S));
        if options.is_paced && wait(pace, display)? {
            return Ok(ReplayEnd::Stopped);
        }
        display.show(view, false)?;
        shown += 1;
        if options.count == Some(shown) {
            break;
        }
    }
    if let Some(view) = last {
        display.show(view, false)?;
        shown += 1;
    }
    Ok(if shown > 0 { ReplayEnd::Complete } else { ReplayEnd::NoInterval })
}

/// Waits for `time`; returns true early if the display is stopped.
fn wait<D: WatchDisplay>(time: Duration, display: &mut D) -> Result<bool, D::Error> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if display.is_stopped() {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
        if display.wait(left.min(MAX_WAIT))? {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use units::Nanos;

    use super::*;
    use crate::{Begin, Snapshot, read_records};

    const INTERVAL: Duration = Duration::from_millis(2);

    fn snapshot(at_s: u64) -> Record {
        Record::Snapshot(Snapshot { at: Nanos::from_secs(at_s), ..Snapshot::default() })
    }

    /// A source whose clock advances by a second with each snapshot.
    struct FakeSource(u64);

    impl WatchSource for FakeSource {
        fn beginning(&self) -> Record {
            Record::Begin(Begin { version: 1, page_bytes: 4096, signals: Vec::new() })
        }

        fn collect(&mut self, take: &mut dyn FnMut(Record)) -> Result<(), SourceError> {
            self.0 += 1;
            take(snapshot(self.0));
            Ok(())
        }
    }

    /// A display that keeps the time and the flag of each view, and stops after some waits.
    #[derive(Default)]
    struct FakeDisplay {
        shown: Vec<(f64, bool)>,
        waits: Vec<Duration>,
        max_waits: Option<usize>,
        is_stopped: bool,
    }

    impl WatchDisplay for FakeDisplay {
        type Error = WatchError;

        fn show(&mut self, view: WatchView, is_stopping: bool) -> Result<(), WatchError> {
            assert!((view.interval_s - 1.0).abs() < 1e-9);
            self.shown.push((view.at_s, is_stopping));
            Ok(())
        }

        fn is_stopped(&self) -> bool {
            self.is_stopped
        }

        fn wait(&mut self, time: Duration) -> Result<bool, WatchError> {
            self.waits.push(time);
            if self.max_waits == Some(self.waits.len()) {
                return Ok(true);
            }
            std::thread::sleep(time.min(INTERVAL));
            Ok(false)
        }
    }

    /// A file that stays readable after the loop has taken it.
    #[derive(Clone, Default)]
    struct SharedFile(Rc<RefCell<Vec<u8>>>);

    impl Write for SharedFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct FullFile;

    impl Write for FullFile {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn recorded(count: u64) -> Vec<Record> {
        let file = SharedFile::default();
        let watch = WatchLoop::new(FakeSource(0), Some(Box::new(file.clone()))).unwrap();
        watch.run(INTERVAL, Some(count), &mut FakeDisplay::default()).unwrap();
        let bytes = file.0.borrow().clone();
        read_records(bytes.as_slice()).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn each_interval_is_shown_as_often_as_asked_for() {
        let mut display = FakeDisplay::default();
        let begun = Instant::now();
        let watch = WatchLoop::new(FakeSource(0), None).unwrap();
        watch.run(INTERVAL, Some(3), &mut display).unwrap();
        assert!(begun.elapsed() >= INTERVAL * 3);
        assert_eq!(display.shown, [(2.0, false), (3.0, false), (4.0, false)]);
    }

    #[test]
    fn a_stop_cuts_the_interval_short_and_shows_what_there_is() {
        let hour = Duration::from_secs(3600);
        let mut asked = FakeDisplay { max_waits: Some(3), ..FakeDisplay::default() };
        let watch = WatchLoop::new(FakeSource(0), None).unwrap();
        watch.run(hour, None, &mut asked).unwrap();
        assert_eq!(asked.shown, [(2.0, true)]);
        assert_eq!(asked.waits, [MAX_WAIT; 3]);
        let mut stopped = FakeDisplay { is_stopped: true, ..FakeDisplay::default() };
        let watch = WatchLoop::new(FakeSource(0), None).unwrap();
        watch.run(hour, None, &mut stopped).unwrap();
        assert_eq!((stopped.shown, stopped.waits.len()), (vec![(2.0, true)], 0));
    }

    #[test]
    fn a_recording_has_every_record_and_can_be_replayed() {
        let records = recorded(2);
        let first = FakeSource(0).beginning();
        assert_eq!(records, [first, snapshot(1), snapshot(2), snapshot(3)]);
        let replayed = |records: &[Record], options| {
            let mut display = FakeDisplay::default();
            let records = records.iter().cloned().map(Ok);
            let end = replay(records, options, &mut display).unwrap();
            (end, display.shown)
        };
        let options = ReplayOptions::default();
        let all = vec![(2.0, false), (3.0, false)];
        assert_eq!(replayed(&records, options), (ReplayEnd::Complete, all));
        let one = ReplayOptions { count: Some(1), ..options };
        assert_eq!(replayed(&records, one), (ReplayEnd::Complete, vec![(2.0, false)]));
        let last = ReplayOptions { is_last_only: true, ..options };
        assert_eq!(replayed(&records, last), (ReplayEnd::Complete, vec![(3.0, false)]));
        assert_eq!(replayed(&records[..2], options), (ReplayEnd::NoInterval, Vec::new()));
        assert_eq!(replayed(&[], last), (ReplayEnd::NoInterval, Vec::new()));
    }

    #[test]
    fn a_paced_replay_can_be_stopped() {
        let options = ReplayOptions { is_paced: true, ..ReplayOptions::default() };
        let mut display = FakeDisplay { max_waits: Some(2), ..FakeDisplay::default() };
        let end = replay(recorded(2).into_iter().map(Ok), options, &mut display).unwrap();
        assert_eq!((end, display.shown), (ReplayEnd::Stopped, Vec::new()));
    }

    #[test]
    fn a_recording_that_cannot_be_written_ends_the_watch() {
        let failed = WatchLoop::new(FakeSource(0), Some(Box::new(FullFile)));
        assert!(matches!(failed.err(), Some(WatchError::Recording(_))));
    }
}
