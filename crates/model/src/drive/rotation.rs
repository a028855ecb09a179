//! The platter: the position of the heads and the time at which a place passes, in closed form.
//!
//! Linear density is about constant over a platter, so the media rate is proportional to the
//! radius, and in block order `rate(x) = sqrt(Ro² − x (Ro² − Ri²))`, `x` = offset / capacity. If
//! the skew of tracks and cylinders hides their switches, sequential reading is continuous in
//! angle, and the number of rotations from block 0 is the integral of the inverse rate. So the
//! model needs no table of tracks: a place is one number, its *turns*, whose fraction is the angle
//! and whose integer part is the track. Missed revolutions follow from the formula.

/// A place on the platter, in rotations of continuous reading from block 0.
pub(super) type Turns = f64;

/// The geometry and rotation of a platter.
#[derive(Clone, Debug)]
pub(super) struct Platter {
    capacity: f64,
    /// Outer media rate in bytes per nanosecond; difference of the squared outer and inner rates.
    outer: f64,
    squares: f64,
    /// Time of a rotation in whole nanoseconds, so that the angle at any time is exact.
    turn_ns: u64,
    turn: f64,
    /// The angle at time zero, in rotations.
    phase: f64,
    cylinders_per_turn: f64,
}

/// A float of this size has no bits for a fraction (1.5 × 2^52).
const INTEGER_MAGNITUDE: f64 = 6_755_399_441_055_744.0;

/// [`f64::floor`] without a call or a conversion, for magnitudes below 2^51, as all places and
/// angles have. Adding [`INTEGER_MAGNITUDE`] rounds to a whole number, up or down.
#[inline]
pub(super) fn floor(x: f64) -> f64 {
    let whole = (x + INTEGER_MAGNITUDE) - INTEGER_MAGNITUDE;
    if whole > x { whole - 1.0 } else { whole }
}

/// Maximum rounding error of the angle of a place that just passes under the head, in rotations:
/// about ten nanoseconds. Without this margin, a contiguous command would sometimes lose a
/// revolution.
const ROUNDING_TURNS: f64 = 1e-6;

impl Platter {
    /// Creates a platter with one cylinder per track.
    pub(super) fn new(capacity: u64, rpm: f64, edge_mb_s: [f64; 2], phase: f64) -> Self {
        let [outer, inner] = edge_mb_s.map(|rate| rate * 1e-3);
        let turn_ns = (60e9 / rpm).round().max(1.0) as u64;
        Self {
            capacity: (capacity as f64).max(1.0),
            outer,
            squares: outer * outer - inner * inner,
            turn_ns,
            turn: turn_ns as f64,
            phase,
            cylinders_per_turn: 1.0,
        }
    }

    /// Sets the number of cylinders, which are the arm's steps from edge to edge.
    pub(super) fn with_cylinders(mut self, cylinders: f64) -> Self {
        self.cylinders_per_turn = cylinders / self.turns(self.capacity as u64).max(1e-9);
        self
    }

    /// Returns the number of tracks: the rotations from block 0 to the end.
    pub(super) fn tracks(&self) -> f64 {
        self.turns(self.capacity as u64)
    }

    #[inline]
    fn rate(&self, offset: f64) -> f64 {
        let x = (offset / self.capacity).min(1.0);
        (self.outer * self.outer - x * self.squares).max(0.0).sqrt()
    }

    /// Returns the place of a byte. (The usual form `k (Ro − rate)` divides by zero if both edges
    /// are equally fast; this is an equivalent expression.)
    #[inline]
    pub(super) fn turns(&self, offset: u64) -> Turns {
        let offset = offset as f64;
        2.0 * offset / (self.turn * (self.outer + self.rate(offset)))
    }

    /// Returns the byte at a place; the inverse of [`turns`](Self::turns).
    #[inline]
    pub(super) fn offset_at(&self, place: Turns) -> u64 {
        let rate = self.outer - place * self.turn * self.squares / (2.0 * self.capacity);
        (place * self.turn * (self.outer + rate) / 2.0).clamp(0.0, self.capacity) as u64
    }

    #[inline]
    pub(super) fn cylinder(&self, place: Turns) -> f64 {
        floor(place * self.cylinders_per_turn)
    }

    /// Returns the time of this many rotations in nanoseconds, rounded down: a head that arrives
    /// one nanosecond early waits one nanosecond, a late one would wait for a whole revolution.
    #[inline]
    pub(super) fn span(&self, turns: f64) -> u64 {
        (turns * self.turn) as u64
    }

    /// Returns the number of rotations in a time span.
    #[inline]
    pub(super) fn turned(&self, span: u64) -> f64 {
        span as f64 / self.turn
    }

    /// Returns the part of a rotation for which a head on the track at `time` waits for `place`.
    pub(super) fn wait_turns(&self, place: Turns, time: u64) -> f64 {
        self.wait_from(place, time % self.turn_ns)
    }

    /// Returns the same for a known time since the rotation started.
    #[inline]
    pub(super) fn wait_from(&self, place: Turns, within: u64) -> f64 {
        let turns = place - self.angle(within);
        let wait = turns - floor(turns);
        if wait > 1.0 - ROUNDING_TURNS { 0.0 } else { wait }
    }

    /// Returns the angle under the heads at a time since the rotation started.
    #[inline]
    pub(super) fn angle(&self, within: u64) -> f64 {
        // Via a signed integer, because that conversion is a single instruction.
        within as i64 as f64 / self.turn + self.phase
    }

    /// Returns the time in nanoseconds until a place passes, at this angle.
    #[inline]
    pub(super) fn comes_round(&self, place: Turns, angle: f64) -> f64 {
        let turns = place - angle;
        (turns - floor(turns)) * self.turn
    }

    /// Returns the time of a rotation in nanoseconds.
    pub(super) fn turn(&self) -> f64 {
        self.turn
    }

    /// Returns the time since the rotation started, at `time`, in nanoseconds.
    pub(super) fn within_turn(&self, time: u64) -> u64 {
        time % self.turn_ns
    }

    /// Returns the time since the rotation started, `span` after it was `within`.
    #[inline]
    pub(super) fn within_after(&self, within: u64, span: u64) -> u64 {
        let sum = within.saturating_add(span);
        if sum < self.turn_ns {
            return sum;
        }
        let rest = sum - self.turn_ns;
        if rest < self.turn_ns { rest } else { rest % self.turn_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platter() -> Platter {
        Platter::new(1_000_000_000_000, 7200.0, [107.0, 52.0], 0.3).with_cylinders(100_000.0)
    }

    #[test]
    fn a_byte_is_found_again_from_its_place() {
        let platter = platter();
        for offset in [0, 1, 4096, 1 << 20, 500_000_000_000, 999_999_999_999] {
            let found = platter.offset_at(platter.turns(offset));
            assert!(found.abs_diff(offset) <= 1 << 10, "{offset} became {found}");
        }
    }

    #[test]
    fn the_rate_falls_from_the_outer_to_the_inner_edge() {
        let platter = platter();
        let rate_at = |offset: u64| {
            let piece = 1 << 24;
            piece as f64
                / platter.span(platter.turns(offset + piece) - platter.turns(offset)) as f64
        };
        assert!((rate_at(0) * 1e3 - 107.0).abs() < 0.1);
        assert!((rate_at(999_983_222_784) * 1e3 - 52.0).abs() < 0.1);
        // 68.7 % of the disk: 440/642 of the rate at the start, from a published `dd` run.
        assert!((rate_at(687_000_000_000) * 1e3 - 73.8).abs() < 1.0);
    }

    #[test]
    fn equal_edges_are_no_division_by_zero() {
        let platter = Platter::new(1 << 30, 6000.0, [50.0, 50.0], 0.0).with_cylinders(1000.0);
        let place = platter.turns(1 << 29);
        assert!((place - (1u64 << 29) as f64 / 500_000.0).abs() < 1e-6);
        assert_eq!(platter.offset_at(place), 1 << 29);
    }

    #[test]
    fn what_has_just_passed_comes_back_after_one_turn() {
        let platter = platter();
        let place = platter.turns(123_456_789);
        let wait = platter.span(platter.wait_turns(place, 1_000_000));
        assert!(platter.wait_turns(place, 1_000_000 + wait) < 1e-6);
        assert!(platter.wait_turns(place, 1_000_000 + wait + 50_000) > 0.99);
    }
}
