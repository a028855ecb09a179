//! Time of a reader, finer than that of the device: a byte costs less than a nanosecond.

use units::Nanos;

/// Picoseconds since the start, up to 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Picos(u64);

impl Picos {
    pub(super) fn of(nanos: Nanos) -> Self {
        Self(nanos.get().saturating_mul(1000))
    }

    /// Returns a cost given in nanoseconds; NaN and negative values cost nothing.
    pub(super) fn cost(nanos: f64) -> Self {
        Self((nanos * 1000.0).round() as u64)
    }

    pub(super) fn get(self) -> u64 {
        self.0
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time in nanoseconds, rounded up.
    pub(super) fn nanos(self) -> Nanos {
        Nanos::new(self.0.saturating_add(999) / 1000)
    }
}
