//! Estimates the memory that a setting uses, before it is set.

use host::{Root, page_size, parse_meminfo};
use units::{Bytes, WINDOWS_PER_STREAM, read_ahead_memory};

use crate::registry::stripe_cache_memory;
use crate::{Setting, TunableError, TunableScope, Value};

/// The largest share of the available memory that one setting may use.
pub const LARGEST_SHARE: f64 = 0.25;

/// The default number of concurrent streams (`apply --streams`).
pub const DEFAULT_STREAMS: u32 = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCost {
    pub memory: Bytes,
    /// The calculation, as in `8192 stripes × members × a page, permanently`.
    pub explained: String,
}

/// Returns the memory that a setting uses; `None` if unknown. A stripe cache uses it permanently,
/// read-ahead with this many streams, `dirty_bytes` when that much data is dirty.
pub fn memory_cost(
    root: &Root,
    site: &TunableScope,
    setting: &Setting,
    streams: u32,
) -> Option<MemoryCost> {
    let value = &setting.value;
    match setting.tunable.name() {
        "stripe_cache_size" => {
            let memory = stripe_cache_memory(root, site, value, page_size())?;
            let stripes = value.number()?;
            let explained = format!("{stripes} stripes × members × a page, permanently");
            Some(MemoryCost { memory, explained })
        }
        "read_ahead" => {
            let window = value.bytes()?;
            let memory = read_ahead_memory(window, u64::from(streams));
            let explained = format!("{WINDOWS_PER_STREAM} windows × {window} × {streams} streams");
            Some(MemoryCost { memory, explained })
        }
        "dirty_bytes" => {
            let explained = "while that much data is dirty".to_owned();
            Some(MemoryCost { memory: value.bytes()?, explained })
        }
        _ => None,
    }
}

/// Returns an error if a setting would use more than [`LARGEST_SHARE`] of the available memory in
/// addition to what the current setting uses.
pub fn refuse_costly(
    root: &Root,
    site: &TunableScope,
    setting: &Setting,
    present: Option<&Value>,
    streams: u32,
) -> Result<(), TunableError> {
    let Some(cost) = memory_cost(root, site, setting, streams) else { return Ok(()) };
    let spent = present.and_then(|value| {
        let present = Setting { tunable: setting.tunable, value: value.clone() };
        memory_cost(root, site, &present, streams)
    });
    let needs = cost.memory.saturating_sub(spent.map_or(Bytes::ZERO, |spent| spent.memory));
    let Some(available) = available(root) else { return Ok(()) };
    if needs.get() as f64 <= available.get() as f64 * LARGEST_SHARE {
        return Ok(());
    }
    let (tunable, value) = (setting.tunable.name(), setting.value.clone());
    Err(TunableError::Memory { tunable, value, needs, available })
}

fn available(root: &Root) -> Option<Bytes> {
    let text = root.read("/proc/meminfo").ok()?;
    parse_meminfo(&text).get("MemAvailable").copied()
}
