//! Metrics in the text format of Prometheus.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What a metric does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A current value.
    Gauge,
    /// A count since the start, which only grows. Its name ends in `_total`.
    Counter,
}

/// One value of a metric, with labels that distinguish it from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

impl MetricSeries {
    /// A value, in the metric's base unit, without labels.
    pub fn new(value: f64) -> Self {
        Self { labels: Vec::new(), value }
    }

    pub fn with(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.labels.push((label, text.into()));
        self
    }

    /// Formats the labels as `{bdi="8:0",storage="/"}`, or as nothing.
    fn labels(&self) -> String {
        let pairs: Vec<String> =
            self.labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escape(text))).collect();
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

/// The text of some metrics: each with a help text and a type, and no series twice. A duplicate
/// makes node_exporter reject the whole file.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    text: String,
    series: usize,
}

impl Exposition {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metric; its name gets the prefix `foreread_`. Without a series, nothing is written.
    pub fn metric(
        &mut self,
        name: &str,
        kind: MetricKind,
        help: &str,
        series: impl IntoIterator<Item = MetricSeries>,
    ) {
        let mut seen = BTreeSet::new();
        let word = match kind {
            MetricKind::Gauge => "gauge",
            MetricKind::Counter => "counter",
        };
        for one in series {
            let labels = one.labels();
            if seen.contains(&labels) {
                continue;
            }
            // Writing to a string cannot fail.
            if seen.is_empty() {
                let _ = writeln!(self.text, "# HELP foreread_{name} {help}");
                let _ = writeln!(self.text, "# TYPE foreread_{name} {word}");
            }
            let _ = writeln!(self.text, "foreread_{name}{labels} {}", one.value);
            seen.insert(labels);
        }
        self.series += seen.len();
    }

    /// Adds a metric of one value without labels.
    pub fn value(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.metric(name, kind, help, [MetricSeries::new(value)]);
    }

    /// Returns the number of series so far.
    pub fn series(&self) -> usize {
        self.series
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_stay_within_their_quotes() {
        let mut text = Exposition::new();
        let series = MetricSeries::new(1.5).with("storage", "/a\"b\\c\nd").with("bdi", "8:0");
        text.metric("read_ahead_bytes", MetricKind::Gauge, "Read-ahead", [series]);
        assert_eq!(
            text.into_text(),
            "# HELP foreread_read_ahead_bytes Read-ahead\n\
             # TYPE foreread_read_ahead_bytes gauge\n\
             foreread_read_ahead_bytes{storage=\"/a\\\"b\\\\c\\nd\",bdi=\"8:0\"} 1.5\n"
        );
    }

    #[test]
    fn a_series_is_written_once_and_an_empty_metric_not_at_all() {
        let mut text = Exposition::new();
        let one = |value| MetricSeries::new(value).with("rule", "database");
        text.metric("violation", MetricKind::Gauge, "Violations", [one(1.0), one(2.0)]);
        text.metric("empty", MetricKind::Counter, "Nothing", []);
        text.value("windows_set_total", MetricKind::Counter, "Windows", 3.0);
        assert_eq!(text.series(), 2);
        let text = text.into_text();
        assert!(text.contains("foreread_violation{rule=\"database\"} 1\n"), "{text}");
        assert!(!text.contains("empty") && !text.contains("} 2"), "{text}");
        assert!(text.ends_with(
            "# TYPE foreread_windows_set_total counter\nforeread_windows_set_total 3\n"
        ));
    }
}
