//! Turns records into views of devices and of the streams on them.

use std::collections::BTreeMap;

use host::{BdiId, BlockStat, DevNo};
use observe::{EventKind, OpenFile, OpenFileId, ProbeEvent};
use serde::Serialize;
use units::{Bytes, Nanos};

use crate::{AccessPattern, Record, Snapshot};
use control::{Classifier, Outstanding};

/// Maximum number of followed open files. A new one then replaces the one idle for longest.
const MAX_OPEN_FILES: usize = 65_536;
/// Random reads are dense if readers have requested more than this share of the file. Chosen by
/// hand.
const DENSE_SHARE: f64 = 0.25;

/// Counters of a stream, which only grow. Sizes are in pages, `stalled` is in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StreamCounts {
    misses: u64,
    marks: u64,
    submitted: u64,
    asked: u64,
    forced: u64,
    thrashed: u64,
    stalls: u64,
    stalled: u64,
    used: u64,
    wasted: u64,
}

/// The state of one open file.
#[derive(Clone, Debug, Default)]
struct TrackedStream {
    file: Option<OpenFile>,
    path: Option<String>,
    device: Option<DevNo>,
    inode: u64,
    pid: u32,
    comm: String,
    cgroup: u64,
    window: u64,
    now: StreamCounts,
    before: StreamCounts,
    ahead: Outstanding,
    classifier: Classifier,
    mapped: bool,
    /// The page and size of a miss or mark whose window has not been reported yet.
    asked: Option<(u64, u64)>,
    seen: Nanos,
}

/// Rates of a block device over the last interval, as iostat and gstat show them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRates {
    pub device: DevNo,
    pub name: String,
    pub queue: f64,
    pub reads_s: f64,
    /// MiB read per second.
    pub read_mib_s: f64,
    /// The mean time of a read; `None` if there was none.
    pub read_ms: Option<f64>,
    /// The mean size of a read request to the device.
    pub mean_read_kib: Option<f64>,
    pub writes_s: f64,
    /// MiB written per second.
    pub write_mib_s: f64,
    /// The share of time in which at least one request was in flight.
    pub busy: f64,
}

/// One open file in the last interval, and since it was first observed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamView {
    pub id: OpenFileId,
    /// The device of its file system.
    pub device: DevNo,
    /// The bdi that it got its window from; `None` if it is closed.
    pub bdi: Option<BdiId>,
    pub inode: u64,
    /// The path, if it is known.
    pub path: Option<String>,
    pub pid: u32,
    pub comm: String,
    pub cgroup: u64,
    pub pattern: AccessPattern,
    /// Whether it is read by page faults of a mapping.
    pub mapped: bool,
    /// The maximum window; `None` if the file is closed.
    pub limit_kib: Option<u64>,
    pub bdi_kib: Option<u64>,
    /// Whether it is under `FADV_RANDOM`.
    pub random_advice: bool,
    /// The last submitted window: below the limit during the ramp.
    pub window_kib: u64,
    /// Misses per second: each made a reader wait for the disk.
    pub misses_s: f64,
    /// Waits for the disk per second, including those at misses.
    pub stalls_s: f64,
    /// Time spent waiting per second.
    pub stalled_ms_s: f64,
    /// MiB submitted per second, as windows or as other pages.
    pub submitted_mib_s: f64,
    /// MiB submitted since it was first observed.
    pub submitted_mib: f64,
    /// Submitted MiB that were used.
    pub used_mib: f64,
    /// Submitted MiB that no reader reached within ten seconds or before the close: an estimate.
    pub wasted_mib: f64,
    /// MiB that are read ahead and not reached yet.
    pub ahead_mib: f64,
    /// Misses of pages that had been read ahead and were evicted before a reader reached them.
    pub thrashed: u64,
    /// MiB requested by `readahead(2)` or advice.
    pub advised_mib: f64,
}

/// The view of an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchView {
    /// The end of the interval, on the monotonic clock.
    pub at_s: f64,
    pub interval_s: f64,
    /// Block devices that have ever been used.
    pub devices: Vec<DeviceRates>,
    /// Open files that read from a disk, in descending order of waiting time.
    pub streams: Vec<StreamView>,
    /// Number of lost events. If it is not 0, the figures are too low.
    pub lost_events: u64,
}

/// Turns records into views. It reads no clock and no files: the same records give the same views.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    page_bytes: u64,
    streams: BTreeMap<OpenFileId, TrackedStream>,
    at: Nanos,
    devices: BTreeMap<DevNo, BlockStat>,
}

impl Tracker {
    pub fn new() -> Self {
        Self { page_bytes: 4096, ..Self::default() }
    }

    /// Processes a record. Returns a view after each snapshot.
    pub fn take(&mut self, record: Record) -> Option<WatchView> {
        match record {
            Record::Begin(begin) => {
                self.page_bytes = begin.page_bytes.max(1);
                None
            }
            Record::Event(event) => {
                self.event(&event);
                None
            }
            Record::Snapshot(snapshot) => Some(self.snapshot(snapshot)),
        }
    }

    /// Returns an open file as the census last listed it.
    pub fn open_file(&self, id: OpenFileId) -> Option<&OpenFile> {
        self.streams.get(&id)?.file.as_ref()
    }

    fn event(&mut self, event: &ProbeEvent) {
        let Some(id) = event.access.file else { return self.forced(event) };
        if self.streams.len() >= MAX_OPEN_FILES && !self.streams.contains_key(&id) {
            let oldest = self.streams.iter().min_by_key(|(_, stream)| stream.seen);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.streams.remove(&oldest);
            }
        }
        let stream = self.streams.entry(id).or_default();
        if (stream.inode, stream.device) != (event.inode, Some(event.device)) {
            // A new open file, or another one at the address of a closed one.
            *stream = TrackedStream {
                device: Some(event.device),
                inode: event.inode,
                ..TrackedStream::default()
            };
        }
        stream.pid = event.pid;
        stream.comm.clone_from(&event.comm);
        stream.cgroup = event.cgroup;
        stream.seen = event.access.at;
        stream.event(event);
    }

    /// Counts pages that were requested without a read: the event names only the file.
    fn forced(&mut self, event: &ProbeEvent) {
        let same = |stream: &&mut TrackedStream| {
            (stream.inode, stream.device) == (event.inode, Some(event.device))
        };
        if let Some(stream) = self.streams.values_mut().find(same) {
            stream.now.forced = stream.now.forced.saturating_add(event.access.request.get());
        }
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> WatchView {
        let elapsed = snapshot.at.saturating_sub(self.at);
        let first = self.at == Nanos::ZERO;
        self.at = snapshot.at;
        let mut open: BTreeMap<OpenFileId, OpenFile> =
            snapshot.files.into_iter().map(|file| (file.id, file)).collect();
        let mut paths = snapshot.paths;
        for (id, stream) in &mut self.streams {
            let file = open.remove(id).filter(|file| file.inode == stream.inode);
            stream.look(file, paths.remove(id), snapshot.at, self.page_bytes);
        }
        let seconds = if first { 0.0 } else { elapsed.as_secs_f64() };
        let mut streams: Vec<StreamView> = self
            .streams
            .iter_mut()
            .filter_map(|(id, stream)| stream.view(*id, seconds, self.page_bytes))
            .collect();
        streams.sort_by(|a, b| b.stalled_ms_s.total_cmp(&a.stalled_ms_s).then(a.id.cmp(&b.id)));
        self.streams.retain(|_, stream| {
            stream.file.is_some() || snapshot.at.saturating_sub(stream.seen) < Nanos::from_secs(30)
        });
        let devices = snapshot.devices.iter().filter_map(|(device, stat)| {
            let before = self.devices.get(device)?;
            let name = snapshot.names.get(device).cloned().unwrap_or_default();
            Some(rates(*device, name, *stat - *before, elapsed))
        });
        let devices = devices.collect();
        self.devices = snapshot.devices;
        WatchView {
            at_s: snapshot.at.as_secs_f64(),
            interval_s: seconds,
            devices,
            streams,
            lost_events: snapshot.lost,
        }
    }
}

fn rates(device: DevNo, name: String, delta: BlockStat, elapsed: Nanos) -> DeviceRates {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let mean = |total: f64| (delta.reads > 0).then(|| total / delta.reads as f64);
    DeviceRates {
        device,
        name,
        queue: delta.mean_queue(elapsed),
        reads_s: delta.reads as f64 / seconds,
        read_mib_s: delta.read_bytes.as_mib() / seconds,
        read_ms: mean(delta.read_time.as_millis_f64()),
        mean_read_kib: mean(delta.read_bytes.get() as f64 / 1024.0),
        writes_s: delta.writes as f64 / seconds,
        write_mib_s: delta.write_bytes.as_mib() / seconds,
        busy: (delta.busy.as_secs_f64() / seconds).min(1.0),
    }
}

impl TrackedStream {
    fn event(&mut self, event: &ProbeEvent) {
        let pages = event.access.request.get();
        match event.access.kind {
            EventKind::Miss { .. } => {
                self.now.misses += 1;
                self.now.asked = self.now.asked.saturating_add(pages);
                if self.ahead.awaits(event.access.index) {
                    self.now.thrashed += 1;
                }
                self.ahead.reader_at(event.access.index);
                self.classifier.reader_at(event.access.index, pages);
                self.asked = Some((event.access.index, pages));
                self.mapped = false;
            }
            EventKind::Mark { .. } => {
                self.now.marks += 1;
                self.ahead.reader_at(event.access.index);
                self.classifier.reader_at(event.access.index, pages);
                self.asked = Some((event.access.index, 0));
            }
            EventKind::Window { window, mapped } => {
                self.now.submitted = self.now.submitted.saturating_add(window.size.get());
                self.window = window.size.get();
                if mapped {
                    self.mapped = true;
                    self.now.misses += 1;
                    self.now.asked += 1;
                    self.classifier.reader_at(event.access.index, 1);
                }
                let (at, asked) = self.asked.take().unwrap_or((event.access.index, 1));
                self.ahead.submit(window.start, window.end(), at, asked, event.access.at);
                if !mapped {
                    // After a mark, the index of the event is where the window starts.
                    self.classifier.window_to(at, window.end());
                }
            }
            EventKind::Plain => {
                self.now.submitted = self.now.submitted.saturating_add(pages);
                self.ahead.used = self.ahead.used.saturating_add(pages);
                self.asked = None;
            }
            // `watch` does not sample accesses.
            EventKind::Access { .. } => {}
            EventKind::Stall { wait } => {
                self.now.stalls += 1;
                self.now.stalled = self.now.stalled.saturating_add(wait.get());
            }
        }
    }

    /// Updates the stream from the census; `file` is `None` if it is closed.
    fn look(&mut self, file: Option<OpenFile>, path: Option<String>, at: Nanos, page: u64) {
        if let Some(file) = file {
            // The end of the last read in whole pages, even if that read passed no probe.
            if let Some(previous) = file.previous.filter(|previous| !previous.is_zero()) {
                self.ahead.reader_at(previous.get().div_ceil(page));
            }
            if let Some(holder) = file.holders.iter().find(|holder| holder.pid == self.pid) {
                self.comm.clone_from(&holder.comm);
            }
            self.ahead.expire(at, Some(file.size.get().div_ceil(page)));
            self.path = path.or(self.path.take());
            self.file = Some(file);
        } else {
            let closed = self.file.take().is_some();
            self.ahead.expire(if closed { Nanos::MAX } else { at }, None);
        }
        (self.now.used, self.now.wasted) = (self.ahead.used, self.ahead.wasted);
    }

    fn view(&mut self, id: OpenFileId, seconds: f64, page: u64) -> Option<StreamView> {
        let mib = |pages: u64| Bytes::new(pages.saturating_mul(page)).as_mib();
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let (now, before) = (self.now, std::mem::replace(&mut self.before, self.now));
        if now == StreamCounts::default() {
            return None;
        }
        let size = self.file.as_ref().map_or(0, |file| file.size.get().div_ceil(page));
        let pattern = match self.classifier.pattern() {
            AccessPattern::Random if is_dense(now.asked, size) => AccessPattern::RandomDense,
            pattern => pattern,
        };
        if now == before {
            self.classifier.age();
        }
        let kib = |bytes: Bytes| bytes.to_kib_floor().get();
        Some(StreamView {
            id,
            device: self.device?,
            bdi: self.file.as_ref().and_then(|file| file.bdi.clone()),
            inode: self.inode,
            path: self.path.clone(),
            pid: self.pid,
            comm: self.comm.clone(),
            cgroup: self.cgroup,
            pattern,
            mapped: self.mapped,
            limit_kib: self.file.as_ref().map(|file| kib(file.window)),
            bdi_kib: self.file.as_ref().map(|file| kib(file.bdi_window)),
            random_advice: self.file.as_ref().is_some_and(|file| file.random),
            window_kib: self.window.saturating_mul(page) / 1024,
            misses_s: rate(now.misses - before.misses),
            stalls_s: rate(now.stalls - before.stalls),
            stalled_ms_s: rate(now.stalled - before.stalled) / 1e6,
            submitted_mib_s: if seconds > 0.0 {
                mib(now.submitted - before.submitted) / seconds
            } else {
                0.0
            },
            submitted_mib: mib(now.submitted),
            used_mib: mib(now.used),
            wasted_mib: mib(now.wasted),
            ahead_mib: mib(self.ahead.ahead()),
            thrashed: now.thrashed,
            advised_mib: mib(now.forced),
        })
    }
}

/// Returns whether random reads of `asked` pages cover so much of a file that readers are likely to
/// request all of it.
fn is_dense(asked: u64, file_pages: u64) -> bool {
    file_pages > 0 && asked as f64 > DENSE_SHARE * file_pages as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_of_much_of_a_file_are_dense() {
        assert!(is_dense(26, 100) && !is_dense(25, 100));
        assert!(!is_dense(26, 0), "the size is unknown");
    }
}
