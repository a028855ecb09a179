//! A problem, and the proposed remedy.

use serde::Serialize;
use units::Kib;

use crate::Evidence;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Only information.
    Notice,
    /// The setting costs time or memory, or differs from an owner's claim.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The finding's identifier in JSON.
    pub id: &'static str,
    pub severity: Severity,
    pub title: String,
    pub why: String,
    pub evidence: Vec<Evidence>,
    pub remedy: Remedy,
    /// Commands that provide more information; they change no setting permanently.
    pub fixes: Vec<Fix>,
}

/// The remedy that a finding proposes. The plan weighs the proposals of all findings on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remedy {
    Set(Proposal),
    /// Set this value or a smaller one.
    AtMost(Proposal),
    /// Set this value unless an owner or another finding requires another.
    Refine(Proposal),
    /// Make the value survive a reboot.
    Persist,
    /// Set the value for files that are already open, too.
    OpenFiles,
    /// Edit the owner's file.
    EditOwner,
    Measure,
}

/// A value that a finding proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    #[serde(rename = "read_ahead_kib")]
    pub value: Kib,
    /// The basis of the value; the plan chooses the proposal with the strongest basis.
    pub basis: Basis,
    /// The reason for this value, as a phrase.
    pub reason: String,
}

/// The basis of a proposed value, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The kernel's usual value, for lack of a better one.
    Usual,
    /// A recommendation of the vendor of software that runs here.
    Vendor,
    /// The value of another layer of the storage stack.
    Layer,
    /// The value in an owner's file.
    Owner,
    /// The value that a comment in an owner's file states.
    Comment,
    Memory,
}

impl Proposal {
    pub(crate) fn new(value: Kib, basis: Basis, reason: impl Into<String>) -> Self {
        Self { value, basis, reason: reason.into() }
    }
}

/// A command that provides more information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    pub what: String,
    /// The commands; they need root unless they start with `foreread`.
    pub commands: Vec<String>,
}

impl Fix {
    pub(crate) fn new(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), commands: vec![command.into()] }
    }
}
