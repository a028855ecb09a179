//! The time budget of a study.

use std::num::ParseFloatError;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::trial::Trial;

/// Maximum budget in minutes: a week. A larger number is probably a typing error.
const MAX_MINUTES: f64 = 10_080.0;

/// The time that a study may spend in trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub time: Duration,
}

/// An invalid budget: it must be a number of minutes above zero and up to a week.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BudgetError {
    #[error("{0:?} is not a number of minutes: write it without a unit, as in 5 or 0.5")]
    Number(String, #[source] ParseFloatError),
    /// Zero, negative, or more than a week.
    #[error("{0} minutes: must be more than 0 and at most {MAX_MINUTES} (a week)")]
    Range(f64),
}

impl Budget {
    pub fn minutes(minutes: f64) -> Result<Self, BudgetError> {
        if minutes > 0.0 && minutes <= MAX_MINUTES {
            Ok(Self { time: Duration::from_secs_f64(minutes * 60.0) })
        } else {
            Err(BudgetError::Range(minutes))
        }
    }

    /// Returns whether one more trial of average length would exceed the budget.
    pub(crate) fn is_spent(self, trials: &[Trial]) -> bool {
        would_exceed(trials, 1, self.time.as_secs_f64())
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    /// Parses minutes, as in `4` or `0.5`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let minutes = text.trim().parse().map_err(|e| BudgetError::Number(text.to_owned(), e))?;
        Self::minutes(minutes)
    }
}

/// Returns whether `more` average trials would exceed `seconds`; false before the first trial.
pub(crate) fn would_exceed(trials: &[Trial], more: usize, seconds: f64) -> bool {
    let spent = spent(trials);
    let each = spent / trials.len().max(1) as f64;
    spent > 0.0 && spent + each * more as f64 > seconds
}

/// Returns the wall-clock time of all trials in seconds, including disturbed ones.
pub(crate) fn spent(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| trial.figures.measured_seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_read_and_slips_are_not() {
        assert_eq!("0.5".parse(), Ok(Budget { time: Duration::from_secs(30) }));
        assert_eq!(" 4 ".parse(), Ok(Budget { time: Duration::from_secs(240) }));
        for slip in ["0", "-1", "nan", "inf", "1e9"] {
            assert!(matches!(slip.parse::<Budget>(), Err(BudgetError::Range(_))), "{slip}");
        }
        let slip = "5min".parse::<Budget>().unwrap_err().to_string();
        assert!(slip.ends_with("without a unit, as in 5 or 0.5"), "{slip}");
        for slip in ["", "4m", "four"] {
            assert!(matches!(slip.parse::<Budget>(), Err(BudgetError::Number(..))), "{slip}");
        }
    }
}
