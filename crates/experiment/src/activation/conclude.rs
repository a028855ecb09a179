//! Draws conclusions from the observations.

use policy::Extent;
use units::Kib;

use super::pattern::{Op, PatternStep};
use super::{CachedExtents, Outcome};
use study::{Findings, ResultCurve, ResultPlot, ResultTable, ResultValue};

const MAX_SHOWN_WINDOWS: usize = 14;
const DRAWN: [&str; 2] = ["sequential", "middle"];
const PAGE_KIB: u64 = 4;

struct Finding<'a> {
    name: &'a str,
    /// First examined operation, counted from 1, that cached more pages than it requested.
    starts: Option<usize>,
    /// Pages requested up to and including that operation.
    asked_by_then: u64,
    /// Pages that each operation read; operations that read nothing are left out.
    windows: Vec<u64>,
    /// Total pages requested (`asked`) and read (`came`).
    asked: u64,
    came: u64,
    /// First operation of the whole pattern, counted from 1, at which kernel and rules differ. It
    /// can be one that only prepares the state.
    differs: Option<usize>,
}

fn size(op: &Op) -> u64 {
    match op.act {
        PatternStep::Read { pages, .. } => pages,
        PatternStep::Touch { .. } => 1,
        PatternStep::AdviseRandom | PatternStep::AdviseSequential => 0,
    }
}

fn total(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.pages.get()).sum()
}

impl<'a> Finding<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let Outcome { pattern, observed, predicted } = outcome;
        let looked_at = pattern.ops.iter().zip(observed).skip(pattern.from);
        let (mut asked, mut came, mut starts, mut asked_by_then) = (0, 0, None, 0);
        let mut windows = Vec::new();
        for (number, (op, step)) in (1..).zip(looked_at) {
            let new = total(step);
            (asked, came) = (asked + size(op), came + new);
            if new > 0 {
                windows.push(new);
            }
            if new > size(op) && starts.is_none() {
                (starts, asked_by_then) = (Some(number), asked);
            }
        }
        let differs = first_difference(observed, predicted);
        Self { name: pattern.name, starts, asked_by_then, windows, asked, came, differs }
    }

    fn largest(&self) -> u64 {
        self.windows.iter().copied().max().unwrap_or(0)
    }

    /// Describes the start of read-ahead: `with read 2 (8 KiB requested by then)` or `never`.
    fn start(&self) -> String {
        match self.starts {
            None => "never".to_owned(),
            Some(number) => {
                let kib = self.asked_by_then * PAGE_KIB;
                format!("with read {number} ({kib} KiB requested by then)")
            }
        }
    }

    fn row(&self, summary: &str) -> Vec<ResultValue> {
        let mut ramp: Vec<String> = self
            .windows
            .iter()
            .take(MAX_SHOWN_WINDOWS)
            .map(|pages| (pages * PAGE_KIB).to_string())
            .collect();
        if self.windows.len() > MAX_SHOWN_WINDOWS {
            ramp.push("…".to_owned());
        }
        vec![
            self.name.into(),
            summary.into(),
            self.starts.map(|number| number as u64).into(),
            self.starts.map(|_| self.asked_by_then * PAGE_KIB).into(),
            (self.largest() * PAGE_KIB).into(),
            (self.came as f64 / self.asked.max(1) as f64).into(),
            match self.differs {
                None => "as predicted".into(),
                Some(number) => format!("differs at operation {number}").into(),
            },
            ramp.join(" ").into(),
        ]
    }
}

fn first_difference(observed: &CachedExtents, predicted: &CachedExtents) -> Option<usize> {
    let pairs = observed.iter().zip(predicted);
    let differs = pairs.enumerate().find(|(_, (seen, said))| seen != said);
    differs.map(|(index, _)| index + 1)
}

pub(super) fn conclude(answer: &mut Findings, outcomes: &[Outcome], rules: &str, window: Kib) {
    let findings: Vec<Finding<'_>> = outcomes.iter().map(Finding::new).collect();
    let rows = findings.iter().zip(outcomes);
    let title = format!("Data read into the cache by each read, at read-ahead {window}");
    let mut table = ResultTable::new(title, COLUMNS);
    table.rows.extend(rows.map(|(finding, outcome)| finding.row(outcome.pattern.summary)));
    answer.tables.push(table);
    let mut plot = ResultPlot::new("KiB read at once, window by window", "KiB read so far", "KiB");
    plot.curves.extend(outcomes.iter().filter(|o| DRAWN.contains(&o.pattern.name)).map(curve));
    answer.plots.push(plot);
    answer.verdict = sentences(&findings);
    let differing: Vec<&Finding<'_>> =
        findings.iter().filter(|finding| finding.differs.is_some()).collect();
    answer.verdict.push(if differing.is_empty() {
        format!("All {} patterns agree, page for page, with the rules of {rules}.", findings.len())
    } else {
        let names: Vec<String> = differing
            .iter()
            .map(|f| format!("{} (operation {})", f.name, f.differs.unwrap_or_default()))
            .collect();
        format!(
            "This kernel differs from the rules of {rules} in: {}. Operations count from the \
             start of the pattern, including those before the examined reads.",
            names.join(", ")
        )
    });
}

const COLUMNS: &[(&str, &str)] = &[
    ("pattern", "pattern"),
    ("summary", "pattern"),
    ("starts_with_read", "starts with read"),
    ("asked_by_then_kib", "KiB by then"),
    ("largest_kib", "largest KiB"),
    ("cached_per_asked", "came ÷ asked"),
    ("rules", "rules"),
    ("came_kib", "KiB read, window by window"),
];

fn curve(outcome: &Outcome) -> ResultCurve {
    let mut asked = 0;
    let mut points = Vec::new();
    for (op, step) in outcome.pattern.ops.iter().zip(&outcome.observed) {
        asked += size(op) * PAGE_KIB;
        let new = total(step) * PAGE_KIB;
        if new > 0 {
            points.push((asked as f64, new as f64));
        }
    }
    ResultCurve { name: outcome.pattern.name.to_owned(), points }
}

fn sentences(findings: &[Finding<'_>]) -> Vec<String> {
    let named = |name: &str| findings.iter().find(|finding| finding.name == name);
    let pair = |first: &str, second: &str| named(first).zip(named(second));
    let skips = ["stride-2", "stride-3", "backward", "random"].into_iter().filter_map(named);
    let all = [
        pair("sequential", "middle").map(|(first, middle)| beginning(first, middle)),
        named("sequential").and_then(growth),
        no_stream(&skips.collect::<Vec<_>>()),
        sharing(named("middle"), named("two-processes"), named("turns")),
        pair("interleaved", "two-open-files").map(|(one, two)| side_by_side(one, two)),
        pair("after-seek", "after-aside").map(|(seek, aside)| after_a_seek(seek, aside)),
        pair("advice-random", "advice-sequential").map(|(one, two)| after_advice(one, two)),
        pair("mmap", "mmap-random").map(|(mapped, random)| mapping(mapped, random)),
    ];
    all.into_iter().flatten().collect()
}

fn beginning(first: &Finding<'_>, middle: &Finding<'_>) -> String {
    format!(
        "At the start of a file, read-ahead starts {}; in the middle {}.",
        first.start(),
        middle.start()
    )
}

fn growth(stream: &Finding<'_>) -> Option<String> {
    let (least, most) = (stream.windows.first()?, stream.largest());
    let full = stream.windows.iter().position(|pages| *pages == most)?;
    let before: u64 = stream.windows[..full].iter().sum();
    Some(format!(
        "It starts with {} KiB and reaches {} KiB at once after {} KiB.",
        least * PAGE_KIB,
        most * PAGE_KIB,
        before * PAGE_KIB
    ))
}

fn no_stream(skips: &[&Finding<'_>]) -> Option<String> {
    let message: Vec<String> =
        skips.iter().map(|finding| format!("{}: {}", finding.name, finding.start())).collect();
    (!message.is_empty()).then(|| format!("Other patterns: {}.", message.join("; ")))
}

fn side_by_side(one: &Finding<'_>, two: &Finding<'_>) -> String {
    format!(
        "Two streams through one open file start {}, through separate open files {}; at most {} \
         and {} KiB are read at once.",
        one.start(),
        two.start(),
        one.largest() * PAGE_KIB,
        two.largest() * PAGE_KIB
    )
}

fn after_a_seek(seek: &Finding<'_>, aside: &Finding<'_>) -> String {
    let kept = aside.windows.first() == Some(&aside.largest());
    let held = if kept { "does not end" } else { "ends" };
    format!(
        "After a seek it starts again {}; one read elsewhere {held} a stream, whose next window of \
         {} KiB comes {} after it.",
        seek.start(),
        aside.windows.first().copied().unwrap_or(0) * PAGE_KIB,
        aside.start()
    )
}

fn after_advice(random: &Finding<'_>, sequential: &Finding<'_>) -> String {
    format!(
        "After FADV_RANDOM: {}; after FADV_SEQUENTIAL up to {} KiB are read at once.",
        random.start(),
        sequential.largest() * PAGE_KIB
    )
}

fn mapping(mapped: &Finding<'_>, random: &Finding<'_>) -> String {
    format!(
        "The first fault of a mapping reads {} KiB; random faults read {:.0} times the data that \
         they touch.",
        mapped.windows.first().copied().unwrap_or(0) * PAGE_KIB,
        random.came as f64 / random.asked.max(1) as f64
    )
}

/// Returns a sentence on whether the state belongs to the open file or to the process.
fn sharing(
    alone: Option<&Finding<'_>>,
    processes: Option<&Finding<'_>>,
    turns: Option<&Finding<'_>>,
) -> Option<String> {
    let (alone, processes, turns) = (alone?, processes?, turns?);
    let same = processes.starts == alone.starts;
    let whose = match (same, turns.starts == alone.starts) {
        (true, false) => "It belongs to the open file, not to the process or the file",
        (true, true) => "Neither another process nor another open file disturbs it",
        (false, _) => "It belongs to the process",
    };
    Some(format!(
        "{whose}: one stream read in turn by two processes through one open file starts {}, \
         through two open files {}.",
        processes.start(),
        turns.start()
    ))
}

#[cfg(test)]
mod tests {
    use policy::{DeviceLimits, FileShape, Page};
    use units::{Bytes, Pages};

    use super::super::{pattern, predict::predict};
    use super::*;

    fn outcomes() -> Vec<Outcome> {
        let limits = DeviceLimits { read_ahead: Pages::new(32), max_request: Pages::new(320) };
        let shape = FileShape { size: Bytes::from_mib(16), folio_limit: Some(9), limits };
        let outcome = |pattern| {
            let predicted = predict(policy::build("linux-6.18").unwrap(), shape, &pattern);
            Outcome { pattern, observed: predicted.clone(), predicted }
        };
        pattern::all().into_iter().map(outcome).collect()
    }

    #[test]
    fn a_kernel_that_goes_by_the_rules_is_said_to() {
        let mut answer = Findings::new("activation", "", "disk".to_owned());
        conclude(&mut answer, &outcomes(), "linux-6.18", Kib::new(128));
        let said = answer.verdict.join(" ");
        for part in [
            "starts with read 1 (4 KiB requested by then); in the middle with read 2 (8 KiB",
            "stride-2: with read 2",
            "stride-3: never; backward: never; random: never",
            "It belongs to the open file",
            "After FADV_RANDOM: never",
            "page for page, with the rules of linux-6.18",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(answer.tables[0].rows[0][4], ResultValue::Count(128));
    }

    #[test]
    fn a_kernel_that_does_otherwise_is_named() {
        let mut outcomes = outcomes();
        for (name, index) in [("backward", 4), ("after-seek", 102)] {
            let outcome = outcomes.iter_mut().find(|o| o.pattern.name == name).unwrap();
            outcome.observed[index].push(Extent::new(Page::new(0), Pages::new(1)));
        }
        let mut answer = Findings::new("activation", "", "disk".to_owned());
        conclude(&mut answer, &outcomes, "linux-6.18", Kib::new(128));
        let last = answer.verdict.last().unwrap();
        assert!(
            last.contains("differs from the rules") && last.contains("backward (operation 5)"),
            "{last}"
        );
        // Its first 100 reads are not examined, so it differs at what `start` calls read 3.
        assert!(last.contains("after-seek (operation 103)"), "{last}");
    }
}
