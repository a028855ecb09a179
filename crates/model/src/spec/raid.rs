//! How the members of an array are combined, and which copy is read.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Raid0,
    Raid1,
    /// Stripes over pairs that hold the same.
    Raid10,
    /// Stripes with one parity chunk in each row.
    Raid5,
    /// Stripes with two parity chunks in each row.
    Raid6,
}

/// How many members of each row of an array hold what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMembers {
    pub(crate) data: u64,
    pub(crate) parity: u64,
    /// Members that hold the same column.
    pub(crate) copies: u64,
}

impl Level {
    pub(crate) fn row_members(self, members: u64) -> RowMembers {
        let (data, parity, copies) = match self {
            Self::Raid0 => (members, 0, 1),
            Self::Raid1 => (1, 0, members),
            Self::Raid10 => (members / 2, 0, 2),
            Self::Raid5 => (members - 1, 1, 1),
            Self::Raid6 => (members - 2, 2, 1),
        };
        RowMembers { data, parity, copies }
    }
}

/// Which copy of a mirror is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPolicy {
    Primary,
    /// The one with the fewest requests pending, the nearer head if they are equal. The best fit
    /// to the PERC 6 of the 2008 posts.
    #[default]
    ShortestQueue,
    RoundRobin,
    /// Each request is divided among all.
    Split,
    /// `load` of FreeBSD's gmirror: a running mean of the requests pending, with a bonus for a
    /// head that is exactly there and a smaller one for a head within 1 MiB.
    GmirrorLoad,
    /// Linux md: the one whose last request ended here; else an idle one; else the nearest.
    Md,
    /// The fast path of Linux's megaraid_sas: the nearest, unless it has over four more pending.
    MegaraidArm,
    /// Even rows of chunks from the first, odd ones from the second.
    AlternateRows,
}
