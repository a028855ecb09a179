//! Draws conclusions from the trials.

use stats::{Estimate, median};
use units::Bytes;

use super::{PgArm, Test, Trial};
use study::{Findings, ResultCurve, ResultPlot, ResultTable, ResultValue};

/// All trials of one test under one setting.
struct Group<'a> {
    arm: &'a PgArm,
    test: Test,
    trials: Vec<&'a Trial>,
}

impl Group<'_> {
    fn estimate(&self, of: impl Fn(&Trial) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.trials.iter().filter_map(|trial| of(trial)).collect();
        Estimate::from_values(&values)
    }

    fn middle(&self, of: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().filter_map(|trial| of(trial)).collect();
        median(&values)
    }

    /// Returns a figure that is better if higher: transactions/s for pgbench, otherwise 1 /
    /// seconds.
    fn score(&self) -> Option<f64> {
        match self.test {
            Test::Pgbench => self.middle(|trial| trial.per_second),
            _ => self.middle(|trial| Some(1.0 / trial.seconds)),
        }
    }
}

/// Adds tables, plots and sentences to the findings.
pub(super) fn conclude(answer: &mut Findings, arms: &[PgArm], trials: &[Trial], size: Bytes) {
    let mut tests: Vec<Test> = trials.iter().map(|trial| trial.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let group = |test, index| {
        let trials = trials.iter().filter(|trial| trial.test == test && trial.arm == index);
        Group { arm: &arms[index], test, trials: trials.collect() }
    };
    let mut table = ResultTable::new("Each from a cold start", COLUMNS);
    for test in tests {
        let groups: Vec<Group<'_>> = (0..arms.len()).map(|index| group(test, index)).collect();
        table.rows.extend(groups.iter().map(|group| row(group, size)));
        answer.verdict.extend(sentence(test, &groups, size));
        answer.plots.extend(plot(test, &groups));
    }
    if trials.iter().any(|trial| !trial.complete) {
        answer.decided = false;
        let note = "priming ran out of time: give it more with --limit, or a smaller table";
        answer.notes.push(note.to_owned());
    }
    answer.tables.push(table);
}

const COLUMNS: &[(&str, &str)] = &[
    ("settings", "settings"),
    ("test", "test"),
    ("seconds", "seconds"),
    ("seconds_low", "from"),
    ("seconds_high", "to"),
    ("table_mib_s", "MiB/s"),
    ("transactions_s", "tps"),
    ("device_busy_percent", "device busy %"),
    ("queue_mean", "queue"),
    ("device_read_mib", "read MiB"),
    ("device_request_kib", "KiB/request"),
];

fn row(group: &Group<'_>, size: Bytes) -> Vec<ResultValue> {
    let seconds = group.estimate(|trial| Some(trial.seconds));
    let rate = seconds.filter(|_| group.test == Test::Seq);
    let stat = |of: &dyn Fn(&Trial) -> f64| group.middle(|trial| Some(of(trial)));
    let queue = |trial: &Trial| {
        let device = &trial.device;
        device.stat.queue_time.as_secs_f64() / device.seconds.max(1e-9)
    };
    let last =
        group.middle(|trial| trial.per_second.or(trial.moments.last().map(|m| m.per_second)));
    vec![
        group.arm.label().into(),
        group.test.name().into(),
        seconds.map(|it| it.median).into(),
        seconds.map(|it| it.low()).into(),
        seconds.map(|it| it.high()).into(),
        rate.map(|it| size.as_mib() / it.median).into(),
        last.into(),
        group.middle(|trial| trial.device.utilisation().map(|share| share * 100.0)).into(),
        stat(&queue).into(),
        stat(&|trial| trial.device.stat.read_bytes.as_mib()).into(),
        stat(&|trial| trial.device.stat.mean_read().get() as f64 / 1024.0).into(),
    ]
}

fn what(test: Test) -> &'static str {
    match test {
        Test::Seq => "The sequential scan",
        Test::Index => "The scan in the order of an index",
        Test::Bitmap => "The bitmap scan",
        Test::Prime => "Priming by random selects",
        Test::Pgbench => "pgbench",
    }
}

fn sentence(test: Test, groups: &[Group<'_>], size: Bytes) -> Option<String> {
    let score = |group: &&Group<'_>| group.score().unwrap_or(0.0);
    let best = groups.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    let worst = groups.iter().min_by(|a, b| score(a).total_cmp(&score(b)))?;
    let seconds = best.middle(|trial| Some(trial.seconds))?;
    let figure = match test {
        Test::Pgbench => format!("{:.0} transactions a second", best.score()?),
        Test::Seq => format!("{seconds:.3} s, {:.1} MiB/s", size.as_mib() / seconds),
        Test::Prime if best.trials.iter().any(|trial| !trial.complete) => {
            format!("not done after {seconds:.1} s")
        }
        _ => format!("{seconds:.3} s"),
    };
    let busy = best.middle(|trial| trial.device.utilisation());
    let busy = busy.map_or_else(String::new, |busy| format!("; device busy {:.0} %", busy * 100.0));
    let what = what(test);
    if groups.len() < 2 {
        return Some(format!("{what}: {figure}{busy}."));
    }
    let ratio = best.score()? / worst.score()?;
    Some(format!(
        "{what} is best under {} ({figure}{busy}), {ratio:.2} times as good as under {}.",
        best.arm.label(),
        worst.arm.label()
    ))
}

/// Plots priming over time, and other tests over read-ahead if only that was varied.
fn plot(test: Test, groups: &[Group<'_>]) -> Option<ResultPlot> {
    if test == Test::Prime {
        let curve = |group: &Group<'_>| {
            let moments = &group.trials.first()?.moments;
            let points = moments.iter().map(|moment| (moment.seconds, moment.per_second)).collect();
            Some(ResultCurve { name: group.arm.label(), points })
        };
        let title = "Random selects a second, from cold on";
        let mut plot = ResultPlot::new(title, "seconds", "queries/s");
        plot.curves.extend(groups.iter().filter_map(curve));
        return Some(plot);
    }
    let point = |group: &Group<'_>| Some((group.arm.read_ahead_kib()?, group.score()?));
    let mut points: Vec<(f64, f64)> = groups.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by_key(|point| point.0);
    (points.len() > 1 && points.len() == groups.len()).then(|| {
        let title = format!("{}: how often in a second, by read-ahead", what(test));
        let mut plot = ResultPlot::logarithmic(title, "KiB", "1/s");
        plot.curves.push(ResultCurve { name: String::new(), points });
        plot
    })
}

#[cfg(test)]
mod tests {
    use crate::server::Moment;

    use super::super::{DeviceActivity, arms};
    use super::*;

    fn trial(arm: usize, test: Test, seconds: f64) -> Trial {
        let moments = vec![
            Moment { seconds: 1.0, per_second: 100.0 },
            Moment { seconds: 2.0, per_second: 900.0 },
        ];
        Trial {
            arm,
            test,
            seconds,
            per_second: None,
            moments,
            watched: Vec::new(),
            useful: Bytes::ZERO,
            complete: true,
            device: DeviceActivity::default(),
        }
    }

    #[test]
    fn settings_are_compared_test_by_test() {
        let arms = arms::parse(&["read_ahead=128K,1M".to_owned()], 15).unwrap();
        let trials = [
            trial(0, Test::Seq, 4.0),
            trial(1, Test::Seq, 2.0),
            trial(0, Test::Prime, 30.0),
            trial(1, Test::Prime, 40.0),
        ];
        let mut answer = Findings::new("pg", "", "disk".to_owned());
        conclude(&mut answer, &arms, &trials, Bytes::from_mib(100));
        assert_eq!(answer.tables[0].rows.len(), 4);
        let said = answer.verdict.join(" ");
        assert!(said.contains("best under read_ahead=1M (2.000 s, 50.0 MiB/s), 2.00"), "{said}");
        assert!(said.contains("Priming by random selects is best under read_ahead=128K"), "{said}");
        assert_eq!(answer.plots.len(), 2);
        assert_eq!(answer.plots[1].curves[0].points[1], (2.0, 900.0));
        assert!(answer.decided);
    }

    #[test]
    fn what_ran_out_of_time_decides_nothing() {
        let arms = arms::parse(&[], 15).unwrap();
        let unfinished = Trial { complete: false, ..trial(0, Test::Prime, 30.0) };
        let mut answer = Findings::new("pg", "", "disk".to_owned());
        conclude(&mut answer, &arms, &[unfinished], Bytes::from_mib(1));
        assert!(!answer.decided && answer.verdict[0].contains("not done after 30.0 s"));
    }
}
