//! The status of a running daemon: a file for `auto status`, and metrics for Prometheus.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use control::{ReaderTotals, TreatmentEffect};
use serde::{Deserialize, Serialize};
use units::text::MetricKind::{Counter, Gauge};
use units::text::{Exposition, MetricSeries};
use units::{Bytes, Kib};

/// Number of decisions that `auto status` shows.
const MAX_DECISIONS_KEPT: usize = 20;

/// Measurements of a device and of its readers. A status of an earlier version has fewer fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceStatus {
    /// The shortest mean read time so far.
    pub latency_ms: f64,
    /// The highest read rate so far.
    pub rate_mib_s: f64,
    /// The largest mean number of reads in flight in an interval.
    pub parallelism: f64,
    /// The typical gains of actions, as predicted and as measured (geometric means that give later
    /// actions more weight).
    pub predicted_gain_ratio: Option<f64>,
    pub measured_gain_ratio: Option<f64>,
    pub followed: usize,
    /// Number of open files by window in KiB, rounded up to a power of two.
    pub windows_kib: BTreeMap<u64, usize>,
    /// Number of waits for a page, and their total time.
    pub waits: u64,
    pub waited_s: f64,
    /// Bytes read ahead that readers used, or none used: estimates that err towards waste.
    pub used_bytes: u64,
    pub wasted_bytes: u64,
}

impl DeviceStatus {
    pub(crate) fn with_readers(
        mut self,
        totals: ReaderTotals,
        windows: &BTreeMap<Bytes, usize>,
    ) -> Self {
        (self.waits, self.waited_s) = (totals.waits, totals.waited.as_secs_f64());
        (self.used_bytes, self.wasted_bytes) = (totals.used.get(), totals.wasted.get());
        for (window, files) in windows {
            let kib = window.to_kib_floor().get();
            let rounded = if kib == 0 { 0 } else { kib.next_power_of_two() };
            *self.windows_kib.entry(rounded).or_default() += files;
        }
        self
    }
}

/// The status of a running daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub schema_version: u32,
    pub pid: u32,
    pub since_unix_s: u64,
    /// `starting`, or the text of a [`LoopState`](control::LoopState).
    pub state: String,
    pub devices: BTreeMap<String, DeviceStatus>,
    pub windows_set: u64,
    /// Number of actions that failed or were not allowed.
    pub failed_actions: u64,
    /// Number of open files that got a temporary window of the bdi, because they were opened
    /// meanwhile, and whose window was restored.
    pub collateral_windows_restored: u64,
    pub prefetched_bytes: u64,
    /// Number of misses after which the rest of the run, or the call, was prefetched.
    pub miss_prefetches: u64,
    /// Number of prefetches that were dropped because too many were queued.
    pub dropped_prefetches: u64,
    /// Number of kernel events that were lost.
    pub lost_events: u64,
    /// The result of the A/B test so far.
    pub effect: Option<StatusEffect>,
    /// The last decisions, each with its time, the oldest first.
    pub decisions: VecDeque<String>,
}

/// [`TreatmentEffect`] as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusEffect {
    pub pairs: usize,
    /// Throughput of readers with treatment divided by that without.
    pub ratio: f64,
    /// Bounds of the 95 % confidence interval.
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

    /// Returns the status of this process, which has just started.
    pub fn starting() -> Self {
        Self {
            schema_version: Self::SCHEMA_VERSION,
            pid: std::process::id(),
            since_unix_s: unix_s(),
            state: "starting".to_owned(),
            ..Self::default()
        }
    }

    /// Appends a decision or note that was made this many seconds after the start of 1970.
    pub fn push_decision(&mut self, unix_s: u64, text: &str) {
        if self.decisions.len() == MAX_DECISIONS_KEPT {
            self.decisions.pop_front();
        }
        let time = DateTime::from_timestamp_secs(unix_s as i64).unwrap_or_default();
        self.decisions.push_back(format!("{} UTC: {text}", time.format("%Y-%m-%d %H:%M:%S")));
    }

    /// Returns the metrics in the text format of Prometheus, in base units.
    pub fn metrics(&self) -> String {
        let mut text = Exposition::new();
        let is_active = f64::from(u8::from(self.state == "acting"));
        let gauges = [
            ("active", "1 while foreread acts, 0 while it only observes", is_active),
            ("start_time_seconds", "When it started", self.since_unix_s as f64),
        ];
        for (name, help, value) in gauges {
            text.value(name, Gauge, help, value);
        }
        let counters = [
            ("windows_set_total", "Windows set on open files", self.windows_set),
            (
                "actions_failed_total",
                "Actions that could not or must not be carried out",
                self.failed_actions,
            ),
            (
                "collateral_windows_restored_total",
                "Restored windows of files opened while their bdi had another window",
                self.collateral_windows_restored,
            ),
            (
                "prefetched_bytes_total",
                "Bytes prefetched in addition to the kernel's read-ahead",
                self.prefetched_bytes,
            ),
            (
                "miss_prefetches_total",
                "Misses after which the rest of their run, or their call, was prefetched",
                self.miss_prefetches,
            ),
            (
                "prefetches_dropped_total",
                "Prefetches dropped because too many were queued",
                self.dropped_prefetches,
            ),
            ("lost_events_total", "Kernel events lost", self.lost_events),
        ];
        for (name, help, value) in counters {
            text.value(name, Counter, help, value as f64);
        }
        self.device_metrics(&mut text);
        if let Some(effect) = self.effect {
            let bounds = [("median", effect.ratio), ("low", effect.low), ("high", effect.high)];
            text.metric(
                "effect_ratio",
                Gauge,
                "Throughput of readers with auto relative to that without",
                bounds.map(|(bound, value)| MetricSeries::new(value).with("bound", bound)),
            );
        }
        text.into_text()
    }

    fn device_metrics(&self, text: &mut Exposition) {
        let by_device = |of: fn(&DeviceStatus) -> f64| {
            let series =
                move |(bdi, status): (&String, _)| MetricSeries::new(of(status)).with("bdi", bdi);
            self.devices.iter().map(series)
        };
        text.metric(
            "device_latency_seconds",
            Gauge,
            "The shortest mean read time seen",
            by_device(|status| status.latency_ms / 1e3),
        );
        text.metric(
            "device_rate_bytes_per_second",
            Gauge,
            "The highest read rate seen",
            by_device(|status| status.rate_mib_s * Bytes::from_mib(1).get() as f64),
        );
        text.metric(
            "open_files",
            Gauge,
            "Open files followed",
            by_device(|status| status.followed as f64),
        );
        for (name, help, of) in GAINS {
            let series = self
                .devices
                .iter()
                .filter_map(|(bdi, status)| Some(MetricSeries::new(of(status)?).with("bdi", bdi)));
            text.metric(name, Gauge, help, series);
        }
        let windows = self.devices.iter().flat_map(|(bdi, status)| {
            status.windows_kib.iter().map(move |(kib, files)| {
                let window = Kib::new(*kib).to_bytes().get().to_string();
                MetricSeries::new(*files as f64).with("bdi", bdi).with("window_bytes", window)
            })
        });
        let help = "Open files followed, by window (rounded up to a power of two)";
        text.metric("open_files_by_window", Gauge, help, windows);
        for (name, help, of) in READER_COUNTERS {
            text.metric(name, Counter, help, by_device(*of));
        }
    }
}

type DeviceGain = (&'static str, &'static str, fn(&DeviceStatus) -> Option<f64>);

const GAINS: &[DeviceGain] = &[
    ("auto_predicted_gain_ratio", "Typical gain of actions as predicted", |status| {
        status.predicted_gain_ratio
    }),
    ("auto_measured_gain_ratio", "Typical gain of the same actions as measured", |status| {
        status.measured_gain_ratio
    }),
];

type ReaderCounter = (&'static str, &'static str, fn(&DeviceStatus) -> f64);

const READER_COUNTERS: &[ReaderCounter] = &[
    ("reader_waits_total", "Times that a reader waited for a page", |status| status.waits as f64),
    ("reader_wait_seconds_total", "Time that readers waited for pages", |status| status.waited_s),
    ("read_ahead_used_bytes_total", "Read-ahead that readers used (estimate)", |status| {
        status.used_bytes as f64
    }),
    (
        "read_ahead_wasted_bytes_total",
        "Read-ahead that no reader used in time (estimate)",
        |status| status.wasted_bytes as f64,
    ),
];

/// Returns the seconds since 1970.
pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    #[test]
    fn metrics_have_a_type_each_and_base_units() {
        let mut status = Status { state: "acting".to_owned(), ..Status::starting() };
        let device = DeviceStatus { latency_ms: 8.0, rate_mib_s: 2.0, ..DeviceStatus::default() };
        let (waited, used) = (Nanos::from_millis(1500), Bytes::from_mib(1));
        let totals = ReaderTotals { waits: 3, waited, used, wasted: Bytes::from_kib(4) };
        let windows =
            [(Bytes::ZERO, 1), (Bytes::from_kib(128), 2), (Bytes::from_kib(100), 4)].into();
        let mut device = device.with_readers(totals, &windows);
        (device.predicted_gain_ratio, device.measured_gain_ratio) = (Some(6.5), Some(5.5));
        status.devices.insert("8:0".to_owned(), device);
        status.effect = Some(StatusEffect { pairs: 8, ratio: 2.0, low: 1.5, high: 2.5 });
        let text = status.metrics();
        assert!(text.contains("foreread_device_latency_seconds{bdi=\"8:0\"} 0.008\n"), "{text}");
        assert!(text.contains("foreread_device_rate_bytes_per_second{bdi=\"8:0\"} 2097152\n"));
        assert!(text.contains("foreread_active 1\n"));
        for line in [
            "open_files_by_window{bdi=\"8:0\",window_bytes=\"0\"} 1",
            "open_files_by_window{bdi=\"8:0\",window_bytes=\"131072\"} 6",
            "reader_waits_total{bdi=\"8:0\"} 3",
            "auto_predicted_gain_ratio{bdi=\"8:0\"} 6.5",
            "auto_measured_gain_ratio{bdi=\"8:0\"} 5.5",
            "reader_wait_seconds_total{bdi=\"8:0\"} 1.5",
            "read_ahead_used_bytes_total{bdi=\"8:0\"} 1048576",
            "read_ahead_wasted_bytes_total{bdi=\"8:0\"} 4096",
        ] {
            assert!(text.contains(&format!("foreread_{line}\n")), "{line}: {text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }

    #[test]
    fn a_status_comes_back_as_it_was_written() {
        let mut status = Status::starting();
        (0..30).for_each(|number| status.push_decision(number, &format!("decision {number}")));
        assert_eq!(status.decisions.len(), MAX_DECISIONS_KEPT);
        let last = status.decisions.back().map(String::as_str);
        assert_eq!(last, Some("1970-01-01 00:00:29 UTC: decision 29"));
        let text = serde_json::to_string(&status).expect("json");
        assert_eq!(serde_json::from_str::<Status>(&text).expect("a status"), status);
    }
}
