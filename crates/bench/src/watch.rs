//! Observes the machine during a trial: the device, and foreign activity.

use std::time::Duration;

use host::{BlockStat, DevNo, Pressure, Root, Storage, VmStat, block_stat, device_gone};
use sys::realtime;
use units::{Bytes, Nanos};

use crate::{BenchError, Cancel, DeviceDelta, DeviceMoment, Disturbance};

/// Foreign traffic up to this share of our own is not a disturbance…
const FOREIGN_SHARE: f64 = 0.02;
/// …nor below this rate, in bytes per second of wall time: journal commits and log writes, which no
/// disk notices.
const FOREIGN_RATE: f64 = 256.0 * 1024.0;
/// Memory is short if tasks were stalled for more than this share of the time.
const STALLED_SHARE: f64 = 0.05;
/// How often to check whether the device is idle.
const DRAIN_POLL: Duration = Duration::from_millis(2);

/// The machine's counters at the start of the readers.
#[derive(Debug)]
pub(crate) struct DeviceWatch {
    at: Nanos,
    stat: Option<BlockStat>,
    memory: VmStat,
    pressure: Option<Pressure>,
}

/// The differences of the counters at the end.
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
        // Last, close to the readers' start.
        let stat = stat_of(root, storage)?;
        Ok(Self { at: realtime::now(), stat, memory, pressure })
    }

    /// The device's counters since the start; `None` without a device. A missing device is reported
    /// when the trial ends.
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

    /// Reads the counters again; `own_bytes` is the accounting of the readers.
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
    /// The disturbances. `data` is what the readers received, if every byte must have come from the
    /// device.
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
        // Without PSI: tasks that had to reclaim memory themselves, page by page.
        let pages = sys::page_size();
        let short = match self.stalled {
            Some(stalled) => stalled.as_secs_f64() > STALLED_SHARE * elapsed.as_secs_f64(),
            None => scanned > useful.to_pages_floor(pages).get().max(1024),
        };
        let stalled = self.stalled.unwrap_or_default();
        short.then_some(Disturbance::MemoryPressure { stalled, elapsed, scanned_pages: scanned })
    }
}

/// Notable foreign traffic. Without the kernel's accounting of our own reads, only writes are
/// known.
fn foreign_traffic(device: &DeviceDelta) -> Option<Disturbance> {
    let own = device.own_bytes.unwrap_or(device.bytes);
    let read = device.bytes.saturating_sub(own);
    let written = device.write_bytes;
    let foreign = (read + written).get() as f64;
    let seconds = device.elapsed.as_secs_f64().max(1.0);
    let allowed = FOREIGN_SHARE * own.get() as f64 + FOREIGN_RATE * seconds;
    (foreign > allowed).then_some(Disturbance::ForeignTraffic { read, written, own })
}

/// Waits until nothing is in flight on the devices, so that all read-ahead is counted. Gives up
/// after `limit`.
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

/// The counters of all devices of the storage, or an error that names the missing one.
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

/// The first device of the storage that no longer exists.
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
        // A journal's commit, and the metadata that our own readers asked for.
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
        // Storage that cannot be counted proves nothing either way.
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
