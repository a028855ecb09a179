//! Do sequential reads scale with readers?

use study::{Analysis, Environment, Progress, Store};
use units::Kib;
use workload::Workload;

use super::{SweepPlan, cell, windows};
use crate::ExperimentError;
use study::{Findings, ResultCurve, ResultPlot, ResultTable};

pub const NAME: &str = "readers";
pub const QUESTION: &str = "Do sequential reads scale with readers?";

/// Minimum share of another throughput that counts as equal to it.
const KEPT_RATIO: f64 = 0.9;
pub fn run(
    plan: &SweepPlan,
    readers: &[u32],
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let readers = ordered(readers)?;
    let workloads = readers.iter().map(|readers| workload(*readers)).collect::<Result<_, _>>()?;
    let (mut answer, analysis) =
        plan.conduct((NAME, QUESTION), workloads, store, environment, progress)?;
    conclude(&mut answer, &analysis, &readers);
    Ok(answer)
}

fn ordered(readers: &[u32]) -> Result<Vec<u32>, ExperimentError> {
    let mut readers = readers.to_vec();
    readers.sort_unstable();
    readers.dedup();
    match readers.as_slice() {
        [] | [_] => Err(ExperimentError::Usage(
            "name at least two numbers of readers, as in --readers 1,8".to_owned(),
        )),
        _ => Ok(readers),
    }
}

fn name(readers: u32) -> String {
    format!("seq-{readers}")
}

fn workload(readers: u32) -> Result<Workload, ExperimentError> {
    let stream = Workload::named("seq-1").map_err(bench::BenchError::from)?;
    let workload = Workload { name: name(readers), readers, ..stream };
    workload.validate().map_err(bench::BenchError::from)?;
    Ok(workload)
}

fn conclude(answer: &mut Findings, analysis: &Analysis, readers: &[u32]) {
    let columns = [
        ("read_ahead_kib", "read-ahead KiB"),
        ("readers", "readers"),
        ("throughput_mib_s", "MiB/s"),
        ("throughput_mib_s_low", "from"),
        ("throughput_mib_s_high", "to"),
        ("ratio_to_fewest", "× fewest"),
    ];
    let mut table = ResultTable::new("MiB/s of all readers together", &columns);
    let title = "MiB/s of all readers, by their number";
    let mut plot = ResultPlot::logarithmic(title, "readers", "MiB/s");
    for window in windows(analysis) {
        let mut points = Vec::new();
        for count in readers {
            let Some(cell) = cell(analysis, window, &name(*count)) else { continue };
            points.push((f64::from(*count), cell.throughput_mib_s.median));
            let first = points[0].1;
            let estimate = &cell.throughput_mib_s;
            table.rows.push(vec![
                window.get().into(),
                u64::from(*count).into(),
                estimate.median.into(),
                estimate.low().into(),
                estimate.high().into(),
                (estimate.median / first).into(),
            ]);
        }
        answer.verdict.extend(sentence(window, &points));
        plot.curves.push(ResultCurve { name: format!("read-ahead {window}"), points });
    }
    answer.decided = !answer.verdict.is_empty();
    answer.tables.push(table);
    answer.plots.push(plot);
}

fn sentence(window: Kib, points: &[(f64, f64)]) -> Option<String> {
    let (first, last) = (points.first()?, points.last()?);
    let best = points.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let shape = if best.1 < first.1 / KEPT_RATIO && last.1 >= KEPT_RATIO * first.1 {
        format!("{} readers together are as fast as {}", last.0, first.0)
    } else if best.0 == first.0 {
        let times = first.1 / last.1;
        format!(
            "throughput falls: {} readers together are {times:.2} times slower than {}",
            last.0, first.0
        )
    } else if last.1 >= KEPT_RATIO * best.1 {
        let times = last.1 / first.1;
        format!("throughput grows: {} readers are {times:.2} times as fast as {}", last.0, first.0)
    } else {
        format!(
            "throughput grows up to {} readers ({:.2} times as fast as {}) and falls to {:.2} \
             times at {}",
            best.0,
            best.1 / first.1,
            first.0,
            last.1 / first.1,
            last.0
        )
    };
    Some(format!("At {window}: {shape}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_put_into_words() {
        let said = |figures: &[f64]| {
            let points: Vec<_> =
                [1.0, 4.0, 16.0].into_iter().zip(figures.iter().copied()).collect();
            sentence(Kib::new(128), &points).unwrap()
        };
        assert!(said(&[100.0, 101.0, 99.0]).contains("16 readers together are as fast as 1"));
        assert!(
            said(&[100.0, 80.0, 50.0]).contains("falls: 16 readers together are 2.00 times slower")
        );
        assert!(said(&[100.0, 300.0, 400.0]).contains("grows: 16 readers are 4.00 times as fast"));
        assert!(
            said(&[100.0, 400.0, 200.0]).contains("up to 4 readers (4.00 times as fast as 1) and")
        );
        assert_eq!(sentence(Kib::new(4), &[]), None);
    }

    #[test]
    fn one_number_of_readers_is_no_scale() {
        assert!(ordered(&[4, 4]).is_err() && ordered(&[]).is_err());
        assert_eq!(ordered(&[8, 1, 8]).unwrap(), [1, 8]);
        assert!(workload(0).is_err() && workload(100_000).is_err());
        assert_eq!(workload(3).unwrap().name, "seq-3");
    }
}
