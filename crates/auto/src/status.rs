//! What the daemon tells of itself: a file for `auto status`, and metrics for Prometheus.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Effect;

/// Lines that are kept for `auto status`.
const KEPT: usize = 20;

/// What is known of a device, and done for its open files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// The shortest mean time of a read that was seen.
    pub latency_ms: f64,
    /// The best rate that was seen.
    pub rate_mib_s: f64,
    /// The most reads that were under way, on average over an interval.
    pub parallelism: f64,
    /// Open files that are followed.
    pub followed: usize,
}

/// What the daemon tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The form of this.
    pub schema_version: u32,
    /// The daemon.
    pub pid: u32,
    /// When it began.
    pub since_unix_s: u64,
    /// What it does: `acting`, `advising`, or why it does not act.
    pub state: String,
    /// By bdi.
    pub devices: BTreeMap<String, DeviceStatus>,
    /// Windows set.
    pub windows_set: u64,
    /// Open files that it could not, or must not, touch.
    pub refused: u64,
    /// Open files that had a window by accident and were mended.
    pub mended: u64,
    /// What it had read ahead by itself.
    pub prefetched_bytes: u64,
    /// Misses of which the rest of their run was read at once.
    #[serde(default)]
    pub answered_runs: u64,
    /// Orders to read ahead, and misses to be answered, that were dropped as there were too many.
    #[serde(default)]
    pub dropped: u64,
    /// Events of the kernel that were lost.
    pub lost_events: u64,
    /// How much it helps, if it is tried.
    pub effect: Option<StatusEffect>,
    /// The last decisions, the newest last.
    pub decisions: VecDeque<String>,
}

/// [`Effect`] as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusEffect {
    /// Pairs of slots.
    pub pairs: usize,
    /// How many times as much readers got with treatment.
    pub ratio: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Effect> for StatusEffect {
    fn from(effect: Effect) -> Self {
        let Effect { pairs, ratio, low, high } = effect;
        Self { pairs, ratio, low, high }
    }
}

impl Status {
    /// One that has done nothing yet.
    pub fn new(pid: u32, since_unix_s: u64, state: &str) -> Self {
        Self { schema_version: 1, pid, since_unix_s, state: state.to_owned(), ..Self::default() }
    }

    /// Keeps a decision.
    pub fn decided(&mut self, line: &str) {
        if self.decisions.len() == KEPT {
            self.decisions.pop_front();
        }
        self.decisions.push_back(line.trim_end().to_owned());
    }

    /// In the text format of Prometheus, in base units.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, rows: &[(String, f64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP foreread_{name} {help}\n# TYPE foreread_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "foreread_{name}{labels} {value}");
            }
        };
        let plain = |value: f64| vec![(String::new(), value)];
        let count = |value: u64| plain(value as f64);
        one(
            "acting",
            "gauge",
            "1 while windows are set, 0 while foreread only watches",
            &plain(f64::from(u8::from(self.state == "acting"))),
        );
        one("start_time_seconds", "gauge", "When it began", &count(self.since_unix_s));
        one("windows_set_total", "counter", "Windows set on open files", &count(self.windows_set));
        one(
            "refused_total",
            "counter",
            "Open files that could not or must not be touched",
            &count(self.refused),
        );
        one("mended_total", "counter", "Windows had by accident and mended", &count(self.mended));
        one(
            "prefetched_bytes_total",
            "counter",
            "Bytes asked for beyond the kernel's read-ahead",
            &count(self.prefetched_bytes),
        );
        one(
            "answered_runs_total",
            "counter",
            "Misses of which the rest of their run was read at once",
            &count(self.answered_runs),
        );
        one(
            "dropped_total",
            "counter",
            "Orders to read ahead, and misses to be answered, dropped as there were too many",
            &count(self.dropped),
        );
        one("lost_events_total", "counter", "Events of the kernel lost", &count(self.lost_events));
        let by_device = |of: fn(&DeviceStatus) -> f64| -> Vec<(String, f64)> {
            let row = |(bdi, status)| (format!("{{bdi=\"{bdi}\"}}"), of(status));
            self.devices.iter().map(row).collect()
        };
        one(
            "device_latency_seconds",
            "gauge",
            "The shortest mean time of a read that was seen",
            &by_device(|status| status.latency_ms / 1e3),
        );
        one(
            "device_rate_bytes_per_second",
            "gauge",
            "The best rate of reading that was seen",
            &by_device(|status| status.rate_mib_s * Bytes::from_mib(1).get() as f64),
        );
        one(
            "open_files",
            "gauge",
            "Open files that are followed",
            &by_device(|status| status.followed as f64),
        );
        if let Some(effect) = self.effect {
            let of = |bound: &str, value| (format!("{{bound=\"{bound}\"}}"), value);
            let rows = [of("median", effect.ratio), of("low", effect.low), of("high", effect.high)];
            one("effect_ratio", "gauge", "What readers get with treatment over without", &rows);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_type_each_and_base_units() {
        let mut status = Status::new(7, 1_700_000_000, "acting");
        let device = DeviceStatus { latency_ms: 8.0, rate_mib_s: 2.0, ..DeviceStatus::default() };
        status.devices.insert("8:0".to_owned(), device);
        status.effect = Some(StatusEffect { pairs: 8, ratio: 2.0, low: 1.5, high: 2.5 });
        let text = status.metrics();
        assert!(text.contains("foreread_device_latency_seconds{bdi=\"8:0\"} 0.008\n"), "{text}");
        assert!(text.contains("foreread_device_rate_bytes_per_second{bdi=\"8:0\"} 2097152\n"));
        assert!(text.contains("foreread_acting 1\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }

    #[test]
    fn a_status_comes_back_as_it_was_written() {
        let mut status = Status::new(7, 1, "acting");
        (0..30).for_each(|number| status.decided(&format!("decision {number}\n")));
        assert_eq!(status.decisions.len(), KEPT);
        assert_eq!(status.decisions.back().map(String::as_str), Some("decision 29"));
        let text = serde_json::to_string(&status).expect("json");
        assert_eq!(serde_json::from_str::<Status>(&text).expect("a status"), status);
    }
}
