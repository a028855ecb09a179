//! Draws conclusions from the table.

use stats::Estimate;
use units::Bytes;

use super::BlockCell;
use study::{Findings, ResultCurve, ResultPlot, ResultTable, ResultValue};

/// A request of twice the size counts as nearly free if it takes at most this many times as long.
pub const FREE_RATIO: f64 = 1.25;
/// Minimum requests in a row; the mean of fewer is too uncertain.
const MIN_REQUESTS: u64 = 30;

/// Returns the largest request, in blocks, up to which larger requests are nearly free: each
/// doubling from the smallest takes at most [`FREE_RATIO`] times as long. `sizes` holds pairs of
/// blocks and time, ascending.
pub fn free_until(sizes: &[(u64, f64)]) -> Option<u64> {
    let mut free = sizes.first()?.0;
    for pair in sizes.windows(2) {
        let [(small, before), (large, after)] = pair else { break };
        let doublings = (*large as f64 / *small as f64).log2();
        if after / before > FREE_RATIO.powf(doublings) {
            break;
        }
        free = *large;
    }
    Some(free)
}

/// Adds table, plots and sentences to the findings. The cells must be sorted.
pub(super) fn conclude(answer: &mut Findings, block: Bytes, cells: &[BlockCell]) {
    let mut processes: Vec<u32> = cells.iter().map(|cell| cell.processes).collect();
    processes.dedup();
    let mut table = ResultTable::new("Random reads", COLUMNS);
    let (mut times, mut ratios) = (plot("ms for each request"), plot("times one block's time"));
    for count in processes {
        let part: Vec<&BlockCell> = cells.iter().filter(|cell| cell.processes == count).collect();
        let Some(one) = part.first() else { continue };
        let ratio = |cell: &BlockCell| cell.ms.over(&one.ms);
        table.rows.extend(part.iter().map(|cell| {
            let ratio = if cell.blocks == one.blocks { Estimate::exact(1.0) } else { ratio(cell) };
            row(cell, block, &ratio)
        }));
        let curve = |of: &dyn Fn(&BlockCell) -> f64| ResultCurve {
            name: counted(count),
            points: part.iter().map(|cell| (kib(block, cell), of(cell))).collect(),
        };
        times.curves.push(curve(&|cell| cell.ms.median));
        ratios.curves.push(curve(&|cell| ratio(cell).median));
        answer.verdict.push(sentence(&part, block));
    }
    answer.verdict.extend(comparison(cells));
    if cells.iter().any(|cell| cell.requests < MIN_REQUESTS) {
        answer.decided = false;
        answer.notes.push(format!(
            "some rows have fewer than {MIN_REQUESTS} requests: measure longer with --duration"
        ));
    }
    answer.tables.push(table);
    answer.plots.extend([times, ratios]);
}

/// Says how the cost of larger requests differs between the most and the fewest processes.
fn comparison(cells: &[BlockCell]) -> Option<String> {
    let (fewest, most) = (cells.first()?.processes, cells.last()?.processes);
    let ratio = |processes: u32, blocks: u64| {
        let mut part = cells.iter().filter(|cell| cell.processes == processes);
        let one = part.next()?;
        part.find(|cell| cell.blocks == blocks).map(|cell| cell.ms.over(&one.ms))
    };
    let mut said = [Vec::new(), Vec::new(), Vec::new()];
    for cell in cells.iter().filter(|cell| cell.processes == fewest).skip(1) {
        let (few, many) = (ratio(fewest, cell.blocks)?, ratio(most, cell.blocks)?);
        let place = match many.over(&few) {
            change if change.high() < 1.0 => 0,
            change if change.low() > 1.0 => 1,
            _ => 2,
        };
        said[place].push(cell.blocks.to_string());
    }
    if fewest == most || said.iter().all(Vec::is_empty) {
        return None;
    }
    let words = ["costs less", "costs more", "costs no measurably different share"];
    let parts: Vec<String> = words
        .iter()
        .zip(&said)
        .filter(|(_, blocks)| !blocks.is_empty())
        .map(|(word, blocks)| format!("{word} for {} blocks", blocks.join(", ")))
        .collect();
    let (who, than) = (counted(most), counted(fewest));
    Some(format!(
        "Compared with the smallest, a larger request {} by {who} than by {than}.",
        parts.join(", ")
    ))
}

fn kib(block: Bytes, cell: &BlockCell) -> f64 {
    (block * cell.blocks).get() as f64 / 1024.0
}

fn counted(processes: u32) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

const COLUMNS: &[(&str, &str)] = &[
    ("processes", "processes"),
    ("blocks", "blocks"),
    ("request_kib", "KiB"),
    ("requests_s", "requests/s"),
    ("all_requests_s", "of all"),
    ("ms_per_request", "ms/request"),
    ("ms_per_request_low", "from"),
    ("ms_per_request_high", "to"),
    ("ms_per_block", "ms/block"),
    ("ratio_to_smallest", "× smallest"),
    ("ratio_to_smallest_low", "from"),
    ("ratio_to_smallest_high", "to"),
    ("requests", "measured"),
];

fn row(cell: &BlockCell, block: Bytes, ratio: &Estimate) -> Vec<ResultValue> {
    vec![
        u64::from(cell.processes).into(),
        cell.blocks.into(),
        ((block * cell.blocks).get() / 1024).into(),
        cell.requests_s().into(),
        (cell.requests_s() * f64::from(cell.processes)).into(),
        cell.ms.median.into(),
        cell.ms.low().into(),
        cell.ms.high().into(),
        cell.ms_per_block().into(),
        ratio.median.into(),
        ratio.low().into(),
        ratio.high().into(),
        cell.requests.into(),
    ]
}

fn plot(what: &str) -> ResultPlot {
    ResultPlot::logarithmic(format!("{what}, by size of the request"), "KiB", what)
}

fn sentence(part: &[&BlockCell], block: Bytes) -> String {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    let sizes: Vec<(u64, f64)> = part.iter().map(|cell| (cell.blocks, cell.ms.median)).collect();
    let free = free_until(&sizes).unwrap_or(first.blocks);
    let (small, large) = (block * first.blocks, block * last.blocks);
    let times = last.ms.median / first.ms.median;
    let more = last.blocks as f64 / first.blocks as f64;
    let who = counted(first.processes);
    if part.len() < 2 {
        return format!("{who}: {:.2} ms for {small}.", first.ms.median);
    }
    let until = if free == last.blocks {
        format!("reading more is nearly free up to {large}, the largest size tried")
    } else if free == first.blocks {
        format!(
            "reading more is not free: the first doubling takes over {FREE_PERCENT:.0} % longer"
        )
    } else {
        let free = block * free;
        format!(
            "reading more is nearly free up to {free}: no doubling takes {FREE_PERCENT:.0} % longer"
        )
    };
    format!(
        "{who}: {more:.0} times the data ({large} for {small}) take {times:.2} times as long; \
         {until}."
    )
}

const FREE_PERCENT: f64 = (FREE_RATIO - 1.0) * 100.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::Estimate;

    use super::*;

    fn cells(processes: u32, ms: &[f64]) -> Vec<BlockCell> {
        let cell = |(power, ms): (u32, &f64)| BlockCell {
            processes,
            blocks: 1 << power,
            requests: 100,
            ms: Estimate::interval(*ms, ms * 0.9, ms * 1.1),
        };
        (0..).zip(ms).map(cell).collect()
    }

    /// The published figures of 2002.
    #[test]
    fn the_published_table_is_read_as_its_author_did() {
        let mut answer = Findings::new("blocks", "", "disk".to_owned());
        let mut all = cells(1, &[3.22, 3.82, 5.03, 7.56, 15.1]);
        all.extend(cells(4, &[9.09, 9.98, 11.6, 15.4, 35.4]));
        conclude(&mut answer, Bytes::from_kib(8), &all);
        assert!(answer.decided);
        assert_eq!(answer.tables[0].rows.len(), 10);
        assert!(answer.verdict[0].contains("nearly free up to 16 KiB"), "{}", answer.verdict[0]);
        assert!(answer.verdict[1].contains("nearly free up to 32 KiB"), "{}", answer.verdict[1]);
        assert!(answer.verdict[0].contains("4.69 times as long"), "{}", answer.verdict[0]);
        assert_eq!(answer.plots[1].curves[1].points[0], (8.0, 1.0));
    }

    #[test]
    fn ratios_have_intervals_and_are_compared_by_them() {
        let one = Estimate::interval(2.0, 1.9, 2.1);
        let two = Estimate::interval(3.0, 2.9, 3.1);
        let ratio = two.over(&one);
        assert!((ratio.median - 1.5).abs() < 1e-9);
        assert!(ratio.low() > 2.9 / 2.1 && ratio.low() < 2.9 / 2.0, "{ratio:?}");
        assert!(ratio.high() < 3.1 / 1.9 && ratio.high() > 3.1 / 2.0, "{ratio:?}");
        assert!(!Estimate::unbounded(1.0).over(&one).is_bounded());
        let mut all = cells(1, &[3.0, 4.0, 6.0]);
        all.extend(cells(4, &[9.0, 12.1, 10.0]));
        all.iter_mut().for_each(|cell| {
            let ms = cell.ms.median;
            cell.ms = Estimate::interval(ms, ms * 0.99, ms * 1.01);
        });
        let said = comparison(&all).unwrap();
        assert!(said.contains("costs less for 4 blocks"), "{said}");
        assert!(said.contains("no measurably different share for 2 blocks"), "{said}");
        assert_eq!(comparison(&cells(1, &[1.0, 2.0])), None);
    }

    #[test]
    fn too_few_requests_decide_nothing() {
        let mut answer = Findings::new("blocks", "", "disk".to_owned());
        let mut all = cells(1, &[1.0, 1.0]);
        all[1].requests = 3;
        conclude(&mut answer, Bytes::from_kib(8), &all);
        assert!(!answer.decided && !answer.notes.is_empty());
        assert!(answer.verdict[0].contains("the largest size tried"), "{:?}", answer.verdict);
    }

    #[test]
    fn steps_that_are_no_doublings_are_judged_by_what_a_doubling_may_take() {
        assert_eq!(free_until(&[(1, 1.0), (16, 2.4)]), Some(16));
        assert_eq!(free_until(&[(1, 1.0), (16, 2.5)]), Some(1));
        assert_eq!(free_until(&[]), None);
    }

    proptest! {
        #[test]
        fn what_is_free_is_one_of_the_sizes(times in prop::collection::vec(0.1f64..100.0, 1..12)) {
            let sizes: Vec<(u64, f64)> = (0..).zip(times).map(|(n, t)| (1 << n, t)).collect();
            let free = free_until(&sizes).unwrap();
            prop_assert!(sizes.iter().any(|(size, _)| *size == free));
        }
    }
}
