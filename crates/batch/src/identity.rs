//! Identifiers derived from content.

use sha2::{Digest, Sha256};

/// Package version and a hash of the simulator's source. Simulators that may produce different
/// results never have the same version.
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

/// Returns the ID of the result of one simulation. `cell_digest` is `SimCell::digest`, which a plan
/// computes once for all of its traces.
pub(crate) fn cell_id(trace_digest: &str, cell_digest: &str) -> String {
    sha256([trace_digest, cell_digest, SIMULATOR_VERSION].map(str::as_bytes))
}
