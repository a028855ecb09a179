//! The requirements on the results of the matrix, and whether `auto` meets them.

use super::cells::{MatrixRow, WINDOWS};

const OVER_DEFAULT: f64 = 2.0;
const MIN_GAIN: f64 = 0.95;
/// Share of the time saved by the best window for each workload that `auto` must save, too.
const MIN_CAPTURED_SHARE: f64 = 0.8;
const MAX_AMPLIFICATION: f64 = 1.3;
/// Throughput of the best window relative to 128 KiB above which a cell has headroom.
const MIN_HEADROOM_RATIO: f64 = 1.02;
/// The same for large headroom. With little headroom, the captured share is mostly chance.
const LARGE_GAIN_RATIO: f64 = 1.1;

#[derive(Debug)]
pub struct MatrixVerdict {
    over_default: f64,
    over_single: f64,
    /// Gain over 128 KiB of the best window for each workload, and of the better of it and `auto`.
    bounds: (f64, f64),
    worst: (f64, String),
    captured: f64,
    /// Cells below [`MIN_CAPTURED_SHARE`], and the number of cells with headroom.
    short: (Vec<String>, usize),
    /// Captured share of the cells with large headroom, and the number of these cells.
    captured_of_much: (f64, usize),
    /// Cells above [`MAX_AMPLIFICATION`], with their amplification at 128 KiB and with `auto`.
    wasteful: Vec<String>,
    most_read: (f64, String),
    most_primed: (f64, String),
}

/// Returns the index of the window with the highest geometric mean throughput over all rows.
pub fn best_single(rows: &[MatrixRow]) -> usize {
    let score =
        |at: &usize| rows.iter().map(|row| row.statics[*at].rate.max(1e-9).ln()).sum::<f64>();
    (0..WINDOWS.len()).max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0)
}

impl MatrixVerdict {
    pub fn of(devices: &[(&str, &[MatrixRow])]) -> Self {
        let (mut gains, mut over_single, mut captured) = (Vec::new(), Vec::new(), Vec::new());
        let (mut short, mut bounds) = (Vec::new(), (Vec::new(), Vec::new()));
        let (mut worst, mut most_read) = ((f64::MAX, String::new()), (0.0, String::new()));
        let mut most_primed = (0.0, String::new());
        let (mut of_much, mut wasteful) = (Vec::new(), Vec::new());
        for (device, rows) in devices {
            let single = best_single(rows);
            for row in *rows {
                let name = format!("{} on {device}", row.name);
                gains.push(row.gain());
                over_single.push(row.auto.rate / row.statics[single].rate.max(1e-9));
                let best = row.statics[row.best()].rate / row.default().rate.max(1e-9);
                bounds.0.push(best);
                bounds.1.push(best.max(row.gain()));
                if row.gain() < worst.0 {
                    worst = (row.gain(), name.clone());
                }
                if row.auto.amplification > most_read.0 {
                    most_read = (row.auto.amplification, name.clone());
                }
                if row.auto.amplification > MAX_AMPLIFICATION {
                    let before = row.default().amplification;
                    wasteful.push(format!("{name} ({before:.2} → {:.2})", row.auto.amplification));
                }
                if row.auto.primed > most_primed.0 {
                    most_primed = (row.auto.primed, name.clone());
                }
                if let Some(part) = captured_of(row) {
                    captured.push(part);
                    if best > LARGE_GAIN_RATIO {
                        of_much.push(part);
                    }
                    if part < MIN_CAPTURED_SHARE {
                        short.push(format!("{name} ({:.0} %)", 100.0 * part));
                    }
                }
            }
        }
        let mean_of = |parts: &[f64]| parts.iter().sum::<f64>() / parts.len().max(1) as f64;
        let count = captured.len();
        let captured = mean_of(&captured);
        Self {
            over_default: mean(&gains),
            over_single: mean(&over_single),
            bounds: (mean(&bounds.0), mean(&bounds.1)),
            worst,
            captured: if count == 0 { 1.0 } else { captured },
            short: (short, count),
            captured_of_much: (mean_of(&of_much), of_much.len()),
            wasteful,
            most_read,
            most_primed,
        }
    }

    /// Returns a line of the ablation table: gain over 128 KiB, worst cell, captured share of the
    /// headroom, highest amplification.
    pub fn ablation_row(&self, name: &str) -> String {
        let (worst, cell) = &self.worst;
        format!(
            "| {name} | {:.3} | {worst:.2} ({cell}) | {:.0} % | {:.2} |",
            self.over_default,
            100.0 * self.captured,
            self.most_read.0
        )
    }

    /// Prints a line for each requirement, and remarks. Returns whether all requirements are met.
    pub fn print(&self) -> bool {
        let demands = self.demands();
        for (met, demand) in &demands {
            println!("- {}: {demand}.", if *met { "met" } else { "missed" });
        }
        self.print_remarks();
        demands.iter().all(|(met, _)| *met)
    }

    /// Returns whether each requirement is met, and its description.
    fn demands(&self) -> [(bool, String); 5] {
        [
            (
                self.over_default >= OVER_DEFAULT,
                format!(
                    "throughput at least ×2 relative to 128 KiB: ×{:.2} (geometric mean)",
                    self.over_default
                ),
            ),
            (
                self.over_single > 1.0,
                format!(
                    "faster than the best single window of each device: ×{:.2} (geometric mean)",
                    self.over_single
                ),
            ),
            (
                self.worst.0 >= MIN_GAIN,
                format!(
                    "no cell below ×0.95 relative to 128 KiB: lowest ×{:.2}, {}",
                    self.worst.0, self.worst.1
                ),
            ),
            (
                self.captured >= MIN_CAPTURED_SHARE,
                format!(
                    "at least 80 % of the time that the best window for each workload saves: {:.0} \
                     % (mean of {} cells with headroom)",
                    100.0 * self.captured,
                    self.short.1
                ),
            ),
            (
                self.most_read.0 <= MAX_AMPLIFICATION,
                format!(
                    "amplification at most 1.3, without priming and unread read-ahead at the end: \
                     highest {:.2}, {}",
                    self.most_read.0, self.most_read.1
                ),
            ),
        ]
    }

    /// Prints remarks that explain the figures.
    fn print_remarks(&self) {
        println!(
            "- For comparison, relative to 128 KiB: the best window for each workload ×{:.2}, the \
             better of it and `auto` ×{:.2}.",
            self.bounds.0, self.bounds.1
        );
        if !self.short.0.is_empty() {
            println!(
                "- {} of {} cells with headroom save less than 80 % of that time: {}.",
                self.short.0.len(),
                self.short.1,
                self.short.0.join(", ")
            );
        }
        if self.captured_of_much.1 > 0 {
            println!(
                "- For comparison: {} cells in which the best window gives more than \
                 ×{LARGE_GAIN_RATIO} save {:.0} % of that time.",
                self.captured_of_much.1,
                100.0 * self.captured_of_much.0
            );
        }
        if !self.wasteful.is_empty() {
            println!(
                "- Cells with an amplification above {MAX_AMPLIFICATION}: {} (with 128 KiB → with \
                 `auto`): {}.",
                self.wasteful.len(),
                self.wasteful.join(", ")
            );
        }
        if self.most_primed.0 > 0.0 {
            println!(
                "- Priming read at most {:.2} of the useful bytes, {}.",
                self.most_primed.0, self.most_primed.1
            );
        }
    }
}

/// Returns the time that `auto` saves ÷ the time that the best window saves, limited to -1 to 1;
/// `None` for a cell without headroom.
pub fn captured_of(row: &MatrixRow) -> Option<f64> {
    let time = |rate: f64| 1.0 / rate.max(1e-9);
    let (base, best) = (row.default().rate, row.statics[row.best()].rate);
    (best > base * MIN_HEADROOM_RATIO)
        .then(|| ((time(base) - time(row.auto.rate)) / (time(base) - time(best))).clamp(-1.0, 1.0))
}

fn mean(values: &[f64]) -> f64 {
    let logs = values.iter().map(|value| value.max(1e-9).ln());
    (logs.sum::<f64>() / values.len().max(1) as f64).exp()
}
