//! The signals that a kernel supports, and how they are received.

use serde::{Deserialize, Serialize};

use crate::ObserveError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// A tracepoint, with the types of its arguments.
    TpBtf,
    Fentry,
    /// A kprobe at the entry of the function: slower, and for kernels whose architecture has no
    /// function entries for BPF.
    Kprobe,
    Missing,
}

/// Environment variable with the only mechanism that may be used, for signals that support it.
const MECHANISM: &str = "FOREREAD_PROBES";

impl Rung {
    /// Returns the mechanism that the user named, if any.
    pub(crate) fn named() -> Result<Option<Self>, ObserveError> {
        let Some(value) = std::env::var_os(MECHANISM).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        match value.to_str() {
            Some("tp-btf") => Ok(Some(Self::TpBtf)),
            Some("fentry") => Ok(Some(Self::Fentry)),
            Some("kprobe") => Ok(Some(Self::Kprobe)),
            _ => Err(ObserveError::Mechanism { value: value.to_string_lossy().into_owned() }),
        }
    }
}

/// A signal, and how it is received on this kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub name: String,
    pub rung: Rung,
    /// Why no better rung works, in the words of the kernel or the loader.
    pub refused: Vec<String>,
}
