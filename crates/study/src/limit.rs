//! The maximum throughput of a run's storage, if known.

use units::BytesPerSecond;

use crate::store::Run;
use crate::target::Target;

/// Returns the peak sequential rate of a virtual disk's model; `None` for other storage.
pub fn limit(run: &Run) -> Option<BytesPerSecond> {
    let Target::Virtual(spec) = &run.plan.target else { return None };
    Some(spec.get().ok()?.model.peak().throughput)
}
