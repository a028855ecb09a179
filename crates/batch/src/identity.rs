//! Names that follow from content.

use sha2::{Digest, Sha256};
use trace::{Trace, TraceRecordKind};
use workload::AccessMethod;

/// The package's version and a hash of the simulator's source: two simulators that may give
/// different results never have the same.
pub const SIMULATOR_VERSION: &str = env!("FOREREAD_SIMULATOR_VERSION");

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece);
    }
    hex(&hash.finalize())
}

/// SHA-256 of what a trace says, whichever format it was stored in.
pub fn trace_digest(trace: &Trace) -> String {
    const BUFFERED_BYTES: usize = 1 << 16;
    let mut hash = Sha256::new();
    hash.update([u8::from(trace.is_timed())]);
    for file in trace.files() {
        hash.update((file.name.len() as u64).to_le_bytes());
        hash.update(file.name.as_bytes());
        hash.update(file.size.get().to_le_bytes());
    }
    for open in trace.open_files() {
        hash.update(open.file.to_le_bytes());
        hash.update([u8::from(open.access == AccessMethod::Mmap)]);
        hash.update(format!("{:?}", open.hint));
    }
    let mut buffer = Vec::with_capacity(BUFFERED_BYTES + 64);
    for process in trace.processes() {
        hash.update(process.to_le_bytes());
    }
    for record in trace.records() {
        buffer.extend(record.time.get().to_le_bytes());
        buffer.extend(record.open_file.to_le_bytes());
        buffer.extend(record.process.to_le_bytes());
        buffer.push(u8::from(record.kind == TraceRecordKind::Write));
        buffer.extend(record.offset.get().to_le_bytes());
        buffer.extend(record.length.get().to_le_bytes());
        if buffer.len() >= BUFFERED_BYTES {
            hash.update(&buffer);
            buffer.clear();
        }
    }
    hash.update(&buffer);
    hex(&hash.finalize())
}

/// The name of the result of one simulation.
pub(crate) fn cell_id(trace_digest: &str, canonical_cell: &str) -> String {
    sha256([trace_digest, canonical_cell, SIMULATOR_VERSION].map(str::as_bytes))
}
