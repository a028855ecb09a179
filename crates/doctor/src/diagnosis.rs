//! One bdi, explained.

use std::collections::BTreeMap;

use host::owners::Claim;
use host::{BdiId, Subject};
use serde::Serialize;
use units::Kib;

use crate::finding::Finding;
use crate::{OpenWindow, Origin};

/// All that is to be said about a bdi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub subject: Subject,
    /// What to call it on a command line, in quotes where a shell needs them.
    pub on: String,
    /// Where its read-ahead came from.
    pub origin: Origin,
    /// The origins of all bdis in its stacks, its own among them.
    pub origins: BTreeMap<BdiId, Origin>,
    pub claims: Vec<Claim>,
    /// What is open on it; `None` if that could not be seen.
    pub open: Option<OpenHere>,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHere {
    /// How many regular files are open for reading through the page cache.
    pub files: usize,
    /// Those that have another window than files opened now get.
    pub outdated: Vec<OpenWindow>,
}

impl Diagnosis {
    /// Whether files are read through it: not a member of an array, whose read-ahead does not
    /// count, a vacant device, or what cannot be seen from here.
    pub fn is_read_through(&self) -> bool {
        !self.subject.vacant() && !self.subject.member && !self.subject.stacks.is_empty()
    }

    pub fn read_ahead(&self) -> Kib {
        self.subject.read_ahead
    }
}
