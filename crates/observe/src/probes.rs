//! The probes of read-ahead: which of them this kernel takes, and what they tell.
//!
//! Each signal is tried rung by rung when the probes begin, never by the kernel's version: a
//! tracepoint with types first, then the entry of the function. What no rung gives is missing and
//! said to be. A read that finds its pages in the cache passes none of the probes.

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, FEntry, ProgramError};
use serde::{Deserialize, Serialize};

use crate::event::event;
use crate::object::{EVENTS, KernelTypes, load, of_program};
use crate::record::{EventRecord, Plain};
use crate::{Event, ObserveError};

/// How a signal is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// A tracepoint, with the types of its arguments.
    TpBtf,
    /// The entry of a function.
    Fentry,
    /// Not at all.
    Missing,
}

/// A signal, and how it is taken here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// What it is of.
    pub name: String,
    /// How it is taken.
    pub rung: Rung,
    /// Why no better rung held, as the kernel or the loader says it.
    pub refused: Vec<String>,
}

/// What is probed: the signal, the function or tracepoint, and the programs from the best rung on.
struct Ladder {
    signal: &'static str,
    place: &'static str,
    rungs: &'static [(Rung, &'static str)],
}

const LADDERS: &[Ladder] = &[
    Ladder {
        signal: "miss",
        place: "page_cache_sync_ra",
        rungs: &[(Rung::TpBtf, "miss_tp_btf"), (Rung::Fentry, "miss_fentry")],
    },
    Ladder {
        signal: "mark",
        place: "page_cache_async_ra",
        rungs: &[(Rung::TpBtf, "mark_tp_btf"), (Rung::Fentry, "mark_fentry")],
    },
    Ladder {
        signal: "window",
        place: "page_cache_ra_order",
        rungs: &[(Rung::TpBtf, "window_tp_btf"), (Rung::Fentry, "window_fentry")],
    },
    Ladder {
        signal: "plain",
        place: "page_cache_ra_unbounded",
        rungs: &[(Rung::TpBtf, "plain_tp_btf"), (Rung::Fentry, "plain_fentry")],
    },
    Ladder { signal: "stall", place: "sched_switch", rungs: &[(Rung::TpBtf, "switch_tp_btf")] },
];

/// The probes at work; dropped, nothing of them is left in the kernel.
pub struct Probes {
    signals: Vec<Signal>,
    ring: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
    /// Last, as it holds the programs and what attaches them.
    _ebpf: Ebpf,
}

impl std::fmt::Debug for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probes").field("signals", &self.signals).finish_non_exhaustive()
    }
}

impl Probes {
    /// Loads and attaches what this kernel takes. Fails if it takes no probe of misses, without
    /// which the rest means nothing.
    pub fn begin() -> Result<Self, ObserveError> {
        Self::fitted(&KernelTypes::read()?)
    }

    /// The same with a description of the kernel's types that is there already.
    pub fn fitted(types: &KernelTypes) -> Result<Self, ObserveError> {
        Self::climb_all(types, LADDERS, "miss")
    }

    /// As [`Probes::fitted`], of submitted windows alone: that is what can stand beside a
    /// measurement, at one record for each window. Who asked for one is not told: all look like
    /// those of mapped files.
    pub fn of_windows(types: &KernelTypes) -> Result<Self, ObserveError> {
        let windows = LADDERS.iter().position(|ladder| ladder.signal == "window");
        Self::climb_all(types, windows.map_or(&[], |at| &LADDERS[at..=at]), "window")
    }

    /// Fails if this kernel does not take the signal that is needed.
    fn climb_all(
        types: &KernelTypes,
        ladders: &[Ladder],
        needed: &str,
    ) -> Result<Self, ObserveError> {
        let mut ebpf = load(EVENTS, types)?;
        let mut signals = Vec::new();
        let mut why = None;
        for ladder in ladders {
            let (signal, error) = climb(&mut ebpf, types, ladder);
            if ladder.signal == needed && signal.rung == Rung::Missing {
                why = error;
            }
            signals.push(signal);
        }
        if let Some(error) = why {
            return Err(error);
        }
        let ring = ebpf.take_map("events").and_then(|map| RingBuf::try_from(map).ok());
        let lost = ebpf.take_map("lost").and_then(|map| PerCpuArray::try_from(map).ok());
        let (Some(ring), Some(lost)) = (ring, lost) else {
            return Err(ObserveError::Refused {
                program: "events",
                problem: "its maps are not there".to_owned(),
            });
        };
        Ok(Self { signals, ring, lost, _ebpf: ebpf })
    }

    /// The signals, and how each is taken.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Hands over what has happened since the last time, oldest first. Whoever does not ask for
    /// long loses the newest, which [`Probes::lost`] counts: the ring holds some forty thousand.
    pub fn drain(&mut self, mut take: impl FnMut(Event)) {
        while let Some(item) = self.ring.next() {
            if let Some(event) = EventRecord::read(&item).and_then(|record| event(&record)) {
                take(event);
            }
        }
    }

    /// Events lost since the beginning.
    pub fn lost(&self) -> u64 {
        self.lost.get(&0, 0).map_or(0, |counts| counts.iter().sum())
    }
}

/// Takes the first rung that holds.
fn climb(ebpf: &mut Ebpf, types: &KernelTypes, ladder: &Ladder) -> (Signal, Option<ObserveError>) {
    let mut refused = Vec::new();
    let mut last = None;
    for (rung, program) in ladder.rungs {
        match attach(ebpf, types, ladder.place, *rung, program) {
            Ok(()) => {
                return (Signal { name: ladder.signal.to_owned(), rung: *rung, refused }, None);
            }
            Err(error) => {
                let error = of_program(program, &error);
                refused.push(error.to_string());
                last = Some(error);
            }
        }
    }
    (Signal { name: ladder.signal.to_owned(), rung: Rung::Missing, refused }, last)
}

fn attach(
    ebpf: &mut Ebpf,
    types: &KernelTypes,
    place: &str,
    rung: Rung,
    program: &'static str,
) -> Result<(), ProgramError> {
    let missing = || ProgramError::InvalidName { name: program.to_owned() };
    let program = ebpf.program_mut(program).ok_or_else(missing)?;
    match rung {
        Rung::TpBtf => {
            let program: &mut BtfTracePoint = program.try_into()?;
            program.load(place, &types.0)?;
            program.attach().map(drop)
        }
        Rung::Fentry => {
            let program: &mut FEntry = program.try_into()?;
            program.load(place, &types.0)?;
            program.attach().map(drop)
        }
        Rung::Missing => Err(missing()),
    }
}
