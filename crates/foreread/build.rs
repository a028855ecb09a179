//! Records the commit and the target of this build. Without git, or outside a checkout, the commit
//! is `unknown`; nothing else changes.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A build from an archive sets this variable.
    println!("cargo:rerun-if-env-changed=FOREREAD_COMMIT");
    let given = std::env::var("FOREREAD_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(commit).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=BUILD_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

/// Returns the commit of this checkout. Cargo reruns this only after a commit or branch change.
fn commit() -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    // An archive that was unpacked inside another project's checkout has no commit.
    if Path::new(&top).canonicalize().ok()? != here.canonicalize().ok()? {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        // Cargo treats a missing file as changed.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
