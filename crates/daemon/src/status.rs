//! The state of a running daemon: a file for `auto status`, and metrics for Prometheus.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use control::TreatmentEffect;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Decisions that `auto status` shows.
const MAX_DECISIONS_KEPT: usize = 20;

/// What was learnt of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// The shortest mean time of a read that was seen.
    pub latency_ms: f64,
    /// The best rate that was seen.
    pub rate_mib_s: f64,
    /// The most reads that were under way, on average over an interval.
    pub parallelism: f64,
    pub followed: usize,
}

/// The state of a running daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub schema_version: u32,
    pub pid: u32,
    pub since_unix_s: u64,
    /// `starting`, or the text of a [`LoopState`](control::LoopState).
    pub state: String,
    pub devices: BTreeMap<String, DeviceStatus>,
    pub windows_set: u64,
    /// Actions that could not, or must not, be carried out.
    pub failed_actions: u64,
    /// Open files that got a window because they were opened while the bdi was held at it, and
    /// whose window was restored.
    pub collateral_windows_restored: u64,
    pub prefetched_bytes: u64,
    /// Misses after which the rest of their run was prefetched.
    pub miss_prefetches: u64,
    /// Prefetches that were dropped because too many were queued.
    pub dropped_prefetches: u64,
    /// Events of the kernel that were lost.
    pub lost_events: u64,
    /// What the A/B test has shown.
    pub effect: Option<StatusEffect>,
    /// The last decisions, the newest last.
    pub decisions: VecDeque<String>,
}

/// [`TreatmentEffect`] as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusEffect {
    pub pairs: usize,
    /// Throughput of readers with treatment over that without.
    pub ratio: f64,
    /// The lower end of its 95 % confidence interval.
    pub low: f64,
    pub high: f64,
}

impl From<TreatmentEffect> for StatusEffect {
    fn from(effect: TreatmentEffect) -> Self {
        let TreatmentEffect { pairs, ratio, low, high } = effect;
        Self { pairs, ratio, low, high }
    }
}

/// `1.31 times the throughput without it (95 % CI 1.20–1.43, 8 pairs of slots)`
impl fmt::Display for StatusEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, ratio, low, high } = self;
        write!(
            f,
            "{ratio:.2} times the throughput without it (95 % CI {low:.2}–{high:.2}, {pairs} pairs \
             of slots)"
        )
    }
}

impl Status {
    pub const SCHEMA_VERSION: u32 = 2;

    /// The status of this process, which has just started.
    pub fn starting() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            schema_version: Self::SCHEMA_VERSION,
            pid: std::process::id(),
            since_unix_s: since.map_or(0, |since| since.as_secs()),
            state: "starting".to_owned(),
            ..Self::default()
        }
    }

    /// Adds a line to the last decisions.
    pub fn push_decision(&mut self, line: &str) {
        if self.decisions.len() == MAX_DECISIONS_KEPT {
            self.decisions.pop_front();
        }
        self.decisions.push_back(line.to_owned());
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
        let is_active = f64::from(u8::from(self.state == "acting"));
        one(
            "active",
            "gauge",
            "1 while foreread acts, 0 while it only observes",
            &plain(is_active),
        );
        one("start_time_seconds", "gauge", "When it started", &count(self.since_unix_s));
        one("windows_set_total", "counter", "Windows set on open files", &count(self.windows_set));
        one(
            "actions_failed_total",
            "counter",
            "Actions that could not or must not be carried out",
            &count(self.failed_actions),
        );
        one(
            "collateral_windows_restored_total",
            "counter",
            "Windows restored of files opened while their bdi was held at another window",
            &count(self.collateral_windows_restored),
        );
        one(
            "prefetched_bytes_total",
            "counter",
            "Bytes prefetched in addition to the kernel's read-ahead",
            &count(self.prefetched_bytes),
        );
        one(
            "miss_prefetches_total",
            "counter",
            "Misses after which the rest of their run was prefetched",
            &count(self.miss_prefetches),
        );
        one(
            "prefetches_dropped_total",
            "counter",
            "Prefetches dropped because too many were queued",
            &count(self.dropped_prefetches),
        );
        one("lost_events_total", "counter", "Kernel events lost", &count(self.lost_events));
        let by_device = |of: fn(&DeviceStatus) -> f64| -> Vec<(String, f64)> {
            let row = |(bdi, status)| (format!("{{bdi=\"{bdi}\"}}"), of(status));
            self.devices.iter().map(row).collect()
        };
        one(
            "device_latency_seconds",
            "gauge",
            "The shortest mean read time seen",
            &by_device(|status| status.latency_ms / 1e3),
        );
        one(
            "device_rate_bytes_per_second",
            "gauge",
            "The highest read rate seen",
            &by_device(|status| status.rate_mib_s * Bytes::from_mib(1).get() as f64),
        );
        one(
            "open_files",
            "gauge",
            "Open files followed",
            &by_device(|status| status.followed as f64),
        );
        if let Some(effect) = self.effect {
            let of = |bound: &str, value| (format!("{{bound=\"{bound}\"}}"), value);
            let rows = [of("median", effect.ratio), of("low", effect.low), of("high", effect.high)];
            one(
                "effect_ratio",
                "gauge",
                "Throughput of readers with treatment over that without",
                &rows,
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_type_each_and_base_units() {
        let mut status = Status { state: "acting".to_owned(), ..Status::starting() };
        let device = DeviceStatus { latency_ms: 8.0, rate_mib_s: 2.0, ..DeviceStatus::default() };
        status.devices.insert("8:0".to_owned(), device);
        status.effect = Some(StatusEffect { pairs: 8, ratio: 2.0, low: 1.5, high: 2.5 });
        let text = status.metrics();
        assert!(text.contains("foreread_device_latency_seconds{bdi=\"8:0\"} 0.008\n"), "{text}");
        assert!(text.contains("foreread_device_rate_bytes_per_second{bdi=\"8:0\"} 2097152\n"));
        assert!(text.contains("foreread_active 1\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }

    #[test]
    fn a_status_comes_back_as_it_was_written() {
        let mut status = Status::starting();
        (0..30).for_each(|number| status.push_decision(&format!("decision {number}")));
        assert_eq!(status.decisions.len(), MAX_DECISIONS_KEPT);
        assert_eq!(status.decisions.back().map(String::as_str), Some("decision 29"));
        let text = serde_json::to_string(&status).expect("json");
        assert_eq!(serde_json::from_str::<Status>(&text).expect("a status"), status);
    }
}
