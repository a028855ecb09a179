//! The probes of read-ahead: the signals that this kernel supports, and their events.
//!
//! Each signal is tried rung by rung at load time, regardless of the kernel's version: first a
//! tracepoint with types, then the entry of the function (fentry), then a kprobe. A signal without
//! a working rung is reported as missing. A read of cached pages passes none of the probes, unless
//! its file is sampled.

use std::collections::BTreeSet;

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuHashMap, RingBuf};
use aya::programs::{BtfTracePoint, FEntry, KProbe, ProgramError};
use host::DevNo;

use crate::event::event;
use crate::object::{EVENTS, KernelTypes, load, of_program};
use crate::open_files::device;
use crate::record::{EventRecord, Plain};
use crate::samples::{Sampler, TRACEPOINTS};
use crate::signal::{Rung, Signal};
use crate::{Misses, ObserveError, ProbeEvent};

/// A way to receive a signal.
pub(crate) struct ProbeAttempt {
    pub signal: &'static str,
    rung: Rung,
    /// The name of the function or tracepoint.
    place: &'static str,
    program: &'static str,
}

type Name = &'static str;

pub(crate) const fn tracepoint(signal: Name, place: Name, program: Name) -> ProbeAttempt {
    ProbeAttempt { signal, rung: Rung::TpBtf, place, program }
}

pub(crate) const fn fentry(signal: Name, place: Name, program: Name) -> ProbeAttempt {
    ProbeAttempt { signal, rung: Rung::Fentry, place, program }
}

pub(crate) const fn kprobe(signal: Name, place: Name, program: Name) -> ProbeAttempt {
    ProbeAttempt { signal, rung: Rung::Kprobe, place, program }
}

/// All signals with the ways to receive them, the best first.
const ATTEMPTS: &[ProbeAttempt] = &[
    tracepoint("miss", "page_cache_sync_ra", "miss_tp_btf"),
    fentry("miss", "page_cache_sync_ra", "miss_fentry"),
    kprobe("miss", "page_cache_sync_ra", "miss_kprobe"),
    tracepoint("mark", "page_cache_async_ra", "mark_tp_btf"),
    fentry("mark", "page_cache_async_ra", "mark_fentry"),
    kprobe("mark", "page_cache_async_ra", "mark_kprobe"),
    tracepoint("window", "page_cache_ra_order", "window_tp_btf"),
    fentry("window", "page_cache_ra_order", "window_fentry"),
    kprobe("window", "page_cache_ra_order", "window_kprobe"),
    // Linux before 5.18 has no `page_cache_ra_order`.
    fentry("window", "do_page_cache_ra", "submit_fentry"),
    kprobe("window", "do_page_cache_ra", "submit_kprobe"),
    tracepoint("plain", "page_cache_ra_unbounded", "plain_tp_btf"),
    fentry("plain", "page_cache_ra_unbounded", "plain_fentry"),
    kprobe("plain", "page_cache_ra_unbounded", "plain_kprobe"),
    tracepoint("stall", "sched_switch", "switch_tp_btf"),
    tracepoint("size", "block_rq_issue", "size_tp_btf"),
];

const SIGNALS: &[&str] = &["miss", "mark", "window", "plain", "stall"];

/// Signals for use during a measurement: one record per window, one count per request.
const MEASUREMENT_SIGNALS: &[&str] = &["window", "size"];

/// Groups the attempts by signal.
pub(crate) fn ladders(attempts: &[ProbeAttempt]) -> impl Iterator<Item = &[ProbeAttempt]> {
    attempts.chunk_by(|one, next| one.signal == next.signal)
}

/// The key of a count of requests: the device in the kernel's form, and the size class.
#[repr(C)]
#[derive(Clone, Copy)]
struct SizeKey {
    device: u32,
    bucket: u32,
}

// SAFETY: two integers without padding, as in bpf/records.h.
unsafe impl aya::Pod for SizeKey {}

/// The attached probes. Dropping them removes everything from the kernel.
pub struct Probes {
    signals: Vec<Signal>,
    ring: RingBuf<MapData>,
    lost: Array<MapData, u64>,
    sizes: PerCpuHashMap<MapData, SizeKey, u64>,
    sampler: Option<Sampler>,
    /// Dropped last, because it holds the programs and their links.
    ebpf: Ebpf,
}

impl std::fmt::Debug for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probes").field("signals", &self.signals).finish_non_exhaustive()
    }
}

impl Probes {
    /// Loads and attaches the probes that this kernel supports. Fails if it supports no probe of
    /// misses, because the others are useless without it.
    pub fn load() -> Result<Self, ObserveError> {
        Self::fitted(&KernelTypes::read()?)
    }

    /// As [`Probes::load`], with kernel types that were already read.
    pub fn fitted(types: &KernelTypes) -> Result<Self, ObserveError> {
        let mut probes = Self::climb_all(types, SIGNALS, "miss")?;
        let (sampler, signals) = Sampler::fitted(types);
        probes.sampler = sampler;
        probes.signals.extend(signals);
        Ok(probes)
    }

    /// As [`Probes::fitted`], with only the signals of submitted windows and request sizes, for use
    /// during a measurement. The cause of a window is not reported: all look like those of mapped
    /// files.
    pub fn of_windows(types: &KernelTypes) -> Result<Self, ObserveError> {
        Self::climb_all(types, MEASUREMENT_SIGNALS, "window")
    }

    /// Fails if this kernel does not support the signal `needed`.
    fn climb_all(types: &KernelTypes, wanted: &[&str], needed: &str) -> Result<Self, ObserveError> {
        let only = Rung::named()?;
        let mut ebpf = load(EVENTS, types)?;
        let mut signals = Vec::new();
        let mut why = None;
        for ladder in ladders(ATTEMPTS).filter(|ladder| wanted.contains(&ladder[0].signal)) {
            let (signal, error) = climb(&mut ebpf, types, ladder, only);
            if signal.name == needed && signal.rung == Rung::Missing {
                why = error;
            }
            signals.push(signal);
        }
        if let Some(error) = why {
            return Err(error);
        }
        let ring = ebpf.take_map("events").and_then(|map| RingBuf::try_from(map).ok());
        let lost = ebpf.take_map("lost").and_then(|map| Array::try_from(map).ok());
        let sizes = ebpf.take_map("sizes").and_then(|map| PerCpuHashMap::try_from(map).ok());
        let (Some(ring), Some(lost), Some(sizes)) = (ring, lost, sizes) else {
            return Err(ObserveError::Refused {
                program: "events",
                problem: "its maps are not there".to_owned(),
            });
        };
        Ok(Self { signals, ring, lost, sizes, sampler: None, ebpf })
    }

    /// Returns the signals, and the rung of each.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Takes the misses of selected open files, for acting on them while their readers wait. Fails
    /// if they were already taken.
    pub fn take_misses(&mut self) -> Result<Misses, ObserveError> {
        Misses::from_ebpf(&mut self.ebpf)
    }

    /// Returns whether accesses can be sampled.
    pub fn samples_accesses(&self) -> bool {
        self.sampler.is_some()
    }

    /// Samples accesses to these files from now on, cached pages included: [`SAMPLES_PER_FILE`]
    /// accesses to each until the next call. Returns whether this kernel reports reads; if not,
    /// only misses are reported.
    ///
    /// [`SAMPLES_PER_FILE`]: crate::SAMPLES_PER_FILE
    pub fn sample(&mut self, files: &BTreeSet<(DevNo, u64)>) -> Result<bool, ObserveError> {
        let Some(sampler) = &mut self.sampler else { return Ok(false) };
        match sampler.choose(files) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.give_up_samples(&error.to_string());
                Err(error)
            }
        }
    }

    /// Stops sampling, because the samples are wrong or cannot be taken.
    pub(crate) fn give_up_samples(&mut self, problem: &str) {
        self.sampler = None;
        for signal in self.signals.iter_mut().filter(|signal| is_sample(signal)) {
            (signal.rung, signal.refused) = (Rung::Missing, vec![problem.to_owned()]);
        }
    }

    /// Passes the events since the last call to `take`, oldest first. A sample of an access does
    /// not name its open file. The ring holds some forty thousand events; when it is full, new
    /// events are lost, which [`Probes::lost`] counts.
    pub fn drain(&mut self, mut take: impl FnMut(ProbeEvent)) {
        let mut samples = Vec::new();
        if let Some(sampler) = &mut self.sampler {
            sampler.drain(|sample| samples.push(sample));
        }
        let mut samples = samples.into_iter().peekable();
        while let Some(item) = self.ring.next() {
            if let Some(event) = EventRecord::read(&item).and_then(|record| event(&record)) {
                let is_before = |sample: &ProbeEvent| sample.access.at <= event.access.at;
                while let Some(sample) = samples.next_if(is_before) {
                    take(sample);
                }
                take(event);
            }
        }
        samples.for_each(take);
    }

    /// Returns the number of read requests issued to the drivers of these devices or partitions
    /// since the probes were loaded, by size: the first up to 4 KiB, each next twice as large.
    /// Empty if there were none, or if these are not probes of [`Probes::of_windows`].
    pub fn request_sizes(&self, devices: &[DevNo]) -> Vec<u64> {
        let mut counts = Vec::new();
        for (key, count) in self.sizes.iter().filter_map(Result::ok) {
            if devices.contains(&device(key.device)) {
                let bucket = key.bucket as usize;
                counts.resize(counts.len().max(bucket + 1), 0);
                counts[bucket] += count.iter().sum::<u64>();
            }
        }
        counts
    }

    pub fn lost(&self) -> u64 {
        self.lost.get(&0, 0).unwrap_or(0)
    }
}

/// Returns whether a signal is one of access samples.
fn is_sample(signal: &Signal) -> bool {
    TRACEPOINTS.iter().any(|(name, ..)| *name == signal.name)
}

/// Attaches the first rung that works.
pub(crate) fn climb(
    ebpf: &mut Ebpf,
    types: &KernelTypes,
    ladder: &[ProbeAttempt],
    only: Option<Rung>,
) -> (Signal, Option<ObserveError>) {
    let name = ladder[0].signal.to_owned();
    let only = only.filter(|only| ladder.iter().any(|attempt| attempt.rung == *only));
    let is_chosen = |attempt: &&ProbeAttempt| only.is_none_or(|only| attempt.rung == only);
    let mut refused = Vec::new();
    let mut last = None;
    for attempt in ladder.iter().filter(is_chosen) {
        match attach(ebpf, types, attempt) {
            Ok(()) => return (Signal { name, rung: attempt.rung, refused }, None),
            Err(error) => {
                let error = of_program(attempt.program, &error);
                refused.push(error.to_string());
                last = Some(error);
            }
        }
    }
    (Signal { name, rung: Rung::Missing, refused }, last)
}

fn attach(
    ebpf: &mut Ebpf,
    types: &KernelTypes,
    attempt: &ProbeAttempt,
) -> Result<(), ProgramError> {
    let ProbeAttempt { rung, place, program, .. } = *attempt;
    let missing = || ProgramError::InvalidName { name: program.to_owned() };
    let program = ebpf.program_mut(program).ok_or_else(missing)?;
    match rung {
        Rung::TpBtf => {
            let program: &mut BtfTracePoint = program.try_into()?;
            program.load(place, types.places()?)?;
            program.attach().map(drop)
        }
        Rung::Fentry => {
            let program: &mut FEntry = program.try_into()?;
            program.load(place, types.places()?)?;
            program.attach().map(drop)
        }
        Rung::Kprobe => {
            let program: &mut KProbe = program.try_into()?;
            program.load()?;
            program.attach(place, 0).map(drop)
        }
        Rung::Missing => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_a_signal_stand_together_and_each_list_names_signals() {
        let signals: Vec<&str> = ladders(ATTEMPTS).map(|ladder| ladder[0].signal).collect();
        for name in SIGNALS.iter().chain(MEASUREMENT_SIGNALS) {
            assert_eq!(signals.iter().filter(|signal| *signal == name).count(), 1, "{name}");
        }
        let named =
            |signal: &&str| SIGNALS.contains(signal) || MEASUREMENT_SIGNALS.contains(signal);
        assert!(signals.iter().all(named), "{signals:?}");
    }
}
