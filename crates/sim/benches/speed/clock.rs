//! Processor time, which does not depend on the other load of the machine.

use rustix::time::{ClockId, clock_gettime};

pub fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the processor time of children that have exited, with a resolution of 0.01 s.
pub fn children_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> =
        after_name.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0.0)).collect();
    // User and system time of children are fields 16 and 17 of the line.
    fields.get(13).zip(fields.get(14)).map_or(0.0, |(user, system)| (user + system) / 100.0)
}
