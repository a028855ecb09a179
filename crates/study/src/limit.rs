//! What a run's storage cannot exceed, where that is known.

use units::BytesPerSecond;

use crate::store::Run;
use crate::target::Target;

/// The rate at which the model of a virtual disk streams at best; nothing is known of others.
pub fn limit(run: &Run) -> Option<BytesPerSecond> {
    let Target::Virtual(spec) = &run.plan.target else { return None };
    Some(spec.get().ok()?.model.peak().throughput)
}
