//! RAID levels, and the policies that select the copy to read.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Raid0,
    Raid1,
    /// Stripes over mirrored pairs.
    Raid10,
    /// Stripes with one parity chunk in each row.
    Raid5,
    /// Stripes with two parity chunks in each row.
    Raid6,
}

/// The number of members in each role, for one row of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMembers {
    pub(crate) data: u64,
    pub(crate) parity: u64,
    /// Members that hold copies of the same column.
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

/// The policy that selects the copy of a mirror to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPolicy {
    Primary,
    /// The copy with the fewest pending requests; of equals, the one with the nearer head. The best
    /// fit to the PERC 6 of the 2008 posts.
    #[default]
    ShortestQueue,
    RoundRobin,
    /// All copies: each request is divided among them.
    Split,
    /// `load` of FreeBSD's gmirror: a running mean of pending requests, with a bonus for a head
    /// exactly at the offset and a smaller one for a head within 1 MiB.
    GmirrorLoad,
    /// Linux md: the copy whose last request ended at this offset; otherwise an idle one; otherwise
    /// the nearest one.
    Md,
    /// The fast path of Linux's megaraid_sas: the nearest copy, unless it has more than four
    /// pending requests more than another.
    MegaraidArm,
    /// The first copy for even rows of chunks, the second for odd ones.
    AlternateRows,
}
