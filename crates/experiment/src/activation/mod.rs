//! When does read-ahead start, and what stops it?
//!
//! The experiment reads a file in several patterns, each with a cold cache. After each operation,
//! it determines the new pages in the cache and compares them with the kernel's rules (crate
//! `policy`, which is tested against recorded decisions of a kernel). The result also shows whether
//! this kernel still follows the rules.

mod conclude;
mod observe;
mod pattern;
mod predict;

use host::{KernelRelease, LargeFolios, Machine, StorageKind};
use policy::{DeviceLimits, FileShape, PolicyError};
use study::{Environment, Progress, ProgressEvent, StudyPhase, Target, TargetSpec};
use units::{Bytes, Kib, PageSize};

use crate::ExperimentError;
use observe::{Specimen, existing};
use predict::{CachedExtents, predict};
use study::{Findings, LiveTarget};

pub const NAME: &str = "activation";
pub const QUESTION: &str = "When does read-ahead start?";

/// The page size that the rules assume.
const PAGE_BYTES: Bytes = Bytes::from_kib(4);
/// The order of the largest folio of a page cache with 4 KiB pages.
const MAX_FOLIO_ORDER: u8 = 9;

#[derive(Clone, Debug, PartialEq)]
pub struct ActivationPlan {
    /// A directory, a file, a virtual disk, or a simulation.
    pub target: Target,
    /// The read-ahead during the experiment; `None` for the device's current value.
    pub read_ahead: Option<Kib>,
}

/// A pattern as executed by the kernel and as predicted by the rules.
struct Outcome {
    pattern: pattern::ReadPattern,
    observed: CachedExtents,
    predicted: CachedExtents,
}

pub fn run(
    plan: &ActivationPlan,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    if let Target::Simulation(spec) = &plan.target {
        return simulated(plan, spec, environment);
    }
    let mut place = LiveTarget::open(&plan.target, environment, progress)?;
    let measured = measure(plan, &mut place, environment, progress);
    let closed = place.close(progress);
    let answer = measured?;
    closed?;
    Ok(answer)
}

fn measure(
    plan: &ActivationPlan,
    place: &mut LiveTarget,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let machine = Machine::read(&environment.root)?;
    if machine.page_size != PageSize::new(PAGE_BYTES.get()).unwrap_or(machine.page_size) {
        let size = machine.page_size.bytes();
        let why = format!("pages of {size}: the rules that it compares with are of 4 KiB pages");
        return Err(ExperimentError::NotPossible(why));
    }
    if let Some(window) = plan.read_ahead {
        place.set_read_ahead(window)?;
    }
    let window = place.read_ahead()?;
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    answer.dilation = place.dilation;
    let (file, size) = file_for(place, window, progress)?;
    let path = place.storage.path.clone();
    let root = &environment.root;
    let specimen = Specimen { file, path, size, root, storage: &place.storage };
    let rules = rules_of(machine.release(), &mut answer);
    let shape = shape(place, environment, &machine, (window, size), &mut answer)?;
    progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
    let mut outcomes = Vec::new();
    let patterns = pattern::all();
    let total = patterns.len();
    for (done, pattern) in patterns.into_iter().enumerate() {
        if environment.cancel.is_cancelled() {
            return Err(ExperimentError::Cancelled);
        }
        progress.step(&ProgressEvent::Measured { done, total });
        let observed = specimen.observe(&pattern)?;
        let policy = policy::build(rules)
            .map_err(|error| ExperimentError::NotPossible(error.to_string()))?;
        let predicted = predict(policy, shape, &pattern);
        outcomes.push(Outcome { pattern, observed, predicted });
    }
    conclude::conclude(&mut answer, &outcomes, rules, window);
    Ok(answer)
}

/// Runs the experiment on a simulated kernel, with its policy and page cache.
fn simulated(
    plan: &ActivationPlan,
    spec: &TargetSpec<sim::SimMachine>,
    environment: &Environment,
) -> Result<Findings, ExperimentError> {
    let mut machine = spec.get()?.clone();
    machine.read_ahead = plan.read_ahead.unwrap_or(machine.read_ahead);
    machine.validate().map_err(study::StudyError::from)?;
    let window = machine.read_ahead;
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    answer.set_simulated_by(&machine);
    let rules = match machine.policy.entry().name {
        name @ "linux-on-demand" => name,
        _ => "linux-6.18",
    };
    let pages = |bytes: Bytes| bytes.to_pages_floor(PageSize::FOUR_KIB);
    let limits = DeviceLimits {
        read_ahead: pages(window.to_bytes()),
        max_request: pages(machine.model.host().max_request),
    };
    let shape =
        FileShape { size: file_size(window), folio_limit: machine.filesystem.folio_limit, limits };
    let mut outcomes = Vec::new();
    for pattern in pattern::all() {
        if environment.cancel.is_cancelled() {
            return Err(ExperimentError::Cancelled);
        }
        let usage = |error: PolicyError| ExperimentError::Usage(error.to_string());
        let observed = predict(machine.policy.build().map_err(usage)?, shape, &pattern);
        let predicted = predict(policy::build(rules).map_err(usage)?, shape, &pattern);
        outcomes.push(Outcome { pattern, observed, predicted });
    }
    conclude::conclude(&mut answer, &outcomes, rules, window);
    Ok(answer)
}

/// Returns a file size for all patterns: several windows, so that the end cuts off none of them.
fn file_size(window: Kib) -> Bytes {
    const MAX_FILE_BYTES: Bytes = Bytes::from_mib(256);
    let needed = pattern::MIN_FILE_PAGES.get() * PAGE_BYTES.get();
    let size = (window.to_bytes().get().saturating_mul(6)).clamp(needed, MAX_FILE_BYTES.get());
    Bytes::new(size.next_multiple_of(1 << 20))
}

/// Returns the file to read: an unnamed one in a directory, or the named one.
fn file_for(
    place: &LiveTarget,
    window: Kib,
    progress: &mut dyn Progress,
) -> Result<(std::fs::File, Bytes), ExperimentError> {
    let path = &place.storage.path;
    let needed = pattern::MIN_FILE_PAGES.get() * PAGE_BYTES.get();
    match place.storage.kind {
        StorageKind::Directory => {
            let size = file_size(window);
            progress.step(&ProgressEvent::Phase(StudyPhase::LayingOut));
            place.set_timing(false)?;
            let file = bench::nameless(path, size)?;
            place.set_timing(true)?;
            Ok((file, size))
        }
        StorageKind::File => {
            let (file, size) = existing(path)?;
            if size.get() < needed {
                let (path, needed) = (path.clone(), Bytes::new(needed));
                return Err(ExperimentError::TooSmall { path, size, needed });
            }
            Ok((file, size))
        }
        StorageKind::BlockDevice => Err(ExperimentError::Usage(format!(
            "{} is a block device: name a directory or a file on a filesystem",
            path.display()
        ))),
    }
}

/// Returns the name of the policy with the rules for this kernel release.
fn rules_of(kernel: Option<KernelRelease>, answer: &mut Findings) -> &'static str {
    let current = KernelRelease { major: 6, minor: 12 };
    let known = KernelRelease { major: 6, minor: 18 };
    match kernel {
        Some(kernel) if kernel < current => "linux-on-demand",
        Some(kernel) if kernel <= known => "linux-6.18",
        _ => {
            let note = "the rules are those of Linux 6.18; this kernel may differ";
            answer.notes.push(note.to_owned());
            "linux-6.18"
        }
    }
}

/// Returns the limits of file and device that the rules need.
fn shape(
    place: &LiveTarget,
    environment: &Environment,
    machine: &Machine,
    (window, size): (Kib, Bytes),
    answer: &mut Findings,
) -> Result<FileShape, ExperimentError> {
    let device = place.storage.devices.first();
    let facts = device.map(|device| host::device_facts(&environment.root, *device)).transpose()?;
    let largest = facts.and_then(|facts| facts.max_sectors).unwrap_or_else(|| window.to_bytes());
    let large = machine.release().and_then(|kernel| place.storage.large_folios(kernel));
    let folio_limit = match large {
        Some(LargeFolios::Yes) => Some(MAX_FOLIO_ORDER),
        Some(LargeFolios::No) => None,
        Some(LargeFolios::Unknown) | None => {
            let note = "whether this filesystem caches in large folios is not known; the rules \
                        are taken without";
            answer.notes.push(note.to_owned());
            None
        }
    };
    let pages = |bytes: Bytes| bytes.to_pages_floor(machine.page_size);
    let limits = DeviceLimits { read_ahead: pages(window.to_bytes()), max_request: pages(largest) };
    Ok(FileShape { size, folio_limit, limits })
}
