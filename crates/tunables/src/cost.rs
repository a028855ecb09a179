//! What a setting costs in memory, told before it is spent.

use host::{Root, page_size, parse_meminfo};
use units::{Bytes, WINDOWS_PER_STREAM, read_ahead_memory};

use crate::registry::stripe_cache_memory;
use crate::{Setting, TunableError, TunableScope, Value};

/// The share of the available memory that one setting may take.
pub const LARGEST_SHARE: f64 = 0.25;

/// How many streams are read at once where the user does not say; `apply --streams` overrides it.
pub const DEFAULT_STREAMS: u32 = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCost {
    pub memory: Bytes,
    /// How that comes about: `4 members × 8192 stripes × a page`.
    pub explained: String,
}

/// The memory that a setting takes, where that can be told: of a stripe cache always and at once,
/// of read-ahead when this many streams are read, of `dirty_bytes` when that much is written.
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
            let explained = format!("{stripes} stripes × members × a page, at once and for good");
            Some(MemoryCost { memory, explained })
        }
        "read_ahead" => {
            let window = value.bytes()?;
            let memory = read_ahead_memory(window, u64::from(streams));
            let explained = format!("{WINDOWS_PER_STREAM} windows × {window} × {streams} streams");
            Some(MemoryCost { memory, explained })
        }
        "dirty_bytes" => {
            let explained = "while that much waits to be written".to_owned();
            Some(MemoryCost { memory: value.bytes()?, explained })
        }
        _ => None,
    }
}

/// Refuses what would take more than [`LARGEST_SHARE`] of the memory that is available, over what
/// it takes now.
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
