//! A token bucket, as a function of time.

use units::Nanos;

/// A token bucket with a constant rate, which accumulates up to `depth` while idle.
///
/// The state is one point in time, at which a bucket that was empty at the start would have passed
/// all tokens taken so far. So there are no events and no drift.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    nanos_per_token: f64,
    depth: u64,
    tokens_spent_until_ns: u64,
}

impl Bucket {
    /// Creates a full bucket; `None` if the rate is 0, which means no limit.
    pub(super) fn new(rate: f64, depth: f64) -> Option<Self> {
        let nanos_per_token = 1e9 / rate;
        let depth = (depth.max(0.0) * nanos_per_token).floor() as u64;
        (rate > 0.0).then_some(Self { nanos_per_token, depth, tokens_spent_until_ns: 0 })
    }

    /// Takes tokens at `now` or at the earliest time afterwards, and returns that time. Requests
    /// are served in order.
    pub(super) fn take(&mut self, now: Nanos, tokens: f64) -> Nanos {
        let span = (tokens * self.nanos_per_token).ceil() as u64;
        // Tokens that have accumulated for longer than the depth allows are lost.
        self.tokens_spent_until_ns = self.tokens_spent_until_ns.max(now.get()).saturating_add(span);
        now.max(Nanos::new(self.tokens_spent_until_ns.saturating_sub(self.depth)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut bucket = Bucket::new(100.0, 50.0).unwrap();
        let times: Vec<Nanos> = (0..150).map(|_| bucket.take(Nanos::ZERO, 1.0)).collect();
        assert_eq!(times[49], Nanos::ZERO);
        assert_eq!(times[50], Nanos::from_millis(10));
        assert_eq!(times[149], Nanos::from_millis(1000));
    }

    #[test]
    fn it_fills_while_nobody_asks_but_not_over_its_depth() {
        let mut bucket = Bucket::new(100.0, 10.0).unwrap();
        bucket.take(Nanos::ZERO, 10.0);
        let later = Nanos::from_secs(60);
        assert_eq!(bucket.take(later, 10.0), later);
        assert_eq!(bucket.take(later, 1.0), later + Nanos::from_millis(10));
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert!(Bucket::new(0.0, 5.0).is_none());
    }
}
