//! Read policies of mirrors: which copy to read.
//!
//! The policy determines whether one stream reaches the rate of one member or of several, and
//! whether members receive contiguous runs or fragments. The policies are those of known products.

use crate::spec::ReadPolicy;

/// The state of a member, for the policies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskArm {
    /// Number of requests in flight.
    pub(super) pending: u64,
    pub(super) last: u64,
    /// gmirror's running mean of the load, in 256ths of a request.
    load: i64,
}

/// The weight of one request in gmirror's load.
const LOAD_SCALE: i64 = 256;
const NEAR_BYTES: u64 = 1 << 20;
/// With megaraid_sas, the nearest member may have this many more requests than another.
const ARM_PENDING: u64 = 4;

impl DiskArm {
    fn distance(&self, offset: u64) -> u64 {
        self.last.abs_diff(offset)
    }
}

impl ReadPolicy {
    /// Returns the index in `arms` of the copy to read. `turn` is the latest round-robin choice.
    /// (The array divides a `Split` request before calling this.)
    pub(super) fn choose(
        self,
        arms: &[DiskArm],
        offset: u64,
        chunk: u64,
        turn: &mut usize,
    ) -> usize {
        let nearest = |arms: &[DiskArm]| least(arms, |arm| arm.distance(offset));
        match self {
            Self::Primary => 0,
            Self::ShortestQueue => least(arms, |arm| (arm.pending, arm.distance(offset))),
            Self::RoundRobin | Self::Split => {
                *turn = (*turn + 1) % arms.len().max(1);
                *turn
            }
            Self::GmirrorLoad => gmirror(arms, offset),
            Self::Md => {
                let following = arms.iter().position(|arm| arm.last == offset);
                let idle = || arms.iter().position(|arm| arm.pending == 0);
                following.or_else(idle).unwrap_or_else(|| nearest(arms))
            }
            Self::MegaraidArm => {
                let arm = nearest(arms);
                let fewest = least(arms, |arm| arm.pending);
                if arms[arm].pending > arms[fewest].pending + ARM_PENDING { fewest } else { arm }
            }
            Self::AlternateRows => (offset / chunk.max(1)) as usize % arms.len().max(1),
        }
    }

    /// Records a request to `chosen` that ends at byte `end`.
    pub(super) fn note(self, arms: &mut [DiskArm], chosen: usize, end: u64) {
        if let Some(arm) = arms.get_mut(chosen) {
            arm.pending += 1;
            arm.last = end;
        }
        if self == Self::GmirrorLoad {
            for arm in arms {
                arm.load = (arm.pending as i64 * LOAD_SCALE + arm.load * 7) / 8;
            }
        }
    }
}

/// Returns the index of the smallest key; the first if several are equal.
fn least<K: Ord>(arms: &[DiskArm], key: impl Fn(&DiskArm) -> K) -> usize {
    (0..arms.len()).min_by_key(|&index| key(&arms[index])).unwrap_or(0)
}

/// Returns the choice of `g_mirror_request_load`; the last if several are equal.
fn gmirror(arms: &[DiskArm], offset: u64) -> usize {
    let load = |arm: &DiskArm| {
        let bonus = match arm.distance(offset) {
            0 => 2 * LOAD_SCALE,
            near if near < NEAR_BYTES => LOAD_SCALE,
            _ => 0,
        };
        arm.load - bonus
    };
    (0..arms.len()).rev().min_by_key(|&index| load(&arms[index])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(pending: u64, last: u64) -> DiskArm {
        DiskArm { pending, last, load: 0 }
    }

    fn choose(policy: ReadPolicy, arms: &[DiskArm], offset: u64) -> usize {
        policy.choose(arms, offset, 1 << 16, &mut 0)
    }

    #[test]
    fn the_shorter_queue_wins_and_the_nearer_head_breaks_ties() {
        assert_eq!(choose(ReadPolicy::ShortestQueue, &[arm(1, 100), arm(0, 9999)], 100), 1);
        assert_eq!(choose(ReadPolicy::ShortestQueue, &[arm(1, 9999), arm(1, 90)], 100), 1);
        assert_eq!(choose(ReadPolicy::ShortestQueue, &[arm(1, 50), arm(1, 50)], 100), 0);
    }

    #[test]
    fn an_arm_keeps_a_stream_until_it_has_five_more_pending() {
        assert_eq!(choose(ReadPolicy::MegaraidArm, &[arm(4, 100), arm(0, 0)], 100), 0);
        assert_eq!(choose(ReadPolicy::MegaraidArm, &[arm(5, 100), arm(0, 0)], 100), 1);
    }

    #[test]
    fn md_follows_the_head_then_looks_for_an_idle_member() {
        assert_eq!(choose(ReadPolicy::Md, &[arm(0, 5), arm(9, 100)], 100), 1);
        assert_eq!(choose(ReadPolicy::Md, &[arm(1, 99), arm(0, 5)], 100), 1);
        assert_eq!(choose(ReadPolicy::Md, &[arm(1, 99), arm(1, 5)], 100), 0);
    }

    #[test]
    fn gmirror_stays_with_the_head_for_a_few_requests_and_not_for_many() {
        let run = |ahead: u64| {
            let mut arms = [arm(0, 1 << 40), arm(0, 0)];
            let mut changes = 0;
            let mut last = usize::MAX;
            for request in 0..64u64 {
                let chosen = choose(ReadPolicy::GmirrorLoad, &arms, request << 17);
                ReadPolicy::GmirrorLoad.note(&mut arms, chosen, (request + 1) << 17);
                changes += u32::from(last != usize::MAX && last != chosen);
                last = chosen;
                let oldest = least(&arms, |arm| std::cmp::Reverse(arm.pending));
                if request >= ahead {
                    arms[oldest].pending -= 1;
                }
            }
            changes
        };
        assert_eq!(run(1), 0);
        assert!(run(16) >= 2);
    }

    #[test]
    fn alternate_rows_and_turns_spread_reads() {
        let arms = [arm(0, 0), arm(0, 0)];
        assert_eq!(choose(ReadPolicy::AlternateRows, &arms, 3 << 16), 1);
        let mut turn = 0;
        let chosen: Vec<usize> =
            (0..4).map(|_| ReadPolicy::RoundRobin.choose(&arms, 0, 1, &mut turn)).collect();
        assert_eq!(chosen, [1, 0, 1, 0]);
    }
}
