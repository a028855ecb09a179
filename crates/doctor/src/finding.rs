//! A problem that was found, and what is proposed about it.

use serde::Serialize;
use units::Kib;

use crate::Evidence;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Notice,
    /// Costs time or memory, or is not what an owner asked for.
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
    /// Commands that find out more; they change no setting permanently.
    pub fixes: Vec<Fix>,
}

/// What a finding proposes. The plan weighs the proposals of all findings about a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remedy {
    Set(Proposal),
    /// Give it no more than this value.
    AtMost(Proposal),
    /// Give it this value if no owner and no other finding decides.
    Refine(Proposal),
    /// Keep the value after a reboot.
    Persist,
    /// Give files that are open already the value, too.
    OpenFiles,
    /// Change what the owner's file asks for.
    EditOwner,
    Measure,
}

/// A value that a finding proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    #[serde(rename = "read_ahead_kib")]
    pub value: Kib,
    /// What it rests on; the strongest counts.
    pub basis: Basis,
    /// Why this value, in half a sentence.
    pub reason: String,
}

/// What a proposed value rests on, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The kernel's usual value, where nothing better is known.
    Usual,
    /// What a vendor publishes for software that runs here.
    Vendor,
    /// What was set on another layer of the stack.
    Layer,
    /// What an owner's file asks for.
    Owner,
    /// What the comment in an owner's file says that it means.
    Comment,
    Memory,
}

impl Proposal {
    pub(crate) fn new(value: Kib, basis: Basis, reason: impl Into<String>) -> Self {
        Self { value, basis, reason: reason.into() }
    }
}

/// Something to type that finds out more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    pub what: String,
    /// What to type, as root unless it begins with `foreread`.
    pub commands: Vec<String>,
}

impl Fix {
    pub(crate) fn new(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), commands: vec![command.into()] }
    }
}
