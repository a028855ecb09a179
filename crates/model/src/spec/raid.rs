//! How the members of an array are combined, and which copy is read.

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

/// The roles of the members in each row of an array.
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
    /// The copy with the fewest requests pending; the nearer head if they are equal. The best fit
    /// to the PERC 6 of the 2008 posts.
    #[default]
    ShortestQueue,
    RoundRobin,
    /// Each request is divided among all copies.
    Split,
    /// `load` of FreeBSD's gmirror: a running mean of pending requests, with a bonus for a head
    /// exactly at the offset and a smaller one for a head within 1 MiB.
    GmirrorLoad,
    /// Linux md: the copy whose last request ended here; otherwise an idle one; otherwise the
    /// nearest.
    Md,
    /// The fast path of Linux's megaraid_sas: the nearest copy, unless it has more than four more
    /// requests pending.
    MegaraidArm,
    /// Even rows of chunks from the first, odd ones from the second.
    AlternateRows,
}
