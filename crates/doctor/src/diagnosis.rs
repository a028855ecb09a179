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
    /// The target's name on a command line, quoted if necessary.
    pub on: String,
    /// The origin of the bdi's read-ahead.
    pub origin: Origin,
    /// The origins of the read-ahead of all bdis in the subject's stacks, including this one.
    pub origins: BTreeMap<BdiId, Origin>,
    pub claims: Vec<Claim>,
    /// Open files on the bdi; `None` if they could not be listed.
    pub open: Option<OpenHere>,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHere {
    /// Number of regular files that are open for reading through the page cache.
    pub files: usize,
    /// The files whose window differs from that of newly opened files.
    pub outdated: Vec<OpenWindow>,
}

impl Diagnosis {
    /// Returns whether files are read through this bdi. False for a member of an array (its
    /// read-ahead has no effect), an empty device, and a bdi without a visible device or mount.
    pub fn is_read_through(&self) -> bool {
        !self.subject.vacant() && !self.subject.member && !self.subject.stacks.is_empty()
    }

    pub fn read_ahead(&self) -> Kib {
        self.subject.read_ahead
    }
}
