//! The results as a document.

use std::fmt::Write as _;

use anyhow::Result;
use stats::Estimate;

use super::programs::Program;
use super::trial::ProgramSample;

/// The requirement: `auto` is no slower than this.
const WORST_ALLOWED: f64 = 0.97;

const HEADER: &str = "\
| program | disk | pairs | s without | ratio | interval | device time | static | MiB | reads |
|---|---|---:|---:|---:|---|---:|---:|---|---|";

/// The runs of one program on one disk.
#[derive(Debug)]
pub struct Cell {
    pub program: Program,
    pub disk: String,
    /// Without and with `auto`.
    pub pairs: Vec<(ProgramSample, ProgramSample)>,
    /// With a static window, if one was measured.
    pub fixed: Vec<ProgramSample>,
}

impl Cell {
    /// Time without ÷ time with `auto`: the median of the pairs with its interval.
    pub fn ratio(&self) -> Option<Estimate> {
        let ratios = self.pairs.iter().map(|(without, with)| without.seconds / with.seconds);
        Estimate::of(&ratios.collect::<Vec<f64>>())
    }

    fn without(&self, of: impl Fn(&ProgramSample) -> f64) -> f64 {
        median(self.pairs.iter().map(|(without, _)| of(without)))
    }

    fn with(&self, of: impl Fn(&ProgramSample) -> f64) -> f64 {
        median(self.pairs.iter().map(|(_, with)| of(with)))
    }

    fn fixed_ratio(&self) -> String {
        if self.fixed.is_empty() {
            return "–".to_owned();
        }
        let fixed = median(self.fixed.iter().map(|sample| sample.seconds));
        format!("{:.2}", self.without(|sample| sample.seconds) / fixed)
    }

    pub fn row(&self) -> String {
        let ratio = self.ratio();
        let value = ratio.map_or(f64::NAN, |ratio| ratio.median);
        let interval = ratio.filter(|ratio| ratio.low().is_finite()).map_or_else(
            || "–".to_owned(),
            |ratio| format!("{:.2}–{:.2}", ratio.low(), ratio.high()),
        );
        let mib = |sample: &ProgramSample| sample.device_bytes as f64 / f64::from(1 << 20);
        let reads = |sample: &ProgramSample| sample.device_reads as f64;
        format!(
            "| {} | {} | {} | {:.2} | {value:.2} | {interval} | {:.2} | {} | {} | {} |",
            self.program.name,
            self.disk,
            self.pairs.len(),
            self.without(|sample| sample.seconds),
            self.without(|s| s.busy_seconds) / self.with(|s| s.busy_seconds),
            self.fixed_ratio(),
            format_args!("{:.0} → {:.0}", self.without(mib), self.with(mib)),
            format_args!("{:.0} → {:.0}", self.without(reads), self.with(reads)),
        )
    }
}

pub fn document(cells: &[Cell]) -> Result<String> {
    let mut text = format!("{HEADER}\n");
    for cell in cells {
        text.push_str(&cell.row());
        text.push('\n');
    }
    text.push('\n');
    let mut disks: Vec<&str> = cells.iter().map(|cell| cell.disk.as_str()).collect();
    disks.dedup();
    for disk in disks {
        let ratios: Vec<(&str, f64)> = cells
            .iter()
            .filter(|cell| cell.disk == disk)
            .filter_map(|cell| Some((cell.program.name, cell.ratio()?.median)))
            .collect();
        let mean = ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let below: Vec<&str> = ratios
            .iter()
            .filter(|(_, ratio)| *ratio < WORST_ALLOWED)
            .map(|(program, _)| *program)
            .collect();
        let below = if below.is_empty() { "none".to_owned() } else { below.join(", ") };
        writeln!(
            text,
            "- {disk}: geometric mean {:.2} over {} programs; below {WORST_ALLOWED}: {below}",
            mean.exp(),
            ratios.len()
        )?;
    }
    text.push_str("\n| program | what it does |\n|---|---|\n");
    let mut described: Vec<&str> = Vec::new();
    for Cell { program, .. } in cells {
        if !described.contains(&program.name) {
            described.push(program.name);
            writeln!(text, "| {} | {} |", program.name, program.description)?;
        }
    }
    Ok(text)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}
