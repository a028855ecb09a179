//! The data for the page's script: one JSON document in the page. It contains the figures of the
//! analysis in full; names are sanitised.

use serde::Serialize;
use serde::ser::SerializeSeq;
use stats::Estimate;
use study::{Decision, Quantiles, Role, TrialStatus};

use super::ReportInput;
use super::derived::{self, IndexOf};
use crate::names::{brief, settings_label};
use crate::number::setting;
use crate::trial_details::{Detail, bucket_us};
use crate::unit::unit;

#[derive(Debug, Serialize)]
pub(crate) struct PageData {
    pub runs: Vec<RunData>,
    advised: Vec<derived::Advised>,
}

impl PageData {
    pub(crate) fn new(runs: Vec<RunData>) -> Self {
        Self { runs, advised: derived::advised() }
    }
}

/// A run for the script. Settings and workloads are indices into the lists.
#[derive(Debug, Serialize)]
pub(crate) struct RunData {
    run: i64,
    label: String,
    settings: Vec<SettingData>,
    workloads: Vec<WorkloadData>,
    cells: Vec<CellData>,
    marks: Vec<Mark>,
    curves: Vec<Bend>,
    trials: TrialsData,
    details: Vec<DetailData>,
    tradeoffs: Vec<derived::TradeoffData>,
    drift: Vec<derived::BlockMiddle>,
    predicted: Vec<derived::PredictedCurve>,
    limits: Vec<derived::LimitLine>,
}

#[derive(Debug, Serialize)]
struct SettingData {
    kib: u64,
    label: String,
    /// Other settings, if the study varied more than read-ahead.
    labels: String,
}

#[derive(Debug, Serialize)]
struct WorkloadData {
    name: String,
    goal: bool,
    unit: String,
}

/// A median and the ends of its interval or range.
#[derive(Debug, Serialize)]
struct Three(f64, f64, f64);

#[derive(Debug, Serialize)]
struct CellData {
    s: usize,
    w: usize,
    repeats: u32,
    disturbed: u32,
    throughput_mib_s: Three,
    amplification: Option<Three>,
    device_requests: Option<Three>,
    latency_us: Option<[f64; 2]>,
    random_latency_us: Option<[f64; 2]>,
    /// Mean size of a device request, in KiB.
    request_kib: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Mark {
    kib: u64,
    kind: &'static str,
    label: String,
}

/// The settings at which the curve of one workload bends.
#[derive(Debug, Serialize)]
struct Bend {
    w: usize,
    economical_kib: Option<u64>,
    best_kib: Option<u64>,
    knee_kib: Option<u64>,
}

/// The trials by column, which takes half the space of rows.
#[derive(Debug, Default, Serialize)]
struct TrialsData {
    order: Vec<u32>,
    block: Vec<u32>,
    s: Vec<usize>,
    w: Vec<usize>,
    started_s: Vec<Rounded>,
    clean: Vec<u8>,
    throughput_mib_s: Vec<Rounded>,
    amplification: Vec<Option<Rounded>>,
    requests: Vec<Option<u64>>,
    p50_us: Vec<Option<Rounded>>,
    p99_us: Vec<Option<Rounded>>,
    seconds: Vec<Rounded>,
    useful_mib: Vec<Option<Rounded>>,
    ahead_mib: Vec<Option<Rounded>>,
    device_mib: Vec<Option<Rounded>>,
    request_kib: Vec<Option<Rounded>>,
    queue: Vec<Option<Rounded>>,
    busy: Vec<Option<Rounded>>,
    cpu_ms: Vec<Option<Rounded>>,
    /// Throughput relative to the median of its cell; shows drift.
    relative: Vec<Option<Rounded>>,
    why: Vec<Option<String>>,
}

/// A raw number for display, with six significant digits.
#[derive(Debug, Clone, Copy)]
struct Rounded(f64);

impl Serialize for Rounded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if !value.is_finite() {
            return serializer.serialize_none();
        }
        if value == 0.0 {
            return serializer.serialize_u64(0);
        }
        let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
        let rounded = (value * scale).round() / scale;
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

#[derive(Debug, Serialize)]
struct DetailData {
    s: usize,
    w: usize,
    /// Lower bounds of latency buckets with their counts, for streams and for random reads.
    stream_us: Pairs,
    random_us: Pairs,
    /// Number of device requests by size: powers of two from 4 KiB.
    sizes: Vec<u64>,
    slot_seconds: Rounded,
    mib_s: Vec<Rounded>,
    requests_s: Vec<Rounded>,
    device_mib_s: Vec<Rounded>,
    queue: Vec<Rounded>,
    device_request_kib: Vec<Option<Rounded>>,
    series: Vec<SeriesData>,
}

/// Another quantity over time.
#[derive(Debug, Serialize)]
struct SeriesData {
    name: String,
    unit: String,
    points: Vec<(Rounded, Rounded)>,
}

#[derive(Debug)]
struct Pairs(Vec<(f64, u64)>);

impl Serialize for Pairs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for (at, count) in &self.0 {
            seq.serialize_element(&(Rounded(*at), count))?;
        }
        seq.end()
    }
}

impl SeriesData {
    fn new(watched: &crate::trial_details::Watched) -> Self {
        let points = watched.means();
        Self {
            name: brief(&watched.name),
            unit: brief(&watched.unit),
            points: points.iter().map(|(at, value)| (Rounded(*at), Rounded(*value))).collect(),
        }
    }
}

fn three(estimate: &Estimate) -> Three {
    Three(estimate.median, estimate.low(), estimate.high())
}

fn two(quantiles: &Quantiles) -> [f64; 2] {
    [quantiles.p50, quantiles.p99]
}

impl RunData {
    pub(crate) fn new(exhibit: &ReportInput<'_>, label: String) -> Self {
        let report = exhibit.report();
        let settings = report.all_settings();
        let workloads = report.workloads();
        let index_of = |name: &str| workloads.iter().position(|w| w.workload.name == name);
        let mut trials = TrialsData::default();
        trials.fill(exhibit, &settings, &index_of);
        let curves = exhibit.analysis.per_workload.iter().filter_map(|alone| {
            Some(Bend {
                w: index_of(&alone.workload)?,
                economical_kib: alone.economical_kib.map(|kib| kib.get()),
                best_kib: alone.best_kib.map(|kib| kib.get()),
                knee_kib: alone.knee_kib.map(|kib| kib.get()),
            })
        });
        Self {
            run: exhibit.run.summary.id.0,
            label,
            settings: settings
                .iter()
                .map(|s| SettingData {
                    kib: s.read_ahead.get(),
                    label: setting(s.read_ahead),
                    labels: settings_label(s),
                })
                .collect(),
            workloads: workloads
                .iter()
                .map(|planned| WorkloadData {
                    name: brief(&planned.workload.name),
                    goal: planned.role == Role::Goal,
                    unit: brief(&unit(exhibit.run, &planned.workload.name)),
                })
                .collect(),
            cells: cells(exhibit, &settings, &index_of),
            marks: marks(exhibit),
            curves: curves.collect(),
            trials,
            details: details(exhibit, &settings, &index_of),
            tradeoffs: derived::tradeoffs(exhibit, &settings, &index_of),
            drift: derived::drift(exhibit),
            predicted: derived::predicted(exhibit, &index_of),
            limits: derived::limits(exhibit, &index_of),
        }
    }
}

fn cells(
    exhibit: &ReportInput<'_>,
    settings: &[study::CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<CellData> {
    let cell = |cell: &study::Cell| {
        let requests = cell.device_requests.as_ref();
        Some(CellData {
            s: settings.binary_search(&cell.settings).ok()?,
            w: index_of(&cell.workload)?,
            repeats: cell.repeats,
            disturbed: cell.disturbed,
            throughput_mib_s: three(&cell.throughput_mib_s),
            amplification: cell.amplification.as_ref().map(three),
            device_requests: requests.map(three),
            latency_us: cell.latency_us.as_ref().map(two),
            random_latency_us: cell.random_latency_us.as_ref().map(two),
            request_kib: exhibit
                .trial_details
                .and_then(|trial_details| request_kib(exhibit, trial_details, cell)),
        })
    };
    exhibit.analysis.cells.iter().filter_map(cell).collect()
}

/// Returns the median, over the trials, of their mean request size.
fn request_kib(
    exhibit: &ReportInput<'_>,
    trial_details: &crate::TrialDetails,
    cell: &study::Cell,
) -> Option<f64> {
    let ours = exhibit.run.trials.iter().filter(|trial| {
        trial.settings == cell.settings
            && trial.workload == cell.workload
            && (trial.status == TrialStatus::Clean || cell.repeats == cell.disturbed)
    });
    let sizes: Vec<f64> = ours
        .filter_map(|trial| trial_details.trials.get(&trial.order)?.request_kib)
        .filter(|kib| *kib > 0.0)
        .collect();
    stats::median(&sizes)
}

fn marks(exhibit: &ReportInput<'_>) -> Vec<Mark> {
    let advice = &exhibit.analysis.recommendation;
    if let Decision::Keep(kept) = advice.decision {
        let label = "now, and to be kept".to_owned();
        return vec![Mark { kib: kept.get(), kind: "recommended", label }];
    }
    let without = advice.without_conditions.as_ref().map(|other| other.read_ahead_kib);
    let named = [
        ("now", "now", exhibit.run.found),
        ("other", "unconditional", without),
        ("recommended", "recommended", advice.value()),
    ];
    let mark = |(kind, label, kib): (&'static str, &str, Option<units::Kib>)| {
        Some(Mark { kib: kib?.get(), kind, label: label.to_owned() })
    };
    named.into_iter().filter_map(mark).collect()
}

impl TrialsData {
    fn fill(
        &mut self,
        exhibit: &ReportInput<'_>,
        settings: &[study::CellSettings],
        index_of: &IndexOf<'_>,
    ) {
        let begun = exhibit.run.summary.created_unix_s;
        let medians: std::collections::HashMap<(study::CellSettings, &str), f64> = exhibit
            .analysis
            .cells
            .iter()
            .map(|c| ((c.settings.clone(), c.workload.as_str()), c.throughput_mib_s.median))
            .collect();
        for trial in &exhibit.run.trials {
            let place = (settings.binary_search(&trial.settings), index_of(&trial.workload));
            let (Ok(s), Some(w)) = place else { continue };
            let figures = &trial.figures;
            self.order.push(trial.order);
            self.block.push(trial.block);
            self.s.push(s);
            self.w.push(w);
            self.started_s.push(Rounded(trial.started_unix_s - begun));
            self.clean.push(u8::from(trial.status == TrialStatus::Clean));
            self.throughput_mib_s.push(Rounded(figures.throughput_mib_s));
            self.amplification.push(figures.amplification.map(Rounded));
            self.requests.push(figures.device_requests);
            self.p50_us.push(figures.latency_us.map(|latency| Rounded(latency.p50)));
            self.p99_us.push(figures.latency_us.map(|latency| Rounded(latency.p99)));
            self.seconds.push(Rounded(figures.measured_seconds));
            let middle = medians.get(&(trial.settings.clone(), trial.workload.as_str()));
            let relative = middle.filter(|middle| **middle > 0.0);
            self.relative.push(relative.map(|m| Rounded(figures.throughput_mib_s / m)));
            let why =
                (!trial.disturbances.is_empty()).then(|| brief(&trial.disturbances.join("; ")));
            self.why.push(why);
            self.fill_raw(exhibit, trial.order);
        }
    }

    fn fill_raw(&mut self, exhibit: &ReportInput<'_>, order: u32) {
        let raw = exhibit.trial_details.and_then(|trial_details| trial_details.trials.get(&order));
        self.useful_mib.push(raw.map(|raw| Rounded(raw.useful_mib)));
        self.ahead_mib.push(raw.map(|raw| Rounded(raw.ahead_mib)));
        self.device_mib.push(raw.and_then(|raw| raw.device_mib).map(Rounded));
        self.request_kib.push(raw.and_then(|raw| raw.request_kib).map(Rounded));
        self.queue.push(raw.and_then(|raw| raw.queue).map(Rounded));
        self.busy.push(raw.and_then(|raw| raw.busy).map(Rounded));
        self.cpu_ms.push(raw.map(|raw| Rounded(raw.cpu_ms)));
    }
}

fn details(
    exhibit: &ReportInput<'_>,
    settings: &[study::CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<DetailData> {
    let cells =
        exhibit.trial_details.map(|trial_details| &trial_details.cells).into_iter().flatten();
    let detail = |((at, workload), detail): (&(study::CellSettings, String), &Detail)| {
        let buckets = |of: &std::collections::BTreeMap<i32, u64>| {
            Pairs(of.iter().map(|(bucket, count)| (bucket_us(*bucket), *count)).collect())
        };
        let rate = |sum: f64, over: f64| Rounded(if over > 0.0 { sum / over } else { 0.0 });
        let course = &detail.course;
        let slot = detail.slot_seconds;
        let read = course.iter().take_while(|slot| slot.trials > 0.0);
        let seen = course.iter().take_while(|slot| slot.moments > 0.0);
        let sizes = detail.sizes.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Some(DetailData {
            s: settings.binary_search(at).ok()?,
            w: index_of(workload)?,
            stream_us: buckets(&detail.stream),
            random_us: buckets(&detail.random),
            sizes: detail.sizes[..sizes].to_vec(),
            slot_seconds: Rounded(slot),
            mib_s: read.clone().map(|s| rate(s.mib, s.trials * slot)).collect(),
            requests_s: read.map(|s| rate(s.requests, s.trials * slot)).collect(),
            device_mib_s: seen.clone().map(|s| rate(s.device_mib, s.moments)).collect(),
            queue: seen.clone().map(|s| rate(s.queue, s.moments)).collect(),
            device_request_kib: seen
                .map(|s| {
                    let some = s.device_requests > 0.0;
                    some.then(|| Rounded(s.device_mib * 1024.0 / s.device_requests))
                })
                .collect(),
            series: detail.series.iter().map(SeriesData::new).collect(),
        })
    };
    cells.filter_map(detail).collect()
}

/// Serialises the data as text for a script element: it cannot close the element or open another,
/// and contains no JavaScript line terminator.
pub(crate) fn text(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    let mut text = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_stay_of_a_raw_number() {
        let said = |value: f64| serde_json::to_string(&Rounded(value)).unwrap();
        for (value, expected) in [
            (0.0, "0"),
            (1234.5678, "1234.57"),
            (0.000_123_456_78, "0.000123457"),
            (5e9, "5000000000"),
            (-1.5, "-1.5"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(said(value), expected);
        }
    }

    #[test]
    fn nothing_in_the_data_ends_their_element() {
        let said = text(&"</script><!--&\u{2028}");
        assert!(!said.contains(['<', '>', '&', '\u{2028}']), "{said}");
        assert_eq!(serde_json::from_str::<String>(&said).unwrap(), "</script><!--&\u{2028}");
    }
}
