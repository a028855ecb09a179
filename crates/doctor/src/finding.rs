//! A problem that was found, and the proposed remedy.

use serde::Serialize;
use units::Kib;

use crate::Evidence;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// For information.
    Notice,
    /// Costs time or memory, or differs from what an owner requests.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The finding's name in JSON.
    pub id: &'static str,
    pub severity: Severity,
    pub title: String,
    pub why: String,
    pub evidence: Vec<Evidence>,
    pub remedy: Remedy,
    /// Commands that give more information; they change no setting permanently.
    pub fixes: Vec<Fix>,
}

/// What a finding proposes. The plan weighs the proposals of all findings on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remedy {
    Set(Proposal),
    /// Set at most this value.
    AtMost(Proposal),
    /// Set this value unless an owner or another finding decides.
    Refine(Proposal),
    /// Keep the value after a reboot.
    Persist,
    /// Also set the value for files that are already open.
    OpenFiles,
    /// Change the owner's file.
    EditOwner,
    Measure,
}

/// A value that a finding proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    #[serde(rename = "read_ahead_kib")]
    pub value: Kib,
    /// The basis of the value; the strongest one decides.
    pub basis: Basis,
    /// Why this value, as a phrase.
    pub reason: String,
}

/// The basis of a proposed value, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The kernel's usual value, if nothing better is known.
    Usual,
    /// A vendor's publication for software that runs here.
    Vendor,
    /// The value of another layer of the stack.
    Layer,
    /// The value in an owner's file.
    Owner,
    /// The value that the comment in an owner's file states.
    Comment,
    Memory,
}

impl Proposal {
    pub(crate) fn new(value: Kib, basis: Basis, reason: impl Into<String>) -> Self {
        Self { value, basis, reason: reason.into() }
    }
}

/// A command that gives more information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    pub what: String,
    /// The commands, to run as root unless they start with `foreread`.
    pub commands: Vec<String>,
}

impl Fix {
    pub(crate) fn new(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), commands: vec![command.into()] }
    }
}
