//! Classes of requests that a drive treats differently, derived from the trace alone.
//!
//! In a single distribution of all requests, a wrong share of cache hits can compensate for a wrong
//! overhead; with a distribution for each class, it cannot. The demerit over all requests never
//! exceeds the root mean square of the demerits by class.

use super::trace::TraceRequest;

pub(super) const CLASS_COUNT: usize = 7;

/// The distance that a cache may cover, in sectors. The tracks of the traced drives have 100 to
/// 400.
const NEAR_SECTORS: u64 = 2000;

pub(super) fn kinds(trace: &[TraceRequest]) -> Vec<usize> {
    let mut before: Option<&TraceRequest> = None;
    let kind = |request| {
        let kind = before.map_or(0, |before| kind_after(before, request));
        before = Some(request);
        kind
    };
    trace.iter().map(kind).collect()
}

/// Returns the class of a request: 0 far read, 1 contiguous write, 2 other write, 3 near read after
/// a write; after a read: 4 contiguous read, 5 read before its end, 6 read after its end.
fn kind_after(before: &TraceRequest, request: &TraceRequest) -> usize {
    let end = before.start + before.sectors;
    let contiguous = request.start == end;
    match (request.is_write, before.is_write) {
        (true, true) if contiguous => 1,
        (true, _) => 2,
        (false, _) if request.start.abs_diff(end) > NEAR_SECTORS => 0,
        (false, true) => 3,
        (false, false) if contiguous => 4,
        (false, false) if request.start < end => 5,
        (false, false) => 6,
    }
}

pub(super) fn is_write(kind: usize) -> bool {
    kind == 1 || kind == 2
}

/// The class whose requests are most likely cache hits.
pub(super) const CONTIGUOUS_READ: usize = 4;

pub(super) const CONTIGUOUS_WRITE: usize = 1;
