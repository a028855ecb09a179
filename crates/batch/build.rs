//! Computes the version of the simulator: results of different versions must not be mixed.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// Crates whose code affects simulation results.
const SIMULATOR: [&str; 8] =
    ["batch", "control", "model", "policy", "sim", "stats", "trace", "workload"];

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let crates = package.parent().unwrap_or(&package);
    let mut files = Vec::new();
    for name in SIMULATOR {
        let source = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        list(&source, &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(crates).unwrap_or(&file);
        hash.update(name.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(fs::read(&file)?);
        hash.update([0]);
    }
    let hash: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=FOREREAD_SIMULATOR_VERSION={version}+{hash}");
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
