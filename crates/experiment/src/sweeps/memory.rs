//! What happens when memory is scarce?
//!
//! Each stream has up to two windows in the cache: the one being read and the one ahead of it. If
//! the windows of all streams do not fit, the kernel evicts read-ahead data before use and must
//! read it again: read-ahead thrashes. Streams read each block once, so any data that the device
//! reads in addition is due to thrashing.

use study::{Analysis, Environment, Progress, Run, Store, TrialStatus};
use units::{Bytes, Kib, read_ahead_memory};
use workload::Workload;

use super::{SweepPlan, cell, windows};
use crate::ExperimentError;
use study::{Findings, ResultCurve, ResultPlot, ResultTable, ResultValue};

pub const NAME: &str = "memory";
pub const QUESTION: &str = "What happens when memory is scarce?";

/// Minimum limit for the page cache; the process needs memory, too.
const MEMORY_MIN: Bytes = Bytes::from_mib(8);

/// Minimum amplification that counts as thrashing. Ends of files and metadata add less than this.
const THRASHING_RATIO: f64 = 1.1;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    streams: u32,
    window: Kib,
    /// Page cache for read-ahead of all streams, as a share of the limit.
    share: f64,
    /// Bytes that the device read for each byte that the streams received.
    amplification: f64,
    /// Median data evicted and read again in a trial, in MiB; `None` if not counted.
    refaulted: Option<f64>,
    mib_s: f64,
}

impl Point {
    fn thrashes(&self) -> bool {
        self.amplification > THRASHING_RATIO
    }
}

/// Measures each number of streams under each setting, with this memory limit.
pub fn run(
    plan: &SweepPlan,
    limit: Bytes,
    streams: &[u32],
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    if limit < MEMORY_MIN {
        let text = format!("--memory {limit}: must be at least {MEMORY_MIN}");
        return Err(ExperimentError::Usage(text));
    }
    let streams = ordered(streams)?;
    let workloads = streams.iter().map(|count| workload(*count)).collect::<Result<_, _>>()?;
    let plan = SweepPlan { memory_limit: Some(limit), ..plan.clone() };
    let (mut answer, analysis) =
        plan.conduct((NAME, QUESTION), workloads, store, environment, progress)?;
    let run = answer.run.map(|run| store.load(study::RunId(run)));
    let run = run.transpose().map_err(study::StudyError::from)?;
    let points: Vec<Point> = windows(&analysis)
        .into_iter()
        .flat_map(|window| streams.iter().map(move |count| (window, *count)))
        .filter_map(|(window, count)| point(&analysis, run.as_ref(), limit, window, count))
        .collect();
    conclude(&mut answer, limit, &points);
    Ok(answer)
}

fn ordered(streams: &[u32]) -> Result<Vec<u32>, ExperimentError> {
    let mut streams = streams.to_vec();
    streams.sort_unstable();
    streams.dedup();
    match streams.is_empty() {
        true => Err(ExperimentError::Usage("name a number of streams, as in --streams 8".into())),
        false => Ok(streams),
    }
}

fn name(streams: u32) -> String {
    format!("streams-{streams}")
}

fn workload(streams: u32) -> Result<Workload, ExperimentError> {
    let stream = Workload::named("seq-1").map_err(bench::BenchError::from)?;
    let workload = Workload { name: name(streams), readers: streams, ..stream };
    workload.validate().map_err(bench::BenchError::from)?;
    Ok(workload)
}

fn point(
    analysis: &Analysis,
    run: Option<&Run>,
    limit: Bytes,
    window: Kib,
    streams: u32,
) -> Option<Point> {
    let cell = cell(analysis, window, &name(streams))?;
    let all = read_ahead_memory(window.to_bytes(), u64::from(streams)).get() as f64;
    Some(Point {
        streams,
        window,
        share: all / limit.get() as f64,
        amplification: cell.amplification?.median,
        refaulted: run.and_then(|run| refaulted(run, window, streams)),
        mib_s: cell.throughput_mib_s.median,
    })
}

/// Returns the median over trials of the data that was evicted and read again, in MiB.
fn refaulted(run: &Run, window: Kib, streams: u32) -> Option<f64> {
    let name = name(streams);
    let ours = run.trials.iter().filter(|trial| {
        trial.settings.read_ahead == window
            && trial.workload == name
            && trial.status == TrialStatus::Clean
    });
    let mib: Option<Vec<f64>> =
        ours.map(|trial| trial.figures.refaulted.map(Bytes::as_mib)).collect();
    stats::median(&mib?)
}

fn conclude(answer: &mut Findings, limit: Bytes, points: &[Point]) {
    let mut table = ResultTable::new(format!("Streams with {limit} of memory"), COLUMNS);
    table.rows = points.iter().map(row).collect();
    let plot = |figure: &str, y: &str| {
        let title = format!("{figure}, by the memory for the windows of all streams");
        ResultPlot::logarithmic(title, "% of the memory", y)
    };
    let (mut again, mut rates) = (plot("read ÷ requested", "read ÷ asked"), plot("MiB/s", "MiB/s"));
    for part in points.chunk_by(|a, b| a.window == b.window) {
        let Some(first) = part.first() else { continue };
        let curve = |of: fn(&Point) -> f64| ResultCurve {
            name: format!("read-ahead {}", first.window),
            points: part.iter().map(|point| (point.share * 100.0, of(point))).collect(),
        };
        again.curves.push(curve(|point| point.amplification));
        rates.curves.push(curve(|point| point.mib_s));
        answer.verdict.push(sentence(part));
    }
    answer.verdict.extend(best(points));
    answer.verdict.push(threshold(limit, points));
    // If all points thrash, or none does, the threshold is unknown.
    answer.decided = points.iter().any(Point::thrashes) && !points.iter().all(Point::thrashes);
    answer.tables.push(table);
    answer.plots.extend([again, rates]);
}

const COLUMNS: &[(&str, &str)] = &[
    ("read_ahead_kib", "read-ahead KiB"),
    ("streams", "streams"),
    ("windows_percent", "windows % of memory"),
    ("amplification", "read ÷ asked"),
    ("refaulted_mib", "evicted and read again MiB"),
    ("throughput_mib_s", "MiB/s"),
    ("thrashes", ""),
];

fn row(point: &Point) -> Vec<ResultValue> {
    vec![
        point.window.get().into(),
        u64::from(point.streams).into(),
        (point.share * 100.0).into(),
        point.amplification.into(),
        point.refaulted.into(),
        point.mib_s.into(),
        if point.thrashes() { "thrashes" } else { "" }.into(),
    ]
}

/// Returns the conclusion for one setting, whose points are ordered by streams.
fn sentence(part: &[Point]) -> String {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    let window = first.window;
    let Some(at) = part.iter().position(Point::thrashes) else {
        return format!(
            "At {window} no more than a tenth is read again, up to {} streams.",
            last.streams
        );
    };
    let from = &part[at];
    let read = format!(
        "{} streams, whose windows take {:.0} % of the memory: the device reads {:.2} times their \
         data",
        from.streams,
        from.share * 100.0,
        from.amplification
    );
    match part[..at].last() {
        None => format!("At {window} it thrashes with the smallest number tried, {read}."),
        Some(before) => format!(
            "At {window} it thrashes with {read}, and they get {:.2} times the rate of {}.",
            from.mib_s / before.mib_s,
            before.streams
        ),
    }
}

/// Names the best setting for each number of streams.
fn best(points: &[Point]) -> Option<String> {
    let mut counts: Vec<u32> = points.iter().map(|point| point.streams).collect();
    counts.sort_unstable();
    counts.dedup();
    let of = |count: &u32| {
        let ours = points.iter().filter(|point| point.streams == *count);
        let best = ours.max_by(|a, b| a.mib_s.total_cmp(&b.mib_s))?;
        Some(format!("{count}: {}", best.window))
    };
    let each: Vec<String> = counts.iter().filter_map(of).collect();
    let several = points.first()?.window != points.last()?.window;
    several.then(|| format!("The best read-ahead by streams: {}.", each.join(", ")))
}

/// Describes the threshold of thrashing over all settings.
fn threshold(limit: Bytes, points: &[Point]) -> String {
    let (thrashing, calm): (Vec<&Point>, Vec<&Point>) =
        points.iter().partition(|point| point.thrashes());
    let least = thrashing.iter().map(|point| point.share).min_by(f64::total_cmp);
    let most = calm.iter().map(|point| point.share).max_by(f64::total_cmp);
    match (least, most) {
        (Some(least), Some(most)) => format!(
            "With {limit}, thrashing starts when 2 × window × streams take {:.0} % of it; up to \
             {:.0} % were observed without. Each stream can have two windows in the cache.",
            least * 100.0,
            most * 100.0
        ),
        (None, _) => format!(
            "No thrashing was found with {limit}: try less --memory, more --streams or a larger \
             --read-ahead."
        ),
        (Some(_), None) => format!(
            "All of it thrashes with {limit}: try more --memory, fewer --streams or a smaller \
             --read-ahead."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(streams: u32, kib: u64, amplification: f64, mib_s: f64) -> Point {
        let share = (2 * streams as u64 * kib) as f64 / 65_536.0;
        let window = Kib::new(kib);
        Point { streams, window, share, amplification, refaulted: None, mib_s }
    }

    #[test]
    fn the_point_where_it_begins_is_told() {
        let points = [
            point(2, 128, 1.0, 90.0),
            point(32, 128, 1.0, 40.0),
            point(2, 4096, 1.0, 100.0),
            point(32, 4096, 2.5, 20.0),
        ];
        let mut answer = Findings::new(NAME, QUESTION, "disk".to_owned());
        conclude(&mut answer, Bytes::from_mib(64), &points);
        assert!(answer.decided);
        let said = answer.verdict.join("\n");
        assert!(
            said.contains("At 128 KiB no more than a tenth is read again, up to 32 streams"),
            "{said}"
        );
        assert!(said.contains("the device reads 2.50 times"), "{said}");
        assert!(said.contains("0.20 times the rate of 2"), "{said}");
        assert!(said.contains("by streams: 2: 4096 KiB, 32: 128 KiB"), "{said}");
        assert!(said.contains("take 400 % of it; up to 25 % were observed without"), "{said}");
        assert_eq!(answer.plots[0].curves.len(), 2);
        assert_eq!(answer.tables[0].rows.len(), 4);
    }

    #[test]
    fn a_point_that_was_not_found_is_no_answer() {
        for amplification in [1.0, 3.0] {
            let mut answer = Findings::new(NAME, QUESTION, "disk".to_owned());
            let points = [point(2, 128, amplification, 1.0), point(4, 128, amplification, 1.0)];
            conclude(&mut answer, Bytes::from_mib(64), &points);
            assert!(!answer.decided && answer.verdict.last().unwrap().contains("try "));
        }
        assert!(ordered(&[]).is_err());
        assert_eq!(ordered(&[8, 2, 8]).unwrap(), [2, 8]);
    }
}
