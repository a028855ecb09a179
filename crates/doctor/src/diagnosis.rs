//! The diagnosis of one bdi.

use std::collections::BTreeMap;

use host::owners::Claim;
use host::{BdiId, Subject};
use serde::Serialize;
use units::Kib;

use crate::finding::Finding;
use crate::{OpenWindow, Origin};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub subject: Subject,
    /// Its name on a command line, quoted if necessary.
    pub on: String,
    /// The origin of its read-ahead.
    pub origin: Origin,
    /// The origins for all bdis in its stacks, including its own.
    pub origins: BTreeMap<BdiId, Origin>,
    pub claims: Vec<Claim>,
    /// Open files on it; `None` if they could not be listed.
    pub open: Option<OpenHere>,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHere {
    /// Number of regular files that are open for reading through the page cache.
    pub files: usize,
    /// Those with another window than newly opened files.
    pub outdated: Vec<OpenWindow>,
}

impl Diagnosis {
    /// Whether files are read through it: not a member of an array, whose read-ahead has no effect,
    /// an empty device, or one that is not visible here.
    pub fn is_read_through(&self) -> bool {
        !self.subject.vacant() && !self.subject.member && !self.subject.stacks.is_empty()
    }

    pub fn read_ahead(&self) -> Kib {
        self.subject.read_ahead
    }
}
