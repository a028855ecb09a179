//! The probes of read-ahead: which of them this kernel takes, and what they tell.
//!
//! Each signal is tried rung by rung when the probes begin, never by the kernel's version: a
//! tracepoint with types first, then the entry of the function, then a kprobe there. What no rung
//! gives is missing and said to be. A read that finds its pages in the cache passes none of the
//! probes, unless its file is sampled.

use std::collections::BTreeSet;

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray, PerCpuHashMap, RingBuf};
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
    /// The function or tracepoint.
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

/// Every signal with the ways to receive it, the best first.
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

/// What can stand beside a measurement: one record for each window, one count for each request.
const BESIDE: &[&str] = &["window", "size"];

/// The attempts at each signal.
pub(crate) fn ladders(attempts: &[ProbeAttempt]) -> impl Iterator<Item = &[ProbeAttempt]> {
    attempts.chunk_by(|one, next| one.signal == next.signal)
}

/// The key of a count of requests: the device in the kernel's form, and which size.
#[repr(C)]
#[derive(Clone, Copy)]
struct SizeKey {
    device: u32,
    bucket: u32,
}

// SAFETY: two numbers without padding, as bpf/records.h has them.
unsafe impl aya::Pod for SizeKey {}

/// The probes at work; dropped, nothing of them is left in the kernel.
pub struct Probes {
    signals: Vec<Signal>,
    ring: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
    sizes: PerCpuHashMap<MapData, SizeKey, u64>,
    sampler: Option<Sampler>,
    /// Last, as it holds the programs and what attaches them.
    ebpf: Ebpf,
}

impl std::fmt::Debug for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probes").field("signals", &self.signals).finish_non_exhaustive()
    }
}

impl Probes {
    /// Loads and attaches what this kernel takes. Fails if it takes no probe of misses, without
    /// which the rest means nothing.
    pub fn load() -> Result<Self, ObserveError> {
        Self::fitted(&KernelTypes::read()?)
    }

    /// The same with a description of the kernel's types that is there already.
    pub fn fitted(types: &KernelTypes) -> Result<Self, ObserveError> {
        let mut probes = Self::climb_all(types, SIGNALS, "miss")?;
        let (sampler, signals) = Sampler::fitted(types);
        probes.sampler = sampler;
        probes.signals.extend(signals);
        Ok(probes)
    }

    /// As [`Probes::fitted`], of submitted windows and sizes of requests alone, which can stand
    /// beside a measurement. Who asked for a window is not told: all look like those of mapped
    /// files.
    pub fn of_windows(types: &KernelTypes) -> Result<Self, ObserveError> {
        Self::climb_all(types, BESIDE, "window")
    }

    /// Fails if this kernel does not take the signal that is needed.
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
        let lost = ebpf.take_map("lost").and_then(|map| PerCpuArray::try_from(map).ok());
        let sizes = ebpf.take_map("sizes").and_then(|map| PerCpuHashMap::try_from(map).ok());
        let (Some(ring), Some(lost), Some(sizes)) = (ring, lost, sizes) else {
            return Err(ObserveError::Refused {
                program: "events",
                problem: "its maps are not there".to_owned(),
            });
        };
        Ok(Self { signals, ring, lost, sizes, sampler: None, ebpf })
    }

    /// The signals, and how each is taken.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Misses of chosen open files, for whoever answers them while their readers wait. There is one
    /// for all: a second time they are not there.
    pub fn take_misses(&mut self) -> Result<Misses, ObserveError> {
        Misses::from_ebpf(&mut self.ebpf)
    }

    /// Whether accesses can be sampled.
    pub fn samples_accesses(&self) -> bool {
        self.sampler.is_some()
    }

    /// Samples accesses to these files from now on, cached pages included: [`SAMPLES_PER_FILE`]
    /// accesses to each until the next call. Whether this kernel reports reads; where it does not,
    /// misses remain.
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

    /// Samples nothing any more, as the samples are wrong or cannot be taken.
    pub(crate) fn give_up_samples(&mut self, problem: &str) {
        self.sampler = None;
        for signal in self.signals.iter_mut().filter(|signal| is_sample(signal)) {
            (signal.rung, signal.refused) = (Rung::Missing, vec![problem.to_owned()]);
        }
    }

    /// Hands over what has happened since the last time, oldest first; a sample of an access does
    /// not name its open file. Whoever does not ask for long loses the newest, which
    /// [`Probes::lost`] counts: the ring holds some forty thousand.
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

    /// Requests to read that drivers of these devices or partitions were given since the beginning,
    /// by size: the first up to 4 KiB, each next twice as large. Empty if there were none, or if
    /// they are not looked at, which is so but with [`Probes::of_windows`].
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
        self.lost.get(&0, 0).map_or(0, |counts| counts.iter().sum())
    }
}

/// Whether a signal is one of access samples.
fn is_sample(signal: &Signal) -> bool {
    TRACEPOINTS.iter().any(|(name, ..)| *name == signal.name)
}

/// Takes the first rung that holds.
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
        for name in SIGNALS.iter().chain(BESIDE) {
            assert_eq!(signals.iter().filter(|signal| *signal == name).count(), 1, "{name}");
        }
        let named = |signal: &&str| SIGNALS.contains(signal) || BESIDE.contains(signal);
        assert!(signals.iter().all(named), "{signals:?}");
    }
}
