//! Claims of owners on a device, and the one that decides.

use std::collections::BTreeMap;

use host::owners::{Certainty, Claim, OwnerKind, Wanted};
use units::Kib;

use crate::HostSnapshot;

/// The effective claim of each owner: the last of several.
pub(crate) fn last_of_each(claims: &[Claim]) -> Vec<&Claim> {
    let mut last: BTreeMap<OwnerKind, &Claim> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.certainty == Certainty::Sure) {
        last.insert(claim.owner, claim);
    }
    last.into_values().collect()
}

/// The claim that decides after a boot: that of the last owner to act which names a value.
pub(crate) fn last_word(claims: &[Claim]) -> Option<&Claim> {
    last_of_each(claims).into_iter().rev().find(|claim| claim.wanted.kib().is_some())
}

/// Whether `value` is what the claim would set.
pub(crate) fn holds(snapshot: &HostSnapshot, claim: &Claim, value: Kib) -> bool {
    match claim.wanted {
        Wanted::Exactly(kib) => snapshot.floored(kib) == value,
        Wanted::AtLeast(kib) => snapshot.floored(kib) <= value,
        Wanted::AtMost(kib) => snapshot.floored(kib) >= value,
        Wanted::Times(_) | Wanted::Unknown => true,
    }
}
