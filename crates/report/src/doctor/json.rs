//! The document of `foreread doctor --json`.

use std::collections::BTreeMap;

use doctor::{Diagnosis, Origin};
use host::owners::{Certainty, Claim};
use host::{BdiId, Layer, LayerKind, QueueLimits};
use serde_json::{Value, json};
use units::Bytes;

use super::DoctorReport;
use super::names;
use crate::Versioned;
use crate::json::With;

pub fn doctor_json(doctor: &DoctorReport<'_>) -> Versioned<Value> {
    Versioned::new(json!({
        "kernel": doctor.kernel,
        "root": doctor.tree,
        "storage": doctor.diagnoses.iter().map(storage_entry).collect::<Vec<_>>(),
        "plan": doctor.plan,
        "missing": doctor.missing,
    }))
}

fn storage_entry(diagnosis: &Diagnosis) -> Value {
    let subject = &diagnosis.subject;
    let stacks = subject.stacks.iter();
    let stacks = stacks.map(|stack| layer_entry(stack, &subject.bdi, &diagnosis.origins));
    json!({
        "name": names::short(subject),
        "bdi": subject.bdi,
        "read_ahead_kib": subject.read_ahead,
        "read_ahead_sectors": subject.read_ahead.to_sectors(),
        "member": subject.member,
        "is_empty": subject.vacant(),
        "origin": diagnosis.origin,
        "stacks": stacks.collect::<Vec<_>>(),
        "claims": diagnosis.claims.iter().map(claim_entry).collect::<Vec<_>>(),
        "open": diagnosis.open,
        "findings": diagnosis.findings,
    })
}

fn layer_entry<'a>(
    layer: &'a Layer,
    counts: &BdiId,
    origins: &BTreeMap<BdiId, Origin>,
) -> With<&'a LayerKind> {
    let bdi = layer.bdi.as_ref();
    let below = layer.below.iter().map(|below| layer_entry(below, counts, origins));
    let more = json!({
        "name": layer.name,
        "device": layer.device.map(|device| device.to_string()),
        "bdi": bdi,
        "read_ahead_kib": layer.read_ahead,
        "is_effective": bdi == Some(counts),
        "origin": bdi.and_then(|bdi| origins.get(bdi)),
        "queue": layer.queue.as_ref().map(queue_entry),
        "below": below.collect::<Vec<_>>(),
    });
    With { object: &layer.kind, more }
}

/// Returns the queue settings related to read-ahead.
fn queue_entry(queue: &QueueLimits) -> Value {
    json!({
        "scheduler": queue.scheduler,
        "nr_requests": queue.nr_requests,
        "max_sectors_kib": queue.max_sectors.map(Bytes::to_kib_floor),
        "max_hw_sectors_kib": queue.max_hw_sectors.map(Bytes::to_kib_floor),
        "optimal_io_size_bytes": queue.optimal_io_size,
        "rotational": queue.rotational,
        "queue_depth": queue.queue_depth,
        "stripe_cache_size": queue.stripe_cache_size,
    })
}

fn claim_entry(claim: &Claim) -> Value {
    json!({
        "owner": claim.owner.word(),
        "wanted": claim.wanted.to_string(),
        "wanted_kib": claim.wanted.kib(),
        "sure": claim.certainty == Certainty::Sure,
        "place": claim.place,
        "text": claim.text,
    })
}
