//! Compares the static build with one that uses this system's C library (`make build`), in the same
//! run.
//!
//! Both builds run the benchmarks of the simulator and of cached reads, in pairs in random order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Message;
use stats::Estimate;

use crate::command::{captured, output};
use crate::dist::{Architecture, Release, ReleaseTools, static_cargo};

const PAIR_COUNT: u64 = 9;

/// Minimum speed of the static build ÷ speed of the other.
const MIN_SPEED_RATIO: f64 = 0.93;

/// A benchmark. Its output lines are a case, which may contain blanks, and columns of numbers; the
/// first number is foreread's speed.
struct SpeedBenchmark {
    package: &'static str,
    name: &'static str,
    words: &'static [&'static str],
    column_count: usize,
}

const BENCHMARKS: [SpeedBenchmark; 2] = [
    SpeedBenchmark {
        package: "foreread-sim",
        name: "speed",
        words: &["--seconds", "0.3"],
        column_count: 3,
    },
    SpeedBenchmark {
        package: "foreread-bench",
        name: "engine_vs_fio",
        words: &[".", "256M", "1", "cached"],
        column_count: 6,
    },
];

/// Speeds by case.
type Speeds = BTreeMap<String, Vec<f64>>;

/// Returns the table of cases, and whether no case is too slow.
pub fn table(release: &Release) -> Result<(String, bool)> {
    let tools = ReleaseTools::install(&release.target)?;
    let of = Architecture::named(std::env::consts::ARCH)?;
    let mut other = release.command(release.root.join("scripts/cargo"));
    other.args(["bench", "--locked"]);
    let programs = [programs(static_cargo(release, "bench", &[of], &tools)?)?, programs(other)?];
    let mut speeds = [Speeds::new(), Speeds::new()];
    for pair in 0..PAIR_COUNT {
        for (index, benchmark) in BENCHMARKS.iter().enumerate() {
            let first = usize::from(is_swapped(pair, index));
            for build in [first, 1 - first] {
                measure(benchmark, &programs[build][index], &mut speeds[build])?;
            }
        }
        eprintln!("pair {} of {PAIR_COUNT}", pair + 1);
    }
    let [of_static, of_other] = speeds;
    let mut text = "| case | static ÷ glibc | 95 % interval | required | met |\n\
                    |---|---:|---|---|---|\n"
        .to_owned();
    let mut good = true;
    for (case, speeds) in &of_static {
        let others = of_other.get(case).with_context(|| format!("no {case} with glibc"))?;
        let ratios: Vec<f64> = speeds.iter().zip(others).map(|(one, other)| one / other).collect();
        let ratio = Estimate::from_values(&ratios).context("no pair")?;
        let met = ratio.median >= MIN_SPEED_RATIO;
        good &= met;
        let met = if met { "yes" } else { "**no**" };
        let (low, high) = (ratio.low(), ratio.high());
        let _ = writeln!(
            text,
            "| {case} | {:.2} | {low:.2}–{high:.2} | {MIN_SPEED_RATIO} | {met} |",
            ratio.median
        );
    }
    Ok((text, good))
}

/// Returns one bit of a hash, so that the order of the builds follows no pattern of the machine.
fn is_swapped(pair: u64, benchmark: usize) -> bool {
    // Multiplier of Knuth's MMIX generator.
    let mixed = (pair * 31 + benchmark as u64 + 1).wrapping_mul(6_364_136_223_846_793_005);
    mixed >> 63 == 1
}

/// Builds the benchmarks; returns their programs, in the order of [`BENCHMARKS`].
fn programs(mut cargo: Command) -> Result<Vec<PathBuf>> {
    cargo.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    for benchmark in &BENCHMARKS {
        cargo.args(["--package", benchmark.package, "--bench", benchmark.name]);
    }
    let printed = output(cargo.stderr(Stdio::inherit()))?;
    let mut built = BTreeMap::new();
    for message in Message::parse_stream(printed.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(path) = artifact.executable
        {
            built.insert(artifact.target.name, path.into_std_path_buf());
        }
    }
    let mut path = |benchmark: &SpeedBenchmark| {
        built.remove(benchmark.name).with_context(|| format!("{} was not built", benchmark.name))
    };
    BENCHMARKS.iter().map(&mut path).collect()
}

fn measure(benchmark: &SpeedBenchmark, program: &Path, speeds: &mut Speeds) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new(program);
    let printed = captured(command.args(benchmark.words).current_dir(directory.path()))?;
    ensure!(printed.code == 0, "{}: {}", program.display(), printed.stderr);
    let cases = cases(&printed.stdout, benchmark.column_count);
    ensure!(!cases.is_empty(), "{}: no case in {}", program.display(), printed.stdout);
    for (case, speed) in cases {
        speeds.entry(case).or_default().push(speed);
    }
    Ok(())
}

/// Returns the lines that end with `column_count` numbers: the text before, and the first number.
fn cases(printed: &str, column_count: usize) -> Vec<(String, f64)> {
    let case = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, columns) = words.split_at_checked(words.len().checked_sub(column_count)?)?;
        let numbers: Vec<f64> =
            columns.iter().map(|word| word.parse()).collect::<Result<_, _>>().ok()?;
        let is_case = !name.is_empty();
        is_case.then(|| (name.join(" "), numbers[0]))
    };
    printed.lines().filter_map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_all_numbers_is_a_case() {
        let printed = "page references a second (million)   extents  by page  ratio\n\
                       seq-8 nvme,cache=512M 1024K   73.0  19.5  3.74\n\
                       at least 20 million: 12 of 13\n";
        assert_eq!(cases(printed, 3), [("seq-8 nvme,cache=512M 1024K".to_owned(), 73.0)]);
        let order: Vec<bool> = (0..PAIR_COUNT).map(|pair| is_swapped(pair, 0)).collect();
        assert!(order.contains(&true) && order.contains(&false), "{order:?}");
    }
}
