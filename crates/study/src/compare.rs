//! Compares two runs: the same settings and workloads on another filesystem, controller, kernel or
//! host, or in simulation.
//!
//! Runs at different times share no blocks, so cells are compared by their own intervals instead of
//! pairs of trials. The interval of a ratio includes the variation of both runs.

use std::collections::BTreeMap;

use serde::Serialize;
use stats::{Estimate, geometric_mean};

use crate::analyse::{Analysis, Cell, Curve, Difference, classify};
use crate::conditions::{RunDifference, conditions};
use crate::settings::CellSettings;
use crate::store::Run;

/// Minimum blocks for an interval from blocks; with fewer, it comes from the cells' intervals.
const MIN_BLOCKS: usize = 3;

/// The comparison of a second run with a first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// Cells of both runs, by workload, then by ascending settings.
    pub cells: Vec<CellPair>,
    /// The mean ratio over all cells of each workload.
    pub per_workload: Vec<MeanRatio>,
    /// The mean ratio over all cells; `None` without common cells.
    pub overall: Option<MeanRatio>,
    /// Each workload under its best setting in each run.
    pub own_best: Vec<OwnBest>,
    /// Other differences between the runs, most important first.
    pub conditions: Vec<RunDifference>,
    /// Number of cells that only the first run has.
    pub only_first: usize,
    /// Number of cells that only the second run has.
    pub only_second: usize,
}

/// A cell that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellPair {
    pub settings: CellSettings,
    pub workload: String,
    pub first_mib_s: Estimate,
    pub second_mib_s: Estimate,
    pub ratio: Estimate,
    pub difference: Difference,
    /// Second ÷ first of the amplification; `None` unless both runs measured it.
    pub amplification_ratio: Option<f64>,
    /// Second ÷ first of the 99th percentile of latency; `None` unless both runs measured it.
    pub p99_ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeanRatio {
    /// Name of the workload; `None` for all workloads.
    pub workload: Option<String>,
    pub cells: usize,
    /// Geometric mean of second ÷ first.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// A workload under the setting of its highest throughput in each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnBest {
    pub workload: String,
    /// The setting in the first run.
    pub first_settings: CellSettings,
    /// The setting in the second run.
    pub second_settings: CellSettings,
    /// Throughput of the first run under its setting.
    pub first_mib_s: Estimate,
    /// Throughput of the second run under its setting.
    pub second_mib_s: Estimate,
    pub ratio: Estimate,
    pub difference: Difference,
}

/// Compares a second run with a first.
pub fn compare(first: (&Run, &Analysis), second: (&Run, &Analysis)) -> RunComparison {
    let twin = |cell: &Cell| {
        let same =
            |other: &&Cell| other.workload == cell.workload && other.settings == cell.settings;
        second.1.cells.iter().find(same)
    };
    let cells: Vec<CellPair> =
        first.1.cells.iter().filter_map(|cell| Some(pair(cell, twin(cell)?))).collect();
    let mut workloads: Vec<&str> = first.1.cells.iter().map(|c| c.workload.as_str()).collect();
    workloads.dedup();
    let of = |workload: Option<&str>| {
        let ours = |cell: &&CellPair| workload.is_none_or(|name| cell.workload == name);
        let chosen: Vec<&CellPair> = cells.iter().filter(ours).collect();
        together(workload, &chosen, first.0, second.0)
    };
    RunComparison {
        per_workload: workloads.iter().filter_map(|name| of(Some(name))).collect(),
        overall: of(None),
        own_best: workloads.iter().filter_map(|name| own_best(name, first.0, second.0)).collect(),
        conditions: conditions(first.0, second.0),
        only_first: first.1.cells.len() - cells.len(),
        only_second: second.1.cells.len() - cells.len(),
        cells,
    }
}

fn pair(first: &Cell, second: &Cell) -> CellPair {
    let ratio = second.throughput_mib_s.over(&first.throughput_mib_s);
    let of = |above: Option<f64>, below: Option<f64>| {
        above.zip(below).map(|(above, below)| above / below).filter(|ratio| ratio.is_finite())
    };
    CellPair {
        settings: first.settings.clone(),
        workload: first.workload.clone(),
        first_mib_s: first.throughput_mib_s,
        second_mib_s: second.throughput_mib_s,
        ratio,
        difference: classify(&ratio),
        amplification_ratio: of(
            second.amplification.map(|a| a.median),
            first.amplification.map(|a| a.median),
        ),
        p99_ratio: of(second.latency_us.map(|l| l.p99), first.latency_us.map(|l| l.p99)),
    }
}

/// Returns the geometric mean of the cells' ratios. A disturbance may affect all cells of a block,
/// so the interval comes from whole blocks if both runs have enough of them; otherwise it combines
/// the cells' own intervals.
fn together(
    workload: Option<&str>,
    cells: &[&CellPair],
    first: &Run,
    second: &Run,
) -> Option<MeanRatio> {
    let ratios: Vec<f64> = cells.iter().map(|cell| cell.ratio.median).collect();
    let centre = geometric_mean(&ratios)?;
    let by_block = || {
        let (a, b) = (block_means(first, cells), block_means(second, cells));
        if a.len().min(b.len()) < MIN_BLOCKS {
            return None;
        }
        let ratio = Estimate::from_values(&b)?.over(&Estimate::from_values(&a)?);
        // Scaled to the mean of the cells' own ratios, so that all tables show the same centre.
        let scale = centre / ratio.median;
        Some(ratio.map(|end| end * scale))
    };
    let ratio = by_block().unwrap_or_else(|| {
        let each: Vec<Estimate> = cells.iter().map(|cell| cell.ratio).collect();
        Estimate::geometric_mean(centre, &each)
    });
    let (workload, difference) = (workload.map(str::to_owned), classify(&ratio));
    Some(MeanRatio { workload, cells: cells.len(), ratio, difference })
}

/// Returns the geometric mean over the cells, for each block that contains all of them.
fn block_means(run: &Run, cells: &[&CellPair]) -> Vec<f64> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        let values = crate::analyse::throughputs(run.trials.iter(), &cell.workload, &cell.settings);
        for (block, value) in values {
            blocks.entry(block).or_default().push(value);
        }
    }
    let whole = blocks.values().filter(|values| values.len() == cells.len());
    whole.filter_map(|values| geometric_mean(values)).collect()
}

fn own_best(workload: &str, first: &Run, second: &Run) -> Option<OwnBest> {
    let a = Curve::from_trials(&first.trials, workload, first.seed);
    let b = Curve::from_trials(&second.trials, workload, second.seed);
    let (best_a, best_b) = (a.best()?, b.best()?);
    let (first_mib_s, second_mib_s) = (a.alone(best_a)?, b.alone(best_b)?);
    let ratio = second_mib_s.over(&first_mib_s);
    Some(OwnBest {
        workload: workload.to_owned(),
        first_settings: best_a.settings.clone(),
        second_settings: best_b.settings.clone(),
        first_mib_s,
        second_mib_s,
        difference: classify(&ratio),
        ratio,
    })
}

#[cfg(test)]
mod tests {
    use units::Kib;

    use super::*;
    use crate::analyse::analyse;
    use crate::grid::Grid;
    use crate::plan::Repeats;
    use crate::sweep::BlockStrategy;
    use crate::synthetic::World;

    fn run(rate: f64, seed: u64, grid: &[u64]) -> Run {
        let curve = vec![(4.0, 50.0 * rate), (1024.0, 400.0 * rate), (65536.0, 420.0 * rate)];
        let world = World { seed, drift: 0.02, ..World::of(vec![("seq-8", curve)]) };
        let grid = Grid::Values(grid.iter().copied().map(Kib::new).collect());
        let repeats = Repeats::exactly(5);
        world.run(world.study(&grid, |field| Box::new(BlockStrategy::new(field, repeats))))
    }

    fn compared(first: &Run, second: &Run) -> RunComparison {
        compare((first, &analyse(first)), (second, &analyse(second)))
    }

    #[test]
    fn what_is_faster_is_found_faster_in_every_cell_and_over_all() {
        let (slow, fast) = (run(1.0, 1, &[4, 128, 1024, 8192]), run(1.4, 2, &[128, 1024, 8192]));
        let found = compared(&slow, &fast);
        assert_eq!((found.cells.len(), found.only_first, found.only_second), (3, 1, 0));
        for cell in &found.cells {
            assert_eq!(cell.difference, Difference::Faster, "{cell:?}");
            assert!(cell.ratio.low() < 1.4 && 1.4 < cell.ratio.high() * 1.1, "{cell:?}");
        }
        let overall = found.overall.unwrap();
        assert_eq!((overall.difference, overall.cells), (Difference::Faster, 3));
        assert!((overall.ratio.median - 1.4).abs() < 0.08, "{overall:?}");
        assert_eq!(found.own_best[0].difference, Difference::Faster);
        let back = compared(&fast, &slow).overall.unwrap();
        assert_eq!(back.difference, Difference::Slower);
        assert!((back.ratio.median * overall.ratio.median - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_same_twice_is_hardly_ever_a_difference() {
        let fooled = (0..30)
            .filter(|seed| {
                let (a, b) = (run(1.0, 10 + seed, &[128, 8192]), run(1.0, 90 + seed, &[128, 8192]));
                let overall = compared(&a, &b).overall.unwrap().difference;
                matches!(overall, Difference::Faster | Difference::Slower)
            })
            .count();
        assert!(fooled <= 4, "{fooled} of 30");
    }

    #[test]
    fn runs_with_nothing_in_common_are_not_compared() {
        let found = compared(&run(1.0, 1, &[4, 8]), &run(1.0, 2, &[16, 32]));
        assert!(found.cells.is_empty() && found.overall.is_none() && found.per_workload.is_empty());
        assert_eq!(found.own_best.len(), 1, "each under its own best setting still can be");
    }
}
