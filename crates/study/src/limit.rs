//! What a run's storage cannot exceed, where that is known.

use units::BytesPerSecond;

use crate::store::Run;
use crate::target::Target;

/// The rate at which the model of a virtual disk streams at best; nothing is known of others.
pub fn limit(run: &Run) -> Option<BytesPerSecond> {
    let Target::Virtual(words) = &run.plan.target else { return None };
    let config = vdisk::Config::parse(words).ok()?;
    Some(config.model.peak().throughput)
}
