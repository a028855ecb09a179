//! The seek time of the arm.

/// Seek time as a function of the distance in cylinders.
#[derive(Clone, Debug)]
pub(super) enum SeekTime {
    /// `a + b √x + c x`, `x` = distance / full stroke, in nanoseconds.
    ThreePoint { a: f64, b: f64, c: f64, stroke: f64 },
    /// Measured points (distance, nanoseconds), ascending by distance; interpolated linearly, and
    /// constant beyond both ends.
    Curve(Vec<(f64, f64)>),
}

impl SeekTime {
    /// Creates a curve from a data sheet's single-track, average and full-stroke times (any unit).
    /// Over random pairs of places E[√x] = 8/15 and E[x] = 1/3, which determines `b` and `c`.
    pub(super) fn three_point(track: f64, average: f64, full: f64, stroke: f64) -> Self {
        let b = (average - track - (full - track) / 3.0) / (8.0 / 15.0 - 1.0 / 3.0);
        Self::ThreePoint { a: track, b, c: full - track - b, stroke: stroke.max(1.0) }
    }

    /// Creates a curve from measured points, in any order.
    pub(super) fn curve(mut points: Vec<(f64, f64)>) -> Self {
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        Self::Curve(points)
    }

    /// Returns a lower bound for distances of at least one cylinder.
    pub(super) fn least(&self) -> f64 {
        let least = match self {
            // With a positive root term the curve is concave, so its minimum is at one end.
            Self::ThreePoint { b, stroke, .. } if *b >= 0.0 => {
                self.time(1.0).min(self.time(*stroke))
            }
            Self::ThreePoint { .. } => 0.0,
            Self::Curve(points) => {
                points.iter().map(|point| point.1).reduce(f64::min).unwrap_or(0.0)
            }
        };
        least.max(0.0)
    }

    /// Returns the time for a distance; zero below one cylinder.
    #[inline]
    pub(super) fn time(&self, distance: f64) -> f64 {
        if distance < 1.0 {
            return 0.0;
        }
        let time = match self {
            Self::ThreePoint { a, b, c, stroke } => {
                let x = (distance / stroke).min(1.0);
                a + b * x.sqrt() + c * x
            }
            Self::Curve(points) => between(points, distance),
        };
        time.max(0.0)
    }
}

/// Interpolates linearly between the neighbours of `x`; constant beyond the ends.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < x);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(&(x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some(&(_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_points_are_met() {
        let seek = SeekTime::three_point(0.8, 8.5, 16.0, 10_000.0);
        assert!((seek.time(10_000.0) - 16.0).abs() < 1e-9);
        assert!((seek.time(1.0) - 0.8).abs() < 0.3);
        // The mean over random pairs of places; the density of the distance x is 2 (1 − x).
        let steps = 10_000;
        let mean: f64 = (0..steps)
            .map(|step| {
                let x = (f64::from(step) + 0.5) / f64::from(steps);
                2.0 * (1.0 - x) * seek.time(x * 10_000.0) / f64::from(steps)
            })
            .sum();
        assert!((mean - 8.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn nothing_takes_less_than_the_least() {
        let data_sheet = SeekTime::three_point(0.8, 8.5, 16.0, 10_000.0);
        let slow_start = SeekTime::three_point(5.0, 8.5, 16.0, 10_000.0);
        let falling = SeekTime::three_point(9.0, 8.5, 8.0, 10_000.0);
        let measured = SeekTime::curve(vec![(1.0, 1.0), (100.0, 0.7), (200.0, 4.0)]);
        for seek in [data_sheet, slow_start, falling, measured] {
            let times = (1..=11_000).map(|distance| seek.time(f64::from(distance)));
            assert!(times.into_iter().all(|time| time >= seek.least() - 1e-9), "{seek:?}");
        }
    }

    #[test]
    fn a_measured_curve_is_interpolated() {
        let seek = SeekTime::curve(vec![(100.0, 3.0), (1.0, 1.0), (200.0, 4.0)]);
        assert_eq!(seek.time(0.0), 0.0);
        assert_eq!(seek.time(1.0), 1.0);
        assert_eq!(seek.time(150.0), 3.5);
        assert_eq!(seek.time(1e9), 4.0);
        assert_eq!(SeekTime::curve(Vec::new()).time(5.0), 0.0);
    }
}
