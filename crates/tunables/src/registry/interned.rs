//! Tunables that are created when first named and live as long as the process: like those of the
//! tables, they are compared, ordered and kept by reference.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::tunable::Tunable;

/// No command line or journal names more; further ones are refused, so that names cannot fill the
/// memory.
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

    /// The tunable with this name, created by `make` if it is new.
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

    /// The tunable with this name, if it was created.
    pub(super) fn known(&self, name: &str) -> Option<&'static Tunable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}
