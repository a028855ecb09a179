//! Quantiles, bootstrap intervals, knees: the statistics behind a verdict.
