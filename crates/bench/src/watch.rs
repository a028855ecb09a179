//! Observes the machine during a trial: the device, and activity of other processes.

use std::time::Duration;

use host::{BlockStat, DevNo, Pressure, Root, Storage, VmStat, block_stat, device_gone};
use sys::realtime;
use units::{Bytes, Nanos};

use crate::{BenchError, Cancel, DeviceDelta, DeviceMoment, Disturbance};

/// Foreign traffic up to this share of the trial's own traffic is not a disturbance…
const FOREIGN_SHARE: f64 = 0.02;
/// …nor is this rate, in bytes per second of wall time: journal commits and log writes, which do
/// not slow a disk.
const FOREIGN_RATE: f64 = 256.0 * 1024.0;
/// Memory is short if tasks stalled for more than this share of the time.
const STALLED_SHARE: f64 = 0.05;
/// Interval of the checks whether the device is idle.
const DRAIN_POLL: Duration = Duration::from_millis(2);

/// The machine's counters when the readers started.
#[derive(Debug)]
pub(crate) struct DeviceWatch {
    at: Nanos,
    stat: Option<BlockStat>,
    memory: VmStat,
    pressure: Option<Pressure>,
}

/// The differences of the counters over the trial.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) device: Option<DeviceDelta>,
    memory: VmStat,
    stalled: Option<Nanos>,
    elapsed: Nanos,
}

impl DeviceWatch {
    pub(crate) fn start(root: &Root, storage: &Storage) -> Result<Self, BenchError> {
        let pressure = Pressure::memory(root)?;
        let memory = VmStat::read(root)?;
        // Read last, close to the readers' start.
        let stat = stat_of(root, storage)?;
        Ok(Self { at: realtime::now(), stat, memory, pressure })
    }

    /// Returns the device's counters since the start; `None` without a device. If the device has
    /// disappeared, the end of the trial reports it.
    pub(crate) fn moment(&self, root: &Root, storage: &Storage) -> Option<DeviceMoment> {
        let delta = stat_of(root, storage).ok()?? - self.stat?;
        Some(DeviceMoment {
            at: realtime::now().saturating_sub(self.at),
            requests: delta.reads,
            bytes: delta.read_bytes,
            queue_time: delta.queue_time,
            in_flight: delta.in_flight,
        })
    }

    /// Reads the counters again; `own_bytes` is the kernel's accounting of the readers.
    pub(crate) fn finish(
        self,
        root: &Root,
        storage: &Storage,
        own_bytes: Option<Bytes>,
    ) -> Result<Observed, BenchError> {
        let stat = stat_of(root, storage)?;
        let elapsed = realtime::now().saturating_sub(self.at);
        let device = self.stat.zip(stat).map(|(before, after)| {
            let delta = after - before;
            DeviceDelta {
                requests: delta.reads,
                merges: delta.read_merges,
                bytes: delta.read_bytes,
                read_time: delta.read_time,
                queue_time: delta.queue_time,
                busy: delta.busy,
                elapsed,
                writes: delta.writes,
                write_bytes: delta.write_bytes,
                own_bytes,
            }
        });
        let pressure = Pressure::memory(root)?;
        let stalled = self
            .pressure
            .zip(pressure)
            .map(|(before, after)| after.some.total.saturating_sub(before.some.total));
        Ok(Observed { device, memory: VmStat::read(root)? - self.memory, stalled, elapsed })
    }
}

impl Observed {
    /// Returns the disturbances. The readers received `useful`; with `all_from_device`, every byte
    /// of it must have come from the device.
    pub(crate) fn disturbances(&self, useful: Bytes, all_from_device: bool) -> Vec<Disturbance> {
        let mut found = Vec::new();
        if self.memory.drop_pagecache > 0 {
            found.push(Disturbance::CacheDropped { times: self.memory.drop_pagecache });
        }
        if let Some(device) = &self.device {
            if all_from_device && device.bytes < useful {
                found.push(Disturbance::WarmData { device: device.bytes, useful });
            }
            found.extend(foreign_traffic(device));
        }
        found.extend(self.memory_pressure(useful));
        found
    }

    fn memory_pressure(&self, useful: Bytes) -> Option<Disturbance> {
        let (elapsed, scanned) = (self.elapsed, self.memory.pgscan_direct);
        // Without PSI: the pages that tasks had to scan to reclaim memory themselves.
        let pages = sys::page_size();
        let short = match self.stalled {
            Some(stalled) => stalled.as_secs_f64() > STALLED_SHARE * elapsed.as_secs_f64(),
            None => scanned > useful.to_pages_floor(pages).get().max(1024),
        };
        let stalled = self.stalled.unwrap_or_default();
        short.then_some(Disturbance::MemoryPressure { stalled, elapsed, scanned_pages: scanned })
    }
}

/// Returns foreign traffic above the thresholds. Without the kernel's accounting of the readers,
/// only foreign writes can be detected.
fn foreign_traffic(device: &DeviceDelta) -> Option<Disturbance> {
    let own = device.own_bytes.unwrap_or(device.bytes);
    let read = device.bytes.saturating_sub(own);
    let written = device.write_bytes;
    let foreign = (read + written).get() as f64;
    let seconds = device.elapsed.as_secs_f64().max(1.0);
    let allowed = FOREIGN_SHARE * own.get() as f64 + FOREIGN_RATE * seconds;
    (foreign > allowed).then_some(Disturbance::ForeignTraffic { read, written, own })
}

/// Waits until no request is in flight on the devices, so that all read-ahead is counted. Returns a
/// disturbance after `limit`.
pub(crate) fn drain(
    root: &Root,
    storage: &Storage,
    limit: Nanos,
    cancel: &Cancel,
) -> Result<Option<Disturbance>, BenchError> {
    let start = realtime::now();
    loop {
        let requests = stat_of(root, storage)?.map_or(0, |stat| stat.in_flight);
        if requests == 0 {
            return Ok(None);
        }
        let waited = realtime::now().saturating_sub(start);
        if waited >= limit {
            return Ok(Some(Disturbance::NotDrained { requests, waited }));
        }
        if cancel.is_cancelled() {
            return Err(BenchError::Cancelled);
        }
        std::thread::sleep(DRAIN_POLL);
    }
}

/// Returns the sum of the counters of all devices; an error names the device that is missing.
fn stat_of(root: &Root, storage: &Storage) -> Result<Option<BlockStat>, BenchError> {
    let one = |device: &DevNo| {
        block_stat(root, *device).map_err(|error| match device_gone(root, *device) {
            true => BenchError::DeviceGone { device: *device },
            false => error.into(),
        })
    };
    let stats: Vec<BlockStat> = storage.devices.iter().map(one).collect::<Result<_, _>>()?;
    Ok((!stats.is_empty()).then(|| stats.into_iter().sum()))
}

/// Returns the first device of the storage that no longer exists.
pub(crate) fn gone_device(root: &Root, storage: &Storage) -> Option<DevNo> {
    storage.devices.iter().copied().find(|device| device_gone(root, *device))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Observed {
        let device = DeviceDelta {
            requests: 1000,
            bytes: Bytes::from_mib(100),
            own_bytes: Some(Bytes::from_mib(100)),
            elapsed: Nanos::from_secs(2),
            ..DeviceDelta::default()
        };
        Observed {
            device: Some(device),
            memory: VmStat::default(),
            stalled: Some(Nanos::ZERO),
            elapsed: Nanos::from_secs(2),
        }
    }

    fn found(observed: &Observed) -> Vec<Disturbance> {
        observed.disturbances(Bytes::from_mib(100), true)
    }

    fn with_device(change: impl FnOnce(&mut DeviceDelta)) -> Observed {
        let mut observed = quiet();
        change(observed.device.as_mut().unwrap());
        observed
    }

    #[test]
    fn a_quiet_machine_disturbs_nothing() {
        assert_eq!(found(&quiet()), []);
        // A journal commit, and metadata for the trial's own readers.
        let small = with_device(|device| {
            device.write_bytes = Bytes::from_kib(300);
            device.bytes = Bytes::from_mib(101);
        });
        assert_eq!(found(&small), []);
    }

    #[test]
    fn traffic_of_others_is_told_in_numbers() {
        let reading = with_device(|device| device.bytes = Bytes::from_mib(120));
        let [Disturbance::ForeignTraffic { read, written, own }] = found(&reading)[..] else {
            panic!("{:?}", found(&reading));
        };
        assert_eq!((read, written, own), (Bytes::from_mib(20), Bytes::ZERO, Bytes::from_mib(100)));
        let writing = with_device(|device| device.write_bytes = Bytes::from_mib(20));
        assert!(matches!(found(&writing)[..], [Disturbance::ForeignTraffic { .. }]));
        let unaccounted = with_device(|device| {
            device.own_bytes = None;
            device.bytes = Bytes::from_mib(300);
        });
        assert_eq!(found(&unaccounted), []);
    }

    #[test]
    fn data_from_a_cache_is_not_cold() {
        let warm = with_device(|device| device.bytes = Bytes::from_mib(60));
        let expected =
            Disturbance::WarmData { device: Bytes::from_mib(60), useful: Bytes::from_mib(100) };
        assert_eq!(found(&warm), [expected]);
        assert_eq!(warm.disturbances(Bytes::from_mib(100), false), []);
        // Storage without counters proves nothing either way.
        let network = Observed { device: None, ..quiet() };
        assert_eq!(found(&network), []);
    }

    #[test]
    fn short_memory_and_dropped_caches_are_seen() {
        let stalled = Observed { stalled: Some(Nanos::from_millis(400)), ..quiet() };
        assert!(matches!(found(&stalled)[..], [Disturbance::MemoryPressure { .. }]));
        let memory = VmStat { pgscan_direct: 1 << 20, ..VmStat::default() };
        let scanning = Observed { stalled: None, memory, ..quiet() };
        assert!(matches!(found(&scanning)[..], [Disturbance::MemoryPressure { .. }]));
        let memory = VmStat { drop_pagecache: 1, ..VmStat::default() };
        let dropped = Observed { memory, ..quiet() };
        assert_eq!(found(&dropped), [Disturbance::CacheDropped { times: 1 }]);
    }
}
