//! Access samples: the reads and faults of selected files, including those that find their pages in
//! the cache.
//!
//! The probes of read-ahead report only uncached pages. Samples also show whether a prediction is
//! correct, and how far a reader has advanced. The programs are attached only while files are
//! selected. To bound the cost, samples of a file are limited until its next selection.

use std::collections::BTreeSet;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, RingBuf};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use host::DevNo;
use policy::{AccessEvent, EventKind};
use units::{Nanos, Pages};

use crate::object::{KernelTypes, SAMPLES, load, of_chain, of_program};
use crate::open_files::device;
use crate::record::{InodeKey, Plain, SampleRecord};
use crate::{ObserveError, ProbeEvent, Rung, Signal};

/// The name of the programs in messages.
const PROGRAM: &str = "samples";
/// Maximum number of files that are sampled at once, as in `bpf/records.h`.
pub const MAX_SAMPLED_FILES: usize = 256;
/// Number of samples of a file until its next selection. A thousand samples, about four selections
/// in a second, cost a reader about 0.2 ms.
pub const SAMPLES_PER_FILE: u64 = 256;

/// The signals, their tracepoints and programs. Only the first signal is required.
pub(crate) const TRACEPOINTS: [(&str, &str, &str); 3] = [
    ("read", "mm_filemap_get_pages", "read_tp_btf"),
    ("fault", "mm_filemap_fault", "fault_tp_btf"),
    ("mapped", "mm_filemap_map_pages", "map_tp_btf"),
];

/// Samples accesses to selected files.
pub(crate) struct Sampler {
    sampled: HashMap<MapData, InodeKey, u64>,
    bits: Array<MapData, u64>,
    ring: RingBuf<MapData>,
    files: BTreeSet<(DevNo, u64)>,
    /// The programs that this kernel supports, and their links while they are attached.
    programs: Vec<&'static str>,
    links: Vec<(&'static str, BtfTracePointLinkId)>,
    ebpf: Ebpf,
}

impl Sampler {
    /// Loads the supported programs; no sampler if reads are not reported (before Linux 6.11).
    pub(crate) fn fitted(types: &KernelTypes) -> (Option<Self>, Vec<Signal>) {
        let missing = |problem: String| {
            let signal = |(name, ..): &(&str, _, _)| Signal {
                name: (*name).to_owned(),
                rung: Rung::Missing,
                refused: vec![problem.clone()],
            };
            (None, TRACEPOINTS.iter().map(signal).collect())
        };
        match Self::load(types) {
            Ok((Some(sampler), signals)) => (Some(sampler), signals),
            Ok((None, signals)) => (None, signals),
            Err(error) => missing(error.to_string()),
        }
    }

    fn load(types: &KernelTypes) -> Result<(Option<Self>, Vec<Signal>), ObserveError> {
        if let Some(rung) = Rung::named()?.filter(|rung| *rung != Rung::TpBtf) {
            let problem = format!("there are tracepoints only, not {rung:?}");
            return Err(ObserveError::Refused { program: PROGRAM, problem });
        }
        let mut ebpf = load(SAMPLES, types)?;
        let (mut programs, mut signals) = (Vec::new(), Vec::new());
        for (name, place, program) in TRACEPOINTS {
            let result = tracepoint(&mut ebpf, program).and_then(|it| {
                types
                    .places()
                    .map_err(ProgramError::from)
                    .and_then(|places| it.load(place, places))
                    .map_err(|e| of_program(program, &e))
            });
            let (rung, refused) = match result {
                Ok(()) => (Rung::TpBtf, Vec::new()),
                Err(error) => (Rung::Missing, vec![error.to_string()]),
            };
            if rung == Rung::TpBtf {
                programs.push(program);
            }
            signals.push(Signal { name: name.to_owned(), rung, refused });
        }
        if signals[0].rung == Rung::Missing {
            return Ok((None, signals));
        }
        let no_maps = || ObserveError::Refused {
            program: PROGRAM,
            problem: "its maps are not there".to_owned(),
        };
        let fail = |error: MapError| of_chain(PROGRAM, &error);
        let mut take = |name: &str| ebpf.take_map(name).ok_or_else(no_maps);
        let (sampled, bits, ring) = (take("sampled")?, take("sampled_bits")?, take(PROGRAM)?);
        let sampler = Self {
            sampled: HashMap::try_from(sampled).map_err(fail)?,
            bits: Array::try_from(bits).map_err(fail)?,
            ring: RingBuf::try_from(ring).map_err(fail)?,
            files: BTreeSet::new(),
            programs,
            links: Vec::new(),
            ebpf,
        };
        Ok((Some(sampler), signals))
    }

    /// Samples only these files from now on, [`SAMPLES_PER_FILE`] accesses of each; if there are
    /// more than [`MAX_SAMPLED_FILES`], only the first ones.
    pub(crate) fn choose(&mut self, files: &BTreeSet<(DevNo, u64)>) -> Result<(), ObserveError> {
        let fail = |error: MapError| of_chain(PROGRAM, &error);
        let wanted: BTreeSet<_> = files.iter().copied().take(MAX_SAMPLED_FILES).collect();
        for gone in self.files.difference(&wanted) {
            // This fails only if the file is no longer in the map.
            let _ = self.sampled.remove(&InodeKey::new(*gone));
        }
        let bits = wanted.iter().fold(0, |bits, (_, inode)| bits | 1_u64 << (inode & 63));
        self.bits.set(0, bits, 0).map_err(fail)?;
        for file in &wanted {
            self.sampled.insert(InodeKey::new(*file), SAMPLES_PER_FILE, 0).map_err(fail)?;
        }
        self.files = wanted;
        if self.files.is_empty() { self.detach() } else { self.attach() }
    }

    fn attach(&mut self) -> Result<(), ObserveError> {
        if !self.links.is_empty() {
            return Ok(());
        }
        for program in &self.programs {
            let link = tracepoint(&mut self.ebpf, program)?
                .attach()
                .map_err(|error| of_program(program, &error))?;
            self.links.push((program, link));
        }
        Ok(())
    }

    fn detach(&mut self) -> Result<(), ObserveError> {
        for (program, link) in self.links.drain(..) {
            tracepoint(&mut self.ebpf, program)?
                .detach(link)
                .map_err(|error| of_program(program, &error))?;
        }
        Ok(())
    }

    /// Passes the samples since the last call to `take`, oldest first, without their open files.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(ProbeEvent)) {
        while let Some(item) = self.ring.next() {
            if let Some(event) = SampleRecord::read(&item).and_then(|record| sample(&record)) {
                take(event);
            }
        }
    }
}

fn tracepoint<'a>(
    ebpf: &'a mut Ebpf,
    program: &'static str,
) -> Result<&'a mut BtfTracePoint, ObserveError> {
    let problem = || "it is not in the object".to_owned();
    let found = ebpf.program_mut(program);
    let found = found.ok_or_else(|| ObserveError::Refused { program, problem: problem() })?;
    found.try_into().map_err(|error| of_program(program, &error))
}

/// Decodes a record; `None` if its kind is unknown.
pub(crate) fn sample(record: &SampleRecord) -> Option<ProbeEvent> {
    let mapped = match record.kind {
        1 => false,
        2 | 3 => true,
        _ => return None,
    };
    let pages = record.last.checked_sub(record.first)?.checked_add(1)?;
    Some(ProbeEvent {
        access: AccessEvent {
            at: Nanos::new(record.time_ns),
            kind: EventKind::Access { mapped },
            file: None,
            index: record.first,
            request: Pages::new(pages),
            previous: None,
        },
        device: device(record.device),
        inode: record.inode,
        limit: Pages::ZERO,
        pid: record.pid,
        tid: record.tid,
        comm: String::new(),
        cgroup: 0,
    })
}
