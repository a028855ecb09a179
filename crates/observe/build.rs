//! Compiles the BPF programs into the binary, so that no compiler is needed at run time.
//!
//! A development build without clang has no probes: commands report this where they would use them,
//! and poll instead. A release build without clang fails, unless `FOREREAD_WITHOUT_PROBES` is set.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use flate2::Compression;
use flate2::read::DeflateEncoder;

/// Each program is a separate object, so that only the maps that are used are created.
const PROGRAMS: [&str; 4] = ["open_files", "events", "profile", "samples"];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(bpf_object)");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rerun-if-env-changed=FOREREAD_WITHOUT_PROBES");
    match PROGRAMS.iter().try_for_each(|name| compile(name)) {
        Ok(()) => println!("cargo:rustc-cfg=bpf_object"),
        Err(problem) if are_required() => println!(
            "cargo::error=a release build needs clang for the kernel probes: {problem}; install \
             clang (scripts/deps does), or set FOREREAD_WITHOUT_PROBES=1"
        ),
        Err(problem) => {
            println!(
                "cargo:warning=built without kernel probes: {problem}; to list open files and to \
                 watch, install clang (scripts/deps does) and build again"
            );
            // A file that never exists, so that the next build tries again.
            println!("cargo:rerun-if-changed=bpf/compiled");
        }
    }
}

/// Returns whether probes are required: a release must not lack them unnoticed.
fn are_required() -> bool {
    env::var("PROFILE").as_deref() == Ok("release")
        && env::var_os("FOREREAD_WITHOUT_PROBES").is_none()
}

fn compile(name: &str) -> Result<(), String> {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("cargo sets no {name}"));
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("bpf");
    let object = PathBuf::from(variable("OUT_DIR")?).join(format!("{name}.bpf.o"));
    let endian = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    // The numbers and registers of system calls depend on the architecture.
    let machine = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "-DFOREREAD_X86_64",
        _ => "-DFOREREAD_GENERIC_CALLS",
    };
    let output = Command::new(&clang)
        .args(["-O2", "-g", "-mcpu=v3", "-ffreestanding", "-nostdinc", "-Wall", "-Wextra"])
        .args(["-Werror", "-target", endian, machine])
        // Paths of the build machine must not be in the object.
        .arg(format!("-ffile-prefix-map={}=.", source.display()))
        .arg("-fdebug-compilation-dir=.")
        .arg("-c")
        .arg(source.join(format!("{name}.bpf.c")))
        .arg("-o")
        .arg(&object)
        .output();
    match output {
        Err(error) => Err(format!("{} cannot be started ({error})", clang.display())),
        Ok(output) if output.status.success() => {
            deflate(&object).map_err(|error| format!("{}: {error}", object.display()))
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("no reason");
            Err(format!("{} refuses the programs ({first})", clang.display()))
        }
    }
}

/// Compresses an object: it is read only at load time, and describes mostly types and lines.
fn deflate(object: &Path) -> io::Result<()> {
    let bytes = fs::read(object)?;
    let mut packer = DeflateEncoder::new(bytes.as_slice(), Compression::best());
    let mut packed = fs::File::create(object.with_extension("deflate"))?;
    io::copy(&mut packer, &mut packed).map(drop)
}
