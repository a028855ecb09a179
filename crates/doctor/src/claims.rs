//! The claims of owners on a device, and which of them is effective.

use std::collections::BTreeMap;

use host::owners::{Certainty, Claim, OwnerKind, Wanted};
use units::Kib;

use crate::HostSnapshot;

/// Returns the effective claim of each owner, which is its last certain one.
pub(crate) fn last_of_each(claims: &[Claim]) -> Vec<&Claim> {
    let mut last: BTreeMap<OwnerKind, &Claim> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.certainty == Certainty::Sure) {
        last.insert(claim.owner, claim);
    }
    last.into_values().collect()
}

/// Returns the claim that is effective after a boot: the last owner's to act that has a value.
pub(crate) fn last_word(claims: &[Claim]) -> Option<&Claim> {
    last_of_each(claims).into_iter().rev().find(|claim| claim.wanted.kib().is_some())
}

/// Returns whether `value` satisfies the claim.
pub(crate) fn holds(snapshot: &HostSnapshot, claim: &Claim, value: Kib) -> bool {
    match claim.wanted {
        Wanted::Exactly(kib) => snapshot.floored(kib) == value,
        Wanted::AtLeast(kib) => snapshot.floored(kib) <= value,
        Wanted::AtMost(kib) => snapshot.floored(kib) >= value,
        Wanted::Times(_) | Wanted::Unknown => true,
    }
}
