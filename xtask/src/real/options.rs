//! Parses the command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::programs::{self, Program};

const DISKS: &str = "hdd-2008,ssd-sata,cloud-ssd";
/// Windows that `--windows best` measures.
const BEST_OF: &str = "16K,64K,512K,1M,4M";

/// The options of `xtask real`.
#[derive(Debug)]
pub struct Options {
    pub programs: Vec<Program>,
    /// Models with their keys; separated by `;` on the command line if any has keys.
    pub disks: Vec<String>,
    /// Number of pairs of runs, without and with `auto`; 0 only prints earlier results.
    pub pairs: u64,
    /// Number of pairs if the first ones do not decide whether `auto` is slower than allowed.
    pub most_pairs: u64,
    /// Factor for the number of operations of each program.
    pub scale: f64,
    /// The program under test; `None` for `target/release/foreread`.
    pub binary: Option<PathBuf>,
    /// Static windows to measure once each, in KiB.
    pub windows_kib: Vec<u64>,
    /// Time limit in minutes: a pair of every program comes first, then further pairs for programs
    /// whose first pair is insufficient. `None` for no limit.
    pub minutes: Option<f64>,
    /// Settings to simulate from a profile of each program, as for `--what-if`.
    pub what_if: Option<String>,
}

impl Options {
    /// Parses the options, each with a value.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            programs: programs::programs().collect(),
            disks: list(DISKS),
            pairs: 3,
            most_pairs: 5,
            scale: 1.0,
            binary: None,
            windows_kib: Vec::new(),
            minutes: None,
            what_if: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = *words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--programs" => options.programs = programs_of(value)?,
                "--disks" => options.disks = list(value),
                "--pairs" => options.pairs = value.parse().context("--pairs needs a number")?,
                "--most-pairs" => {
                    options.most_pairs = value.parse().context("--most-pairs needs a number")?;
                }
                "--scale" => options.scale = value.parse().context("--scale needs a number")?,
                "--binary" => options.binary = Some(std::path::absolute(value)?),
                "--windows" => {
                    let windows = if value == "best" { BEST_OF } else { value };
                    options.windows_kib = windows.split(',').map(kib).collect::<Result<_>>()?;
                }
                "--minutes" => {
                    options.minutes = Some(value.parse().context("--minutes needs a number")?);
                }
                "--what-if" => options.what_if = Some(value.to_owned()),
                _ => bail!("unknown option {word}"),
            }
        }
        Ok(options)
    }
}

fn list(value: &str) -> Vec<String> {
    let separator = if value.contains(';') || value.contains('=') { ';' } else { ',' };
    value.split(separator).map(str::to_owned).collect()
}

fn programs_of(value: &str) -> Result<Vec<Program>> {
    let chosen: Vec<&str> = value.split(',').collect();
    let known: Vec<Program> = programs::programs().collect();
    if let Some(unknown) = chosen.iter().find(|name| known.iter().all(|one| one.name != **name)) {
        let names: Vec<&str> = known.iter().map(|program| program.name).collect();
        bail!("no program is called {unknown}; known: {}", names.join(", "));
    }
    Ok(known.into_iter().filter(|program| chosen.contains(&program.name)).collect())
}

fn kib(value: &str) -> Result<u64> {
    let bytes: units::Bytes = value.parse().context("--windows needs sizes such as 4M")?;
    Ok(bytes.get() / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_with_keys_are_separated_by_semicolons() {
        let options = Options::parse(&[
            "--disks",
            "hdd-2008,dilation=4;nvme",
            "--programs",
            "tar,numpy-8",
            "--windows",
            "4M,16K",
        ])
        .unwrap();
        assert_eq!(options.disks, ["hdd-2008,dilation=4", "nvme"]);
        assert_eq!(options.programs.len(), 2);
        assert_eq!(options.windows_kib, [4096, 16]);
        assert!(Options::parse(&["--programs", "emacs"]).is_err());
        let options = Options::parse(&["--windows", "best", "--minutes", "2.5"]).unwrap();
        assert_eq!(options.windows_kib, [16, 64, 512, 1024, 4096]);
        assert_eq!(options.minutes, Some(2.5));
    }
}
