//! The document of `foreread doctor --json`.

use std::collections::BTreeMap;

use doctor::plan::DevicePlan;
use doctor::{Diagnosis, Finding, Missing, OpenHere, Origin};
use host::owners::{Claim, FileLocation};
use host::{BdiId, Layer, LayerKind, QueueLimits};
use serde::Serialize;
use units::{Kib, Sectors};

use super::DoctorReport;
use super::names;
use crate::Versioned;

#[derive(Debug, Serialize)]
pub struct DoctorDocument<'a> {
    kernel: &'a str,
    root: Option<&'a str>,
    storage: Vec<Storage<'a>>,
    plan: &'a [DevicePlan],
    missing: &'a [Missing],
}

#[derive(Debug, Serialize)]
struct Storage<'a> {
    name: String,
    bdi: &'a BdiId,
    read_ahead_kib: Kib,
    read_ahead_sectors: Sectors,
    member: bool,
    is_empty: bool,
    origin: &'a Origin,
    stacks: Vec<Node<'a>>,
    claims: Vec<ClaimEntry<'a>>,
    open: Option<&'a OpenHere>,
    findings: &'a [Finding],
}

#[derive(Debug, Serialize)]
struct Node<'a> {
    name: &'a str,
    #[serde(flatten)]
    kind: &'a LayerKind,
    device: Option<String>,
    bdi: Option<&'a BdiId>,
    read_ahead_kib: Option<Kib>,
    is_effective: bool,
    origin: Option<&'a Origin>,
    queue: Option<QueueEntry<'a>>,
    below: Vec<Node<'a>>,
}

/// Queue settings related to read-ahead.
#[derive(Debug, Serialize)]
struct QueueEntry<'a> {
    scheduler: Option<&'a str>,
    nr_requests: Option<u64>,
    max_sectors_kib: Option<u64>,
    max_hw_sectors_kib: Option<u64>,
    optimal_io_size_bytes: Option<u64>,
    rotational: Option<bool>,
    queue_depth: Option<u64>,
    stripe_cache_size: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ClaimEntry<'a> {
    owner: &'static str,
    wanted: String,
    wanted_kib: Option<Kib>,
    sure: bool,
    place: &'a FileLocation,
    text: &'a str,
}

pub fn doctor_json<'a>(doctor: &DoctorReport<'a>) -> Versioned<DoctorDocument<'a>> {
    Versioned::new(DoctorDocument {
        kernel: doctor.kernel,
        root: doctor.tree,
        storage: doctor.diagnoses.iter().map(storage_entry).collect(),
        plan: doctor.plan,
        missing: doctor.missing,
    })
}

fn storage_entry(diagnosis: &Diagnosis) -> Storage<'_> {
    let subject = &diagnosis.subject;
    Storage {
        name: names::short(subject),
        bdi: &subject.bdi,
        read_ahead_kib: subject.read_ahead,
        read_ahead_sectors: subject.read_ahead.to_sectors(),
        member: subject.member,
        is_empty: subject.vacant(),
        origin: &diagnosis.origin,
        stacks: subject
            .stacks
            .iter()
            .map(|stack| layer_entry(stack, &subject.bdi, &diagnosis.origins))
            .collect(),
        claims: diagnosis.claims.iter().map(claim_entry).collect(),
        open: diagnosis.open.as_ref(),
        findings: &diagnosis.findings,
    }
}

fn layer_entry<'a>(
    layer: &'a Layer,
    counts: &BdiId,
    origins: &'a BTreeMap<BdiId, Origin>,
) -> Node<'a> {
    Node {
        name: &layer.name,
        kind: &layer.kind,
        device: layer.device.map(|device| device.to_string()),
        bdi: layer.bdi.as_ref(),
        read_ahead_kib: layer.read_ahead,
        is_effective: layer.bdi.as_ref() == Some(counts),
        origin: layer.bdi.as_ref().and_then(|bdi| origins.get(bdi)),
        queue: layer.queue.as_ref().map(queue_entry),
        below: layer.below.iter().map(|below| layer_entry(below, counts, origins)).collect(),
    }
}

fn queue_entry(queue: &QueueLimits) -> QueueEntry<'_> {
    let kib = |size: Option<units::Bytes>| size.map(|size| size.to_kib_floor().get());
    QueueEntry {
        scheduler: queue.scheduler.as_deref(),
        nr_requests: queue.nr_requests,
        max_sectors_kib: kib(queue.max_sectors),
        max_hw_sectors_kib: kib(queue.max_hw_sectors),
        optimal_io_size_bytes: queue.optimal_io_size.map(units::Bytes::get),
        rotational: queue.rotational,
        queue_depth: queue.queue_depth,
        stripe_cache_size: queue.stripe_cache_size,
    }
}

fn claim_entry(claim: &Claim) -> ClaimEntry<'_> {
    ClaimEntry {
        owner: claim.owner.word(),
        wanted: claim.wanted.to_string(),
        wanted_kib: claim.wanted.kib(),
        sure: claim.certainty == host::owners::Certainty::Sure,
        place: &claim.place,
        text: &claim.text,
    }
}
