//! The windows that the kernel reads ahead during a trial, and how large the requests are that it
//! makes of them, seen by BPF where that is permitted.
//!
//! Two probes, which run once for each window and request and not for each read; and of each cell
//! one trial alone is looked at, so that what it costs cannot make a verdict.

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

/// How often the kernel's ring is emptied: it holds some forty thousand windows.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Stretches of a trial that have a mean each.
const MEANS_PER_TRIAL: u64 = 50;

/// Which cells have been looked at, and whether the kernel lets itself be looked into.
#[derive(Debug, Default)]
pub(super) struct WindowProbe {
    cells: HashSet<(CellSettings, String)>,
    /// Read once: it takes a while.
    types: Option<KernelTypes>,
    refused: bool,
}

impl WindowProbe {
    /// Begins to look if this is the first trial of its cell.
    pub(super) fn at(&mut self, request: &TrialRequest<'_>) -> Option<WindowRecorder> {
        // Programs of others are other processes.
        if self.refused || request.workload.outside.is_some() {
            return None;
        }
        let cell = (request.settings.clone(), request.workload.name.clone());
        if !self.cells.insert(cell) {
            return None;
        }
        let onlooker = self.begin();
        self.refused = onlooker.is_none();
        onlooker
    }

    /// `None` where the kernel may not be looked into.
    fn begin(&mut self) -> Option<WindowRecorder> {
        if self.types.is_none() {
            self.types = Some(KernelTypes::read().ok()?);
        }
        Probes::of_windows(self.types.as_ref()?).ok().map(WindowRecorder::begin)
    }
}

/// Somebody who notes each window of this process.
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

    /// Adds to the sample, of a trial on this storage, what was seen.
    pub(super) fn end(self, storage: &Storage, sample: &mut Sample) {
        drop(self.stop);
        // It does not panic; if it did, nothing was seen.
        let Ok((windows, probes)) = self.looking.join() else { return };
        sample.series.extend(series(&windows, sample.elapsed));
        let sizes = [&storage.devices, &storage.leaves].map(|on| probes.request_sizes(on));
        sample.request_sizes = sizes.into_iter().find(|one| !one.is_empty()).unwrap_or_default();
    }
}

/// The mean window in each stretch of a trial that took so long, the first at its start; `None` if
/// there was none.
fn series(windows: &[(Nanos, Bytes)], elapsed: Nanos) -> Option<Series> {
    // The first reader's first read is within microseconds of the start, and asks for the first.
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
