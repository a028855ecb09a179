//! Builds the static binary of an architecture.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Release;
use super::architecture::Architecture;
use super::tools::ReleaseTools;
use crate::command::{cargo, output, run};

/// Maximum size of the binary; a larger one is a mistake, such as symbols that were not stripped.
const BINARY_MAX_BYTES: u64 = 15_000_000;

/// Not in the cargo profile, whose flags do not apply to a package with an override.
///
/// Relative relocations are packed (`DT_RELR`, which musl supports since 1.2.4), and functions with
/// identical code are merged: neither Rust nor SQLite relies on functions having distinct
/// addresses.
const LINK_FLAGS: [&str; 3] =
    ["-Cstrip=symbols", "-Clink-arg=-zpack-relative-relocs", "-Clink-arg=--icf=all"];

/// Builds the binaries of all architectures at once: linking, the longest step, uses only one CPU.
pub fn build(release: &Release, all: &[Architecture], tools: &ReleaseTools) -> Result<()> {
    let mut command = static_cargo(release, "build", all, tools)?;
    command.args(["-p", "foreread", "--bin", "foreread"]);
    run(&mut command)
}

/// Returns a cargo command that builds static programs as released.
pub fn static_cargo(
    release: &Release,
    verb: &str,
    all: &[Architecture],
    tools: &ReleaseTools,
) -> Result<Command> {
    let mut command = release.command(cargo());
    command.args([verb, "--profile", "dist", "--locked"]);
    let mut flags = prefixes(release, "--remap-path-prefix=")?;
    flags.extend(LINK_FLAGS.map(str::to_owned));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    for of in all {
        let triple = of.triple();
        run(Command::new("rustup").args(["target", "add", &triple]))
            .context("a static build needs the musl target of Rust (rustup)")?;
        let variable = triple.replace('-', "_");
        command
            .args(["--target", &triple])
            .env(format!("CC_{variable}"), tools.compiler(*of))
            .env(format!("AR_{variable}"), "ar")
            .env(format!("CFLAGS_{variable}"), c_flags(release)?)
            // Rust ships musl and its start files, so no linker for the architecture is needed.
            .env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), "rust-lld");
    }
    Ok(command)
}

/// Returns the path where [`build`] places the binary of an architecture.
pub fn path(release: &Release, of: Architecture) -> PathBuf {
    release.target.join(of.triple()).join("dist/foreread")
}

/// Checks that the binary is a static program that is small enough to ship.
pub fn check(binary: &Path) -> Result<()> {
    let name = binary.display();
    let bytes = std::fs::read(binary).with_context(|| format!("reading {name}"))?;
    ensure!(bytes.starts_with(b"\x7fELF"), "{name} is no program for Linux");
    let count = bytes.len() as u64;
    ensure!(count <= BINARY_MAX_BYTES, "{name}: {count} bytes, at most {BINARY_MAX_BYTES}");
    let loaders: [&[u8]; 2] = [b"/ld-linux", b"/ld-musl"];
    // The name of the loader is near the start of a program that needs one.
    let head = &bytes[..bytes.len().min(4096)];
    let needs = |loader: &&[u8]| head.windows(loader.len()).any(|part| part == *loader);
    ensure!(!loaders.iter().any(needs), "{name} is not static");
    Ok(())
}

/// mimalloc contains its compilation time. `SOURCE_DATE_EPOCH` would change that time, but does not
/// make cargo recompile it for another commit.
fn c_flags(release: &Release) -> Result<String> {
    let timeless = "-Wno-builtin-macro-redefined -D__DATE__=\"\" -D__TIME__=\"\"";
    Ok(format!("{} {timeless}", prefixes(release, "-ffile-prefix-map=")?.join(" ")))
}

/// Returns options that keep this machine's directories out of the binary.
fn prefixes(release: &Release, option: &str) -> Result<Vec<String>> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let home = std::env::var("CARGO_HOME").or_else(|_| {
        std::env::var("HOME").map(|home| format!("{home}/.cargo")).context("HOME is not set")
    })?;
    let root = release.root.display().to_string();
    let from = [(root, "/foreread"), (home, "/cargo"), (sysroot, "/rust")];
    Ok(from.map(|(from, to)| format!("{option}{from}={to}")).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut bytes = b"\x7fELF".to_vec();
        bytes.resize(5000, 0);
        std::fs::write(file.path(), &bytes).expect("written");
        check(file.path()).expect("static");
        bytes[600..627].copy_from_slice(b"/lib64/ld-linux-x86-64.so.2");
        std::fs::write(file.path(), &bytes).expect("written");
        assert!(check(file.path()).is_err());
        std::fs::write(file.path(), "#!/bin/sh\n").expect("written");
        assert!(check(file.path()).is_err());
    }
}
