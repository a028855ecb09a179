//! What do random reads alongside streams cost?

use study::{Analysis, Environment, Progress, Store};
use units::{Bytes, Kib};
use workload::{Pattern, Workload};

use super::{SweepPlan, cell, windows};
use crate::ExperimentError;
use study::{Findings, ResultCurve, ResultPlot, ResultTable, ResultValue};

pub const NAME: &str = "mixed";
pub const QUESTION: &str = "What do random reads alongside streams cost?";

/// The number of readers in the suite's mixed workload.
const READER_COUNT: u32 = 8;
/// The request size of streams and of random reads.
const REQUEST_BYTES: Bytes = Bytes::from_kib(4);
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    percent: f64,
    /// Throughput of streams and random reads together, in MiB/s.
    all: f64,
    /// Time that a random read takes from the streams, in milliseconds of the storage's time;
    /// `None` without random reads.
    cost_ms: Option<f64>,
}

impl Point {
    fn streams(&self) -> f64 {
        self.all * (1.0 - self.percent / 100.0)
    }
}

/// Measures each share of random requests, in percent, under each setting.
pub fn run(
    plan: &SweepPlan,
    percents: &[f64],
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let percents = ordered(percents)?;
    let workloads = percents.iter().map(|percent| workload(*percent)).collect::<Result<_, _>>()?;
    let (mut answer, analysis) =
        plan.conduct((NAME, QUESTION), workloads, store, environment, progress)?;
    conclude(&mut answer, &analysis, &percents);
    Ok(answer)
}

/// Returns the percentages in ascending order, with the baseline 0 first.
fn ordered(percents: &[f64]) -> Result<Vec<f64>, ExperimentError> {
    let mut percents = percents.to_vec();
    if let Some(wrong) = percents.iter().find(|percent| !(0.0..100.0).contains(*percent)) {
        let text = format!("{wrong} % of random requests: must be from 0 to less than 100");
        return Err(ExperimentError::Usage(text));
    }
    percents.push(0.0);
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    if percents.len() < 2 {
        let text = "name a share of random requests above 0, as in --percent 1,10";
        return Err(ExperimentError::Usage(text.to_owned()));
    }
    Ok(percents)
}

fn name(percent: f64) -> String {
    if percent == 0.0 { "streams".to_owned() } else { format!("random-{percent}") }
}

fn workload(percent: f64) -> Result<Workload, ExperimentError> {
    let pattern = match percent {
        0.0 => Pattern::Sequential,
        _ => Pattern::Mixed {
            random_fraction: percent / 100.0,
            random_block: REQUEST_BYTES,
            same_open_file: false,
        },
    };
    let workload =
        Workload { readers: READER_COUNT, ..Workload::new(name(percent), pattern, REQUEST_BYTES) };
    workload.validate().map_err(bench::BenchError::from)?;
    Ok(workload)
}

/// Returns the points of one setting. With a share f of random requests, the mean time of a request
/// is (1−f)·s + f·r, where s is the time of a request of streams alone. So r, the cost of a random
/// read, follows from two rates.
fn points(analysis: &Analysis, window: Kib, percents: &[f64]) -> Vec<Point> {
    let mib_per_request = REQUEST_BYTES.as_mib();
    let rate = |percent: f64| {
        let cell = cell(analysis, window, &name(percent))?;
        Some(cell.throughput_mib_s.median / mib_per_request).filter(|rate| *rate > 0.0)
    };
    let Some(alone) = rate(0.0) else { return Vec::new() };
    let point = |percent: &f64| {
        let (all, share) = (rate(*percent)?, percent / 100.0);
        let cost = (1.0 / all - (1.0 - share) / alone) / share * 1000.0;
        let cost_ms = (*percent > 0.0 && cost.is_finite()).then_some(cost.max(0.0));
        Some(Point { percent: *percent, all: all * mib_per_request, cost_ms })
    };
    percents.iter().filter_map(point).collect()
}

fn conclude(answer: &mut Findings, analysis: &Analysis, percents: &[f64]) {
    let mut table = ResultTable::new(format!("{READER_COUNT} streams with random reads"), COLUMNS);
    let title = "MiB/s of the streams, by the share of random requests";
    let mut plot = ResultPlot::new(title, "% of requests", "MiB/s");
    for window in windows(analysis) {
        let points = points(analysis, window, percents);
        table.rows.extend(points.iter().map(|point| row(analysis, window, point)));
        answer.verdict.extend(sentence(window, &points));
        let curve = points.iter().map(|point| (point.percent, point.streams())).collect();
        plot.curves.push(ResultCurve { name: format!("read-ahead {window}"), points: curve });
    }
    answer.verdict.extend(best(analysis, percents));
    answer.decided = !answer.verdict.is_empty();
    answer.tables.push(table);
    answer.plots.push(plot);
}

const COLUMNS: &[(&str, &str)] = &[
    ("read_ahead_kib", "read-ahead KiB"),
    ("random_percent", "random %"),
    ("throughput_mib_s", "MiB/s"),
    ("streams_mib_s", "of streams"),
    ("random_read_costs_ms", "ms for a random read"),
    ("random_p50_us", "p50 µs"),
    ("random_p99_us", "p99 µs"),
    ("amplification", "read ÷ asked"),
];

fn row(analysis: &Analysis, window: Kib, point: &Point) -> Vec<ResultValue> {
    let cell = cell(analysis, window, &name(point.percent));
    let random = cell.and_then(|cell| cell.random_latency_us);
    vec![
        window.get().into(),
        point.percent.into(),
        point.all.into(),
        point.streams().into(),
        point.cost_ms.into(),
        random.map(|random| random.p50).into(),
        random.map(|random| random.p99).into(),
        cell.and_then(|cell| cell.amplification).map(|it| it.median).into(),
    ]
}

fn sentence(window: Kib, points: &[Point]) -> Option<String> {
    let (alone, least) = (points.first()?, points.get(1)?);
    let lost = points.iter().find(|point| point.streams() < alone.streams() / 2.0);
    let cost = least.cost_ms?;
    // The data, in MiB, that the streams would have read in that time.
    let instead = alone.all * cost / 1000.0;
    let half = lost.map_or_else(
        || "they never lose half of their rate".to_owned(),
        |point| format!("{} % of such requests take half of their rate or more", point.percent),
    );
    Some(format!(
        "At {window} a random read costs the streams {cost:.2} ms, in which they would have read \
         {instead:.2} MiB; {half}."
    ))
}

/// Names the best setting for the streams at each share of random requests.
fn best(analysis: &Analysis, percents: &[f64]) -> Option<String> {
    let windows = windows(analysis);
    let of = |percent: &f64| {
        let rate =
            |window: &Kib| Some(cell(analysis, *window, &name(*percent))?.throughput_mib_s.median);
        let best = windows
            .iter()
            .max_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)))?;
        Some(format!("{percent} %: {best}"))
    };
    let each: Vec<String> = percents.iter().filter_map(of).collect();
    (windows.len() > 1).then(|| format!("The best read-ahead by share: {}.", each.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_put_in_order_and_compared_with_none() {
        assert_eq!(ordered(&[10.0, 1.0, 10.0]).unwrap(), [0.0, 1.0, 10.0]);
        assert!(ordered(&[0.0]).is_err() && ordered(&[100.0]).is_err());
        assert!(ordered(&[f64::NAN]).is_err() && ordered(&[-1.0]).is_err());
        assert_eq!(workload(0.5).unwrap().name, "random-0.5");
    }

    #[test]
    fn what_a_random_read_costs_is_put_into_words() {
        let point = |percent, all, cost_ms| Point { percent, all, cost_ms };
        let points =
            [point(0.0, 100.0, None), point(1.0, 60.0, Some(5.0)), point(10.0, 10.0, None)];
        let said = sentence(Kib::new(1024), &points).unwrap();
        assert!(said.contains("5.00 ms, in which they would have read 0.50 MiB"), "{said}");
        assert!(said.contains("10 % of such requests take half"), "{said}");
    }
}
