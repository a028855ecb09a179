//! Observes the read-ahead windows of a trial and the sizes of the resulting requests by BPF, if
//! permitted.
//!
//! Two probes run once for each window and request, not for each read. Only one trial of each cell
//! is observed, so that the overhead cannot affect a verdict.

use std::collections::HashSet;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use bench::{Sample, Series};
use host::{Storage, page_size};
use observe::{EventKind, KernelTypes, Probes};
use units::{Bytes, Nanos};

use crate::settings::CellSettings;
use crate::trial::TrialRequest;

/// Interval between drains of the kernel's ring buffer, which holds about 40,000 windows.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Number of intervals in a trial for which the mean window is recorded.
const MEANS_PER_TRIAL: u64 = 50;

/// The observed cells, and whether the kernel permits observation.
#[derive(Debug, Default)]
pub(super) struct WindowProbe {
    cells: HashSet<(CellSettings, String)>,
    /// Read only once, because reading is slow.
    types: Option<KernelTypes>,
    refused: bool,
}

impl WindowProbe {
    /// Starts to observe if this is the first trial of its cell.
    pub(super) fn at(&mut self, request: &TrialRequest<'_>) -> Option<WindowRecorder> {
        // External programs run in other processes, which are not observed.
        if self.refused || request.workload.outside.is_some() {
            return None;
        }
        let cell = (request.settings.clone(), request.workload.name.clone());
        if !self.cells.insert(cell) {
            return None;
        }
        let recorder = self.begin();
        self.refused = recorder.is_none();
        recorder
    }

    /// Starts to observe; `None` if the kernel does not permit it.
    fn begin(&mut self) -> Option<WindowRecorder> {
        if self.types.is_none() {
            self.types = Some(KernelTypes::read().ok()?);
        }
        Probes::of_windows(self.types.as_ref()?).ok().map(WindowRecorder::begin)
    }
}

/// Records each window of this process.
pub(super) struct WindowRecorder {
    stop: Sender<()>,
    looking: JoinHandle<(Vec<(Nanos, Bytes)>, Probes)>,
}

impl WindowRecorder {
    fn begin(mut probes: Probes) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let own = std::process::id();
        let looking = std::thread::spawn(move || {
            let mut windows = Vec::new();
            loop {
                let goes_on =
                    stopped.recv_timeout(DRAIN_INTERVAL) == Err(RecvTimeoutError::Timeout);
                probes.drain(|event| {
                    if let EventKind::Window { window, .. } = event.access.kind
                        && event.pid == own
                    {
                        windows.push((event.access.at, window.size.to_bytes(page_size())));
                    }
                });
                if !goes_on {
                    return (windows, probes);
                }
            }
        });
        Self { stop, looking }
    }

    /// Adds the observed windows and request sizes to the sample of a trial on this storage.
    pub(super) fn end(self, storage: &Storage, sample: &mut Sample) {
        drop(self.stop);
        // The thread does not panic; if it did, there would be no data.
        let Ok((windows, probes)) = self.looking.join() else { return };
        sample.series.extend(series(&windows, sample.elapsed));
        let sizes = [&storage.devices, &storage.leaves].map(|on| probes.request_sizes(on));
        sample.request_sizes = sizes.into_iter().find(|one| !one.is_empty()).unwrap_or_default();
    }
}

/// Returns the mean window in each interval of a trial of this length, the first at its start;
/// `None` without windows.
fn series(windows: &[(Nanos, Bytes)], elapsed: Nanos) -> Option<Series> {
    // The first reader's first read occurs within microseconds of the start and requests the first
    // window.
    let begun = windows.first()?.0;
    let stretch = (elapsed.get() / MEANS_PER_TRIAL).max(1);
    let mut series = Series::level("window read ahead", "KiB");
    let place = |at: &Nanos| at.saturating_sub(begun).get() / stretch;
    for group in windows.chunk_by(|a, b| place(&a.0) == place(&b.0)) {
        let at = Nanos::new((place(&group[0].0) + 1) * stretch);
        let sum: u64 = group.iter().map(|(_, size)| size.get()).sum();
        series.push(at, sum as f64 / group.len() as f64 / 1024.0);
    }
    Some(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_a_mean_in_each_stretch() {
        let at = |millis: u64, kib: u64| (Nanos::from_millis(7000 + millis), Bytes::from_kib(kib));
        let windows = [at(0, 16), at(10, 32), at(40, 128), at(999, 64)];
        let series = series(&windows, Nanos::from_secs(1)).unwrap();
        let millis = |ends: &[u64]| ends.iter().map(|end| Nanos::from_millis(*end)).collect();
        let expected: Vec<Nanos> = millis(&[20, 60, 1000]);
        assert_eq!((series.at, series.values), (expected, vec![24.0, 128.0, 64.0]));
        assert!(super::series(&[], Nanos::from_secs(1)).is_none());
    }
}
