//! Tunables that are created when first named and live as long as the process. Like those of the
//! tables, they are compared, ordered and stored by reference.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::tunable::Tunable;

/// Maximum number of names, more than any command line or journal has. Further names are refused,
/// so that they cannot exhaust the memory.
const MAX_INTERNED: usize = 4096;

/// Keeps a text for the rest of the process.
pub(super) fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

pub(super) struct InternedTunables(Mutex<BTreeMap<&'static str, &'static Tunable>>);

impl InternedTunables {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns the tunable with this name, created by `make` if it is new; `None` if refused.
    pub(super) fn get(
        &self,
        name: &str,
        make: impl FnOnce(&'static str) -> Tunable,
    ) -> Option<&'static Tunable> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tunable) = known.get(name) {
            return Some(*tunable);
        }
        if known.len() >= MAX_INTERNED {
            return None;
        }
        let name = leak(name.to_owned());
        let tunable: &'static Tunable = Box::leak(Box::new(make(name)));
        known.insert(name, tunable);
        Some(tunable)
    }

    /// Returns the tunable with this name, if it exists.
    pub(super) fn known(&self, name: &str) -> Option<&'static Tunable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}
