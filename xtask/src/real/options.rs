//! What the command line asks for.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::programs::{PROGRAMS, Program};

const DISKS: &str = "hdd-2008,ssd-sata,cloud-ssd";

/// The options of `xtask real`.
#[derive(Debug)]
pub struct Options {
    pub programs: Vec<Program>,
    /// Models with their keys, separated by `;` on the command line where one has keys.
    pub disks: Vec<String>,
    /// Pairs of runs, without and with `auto`.
    pub pairs: u64,
    /// Operations of each program, as a multiple of its own.
    pub scale: f64,
    /// The program under test; `target/release/foreread` unless it is given.
    pub binary: Option<PathBuf>,
    /// A static window that is measured beside, such as `4M`, in KiB.
    pub static_kib: Option<u64>,
}

impl Options {
    /// Reads `--programs`, `--disks`, `--pairs`, `--scale`, `--binary` and `--static`.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            programs: PROGRAMS.to_vec(),
            disks: list(DISKS),
            pairs: 3,
            scale: 1.0,
            binary: None,
            static_kib: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = *words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--programs" => options.programs = programs(value)?,
                "--disks" => options.disks = list(value),
                "--pairs" => options.pairs = value.parse().context("--pairs needs a number")?,
                "--scale" => options.scale = value.parse().context("--scale needs a number")?,
                "--binary" => options.binary = Some(std::path::absolute(value)?),
                "--static" => options.static_kib = Some(kib(value)?),
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

fn programs(value: &str) -> Result<Vec<Program>> {
    let chosen: Vec<&str> = value.split(',').collect();
    if let Some(unknown) = chosen.iter().find(|name| PROGRAMS.iter().all(|one| one.name != **name))
    {
        let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("no program is called {unknown}; known: {}", names.join(", "));
    }
    Ok(PROGRAMS.iter().filter(|program| chosen.contains(&program.name)).copied().collect())
}

fn kib(value: &str) -> Result<u64> {
    let bytes: units::Bytes = value.parse().context("--static needs a size such as 4M")?;
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
            "--static",
            "4M",
        ])
        .unwrap();
        assert_eq!(options.disks, ["hdd-2008,dilation=4", "nvme"]);
        assert_eq!(options.programs.len(), 2);
        assert_eq!(options.static_kib, Some(4096));
        assert!(Options::parse(&["--programs", "emacs"]).is_err());
    }
}
