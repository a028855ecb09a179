//! The files of a package, as installed below `/usr`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Release;
use super::architecture::Architecture;
use crate::command::{output, run};

/// Directories in which shells look for completions; Debian's zsh uses the first one for zsh.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "share/bash-completion/completions/foreread"),
    ("zsh", "share/zsh/vendor-completions/_foreread"),
    ("zsh", "share/zsh/site-functions/_foreread"),
    ("fish", "share/fish/vendor_completions.d/foreread.fish"),
];

/// Files that are copied unchanged.
const COPIES: [(&str, &str); 13] = [
    ("packaging/foreread-auto.service", "lib/systemd/system/foreread-auto.service"),
    ("packaging/foreread-metrics.service", "lib/systemd/system/foreread-metrics.service"),
    ("packaging/foreread-metrics.timer", "lib/systemd/system/foreread-metrics.timer"),
    ("packaging/prometheus/foreread-alerts.yml", "share/foreread/prometheus/foreread-alerts.yml"),
    (
        "packaging/prometheus/foreread-recording.yml",
        "share/foreread/prometheus/foreread-recording.yml",
    ),
    ("packaging/grafana/foreread.json", "share/foreread/grafana/foreread.json"),
    // TuneD uses the first directory since 2.23; earlier versions use only the second.
    ("packaging/tuned.conf", "lib/tuned/profiles/foreread-disks/tuned.conf"),
    ("packaging/tuned.conf", "lib/tuned/foreread-disks/tuned.conf"),
    ("README.md", "share/doc/foreread/README.md"),
    ("SECURITY.md", "share/doc/foreread/SECURITY.md"),
    ("LICENSE-APACHE", "share/doc/foreread/LICENSE-APACHE"),
    ("LICENSE-MIT", "share/doc/foreread/LICENSE-MIT"),
    ("packaging/copyright", "share/doc/foreread/copyright"),
];

/// Creates the tree; returns its directory.
pub fn fill(release: &Release, of: Architecture, binary: &Path, licences: &str) -> Result<PathBuf> {
    let stage = release.stage(of);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    let usr = stage.join("usr");
    let program = usr.join("bin/foreread");
    put(&program, &fs::read(binary)?)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    for (from, to) in COPIES {
        let from = release.root.join(from);
        let bytes = fs::read(&from).with_context(|| from.display().to_string())?;
        put(&usr.join(to), &bytes)?;
    }
    let documents = usr.join("share/doc/foreread");
    // Messages and manual pages refer to chapters as docs/NAME.
    run(release.command("cp").args(["-R", "docs"]).arg(&documents))?;
    put(&documents.join("THIRD-PARTY-LICENSES"), licences.as_bytes())?;
    put(&documents.join("changelog"), &fs::read(release.root.join("CHANGELOG.md"))?)?;
    compress(&documents.join("THIRD-PARTY-LICENSES"))?;
    compress(&documents.join("changelog"))?;
    let debian = stage.join("debian/changelog");
    put(&debian, debian_changelog(release)?.as_bytes())?;
    compress(&debian)?;
    let runner = Runner::of(of, binary);
    for (shell, to) in COMPLETIONS {
        put(&usr.join(to), runner.print(&["completions", shell])?.as_bytes())?;
    }
    manual(&runner, &usr.join("share/man/man1"))?;
    run(release.command("find").arg(&stage).args(["-exec", "touch", "-hd"]).args([
        &format!("@{}", release.epoch),
        "{}",
        "+",
    ]))?;
    Ok(stage)
}

/// Returns the changelog of the .deb, which Debian's policy requires besides the program's own.
fn debian_changelog(release: &Release) -> Result<String> {
    let mut date = Command::new("date");
    let date = output(date.args(["-u", "-R", "-d", &format!("@{}", release.epoch)]))?;
    Ok(format!(
        "foreread ({}-1) unstable; urgency=medium\n\n  * This version; its changes are in \
         /usr/share/doc/foreread/changelog.gz.\n\n -- foreread developers \
         <foreread@users.noreply.github.com>  {date}\n",
        release.version
    ))
}

/// Writes one page for the program, for each verb, and for each nested verb.
fn manual(runner: &Runner, directory: &Path) -> Result<()> {
    let grammar: Value = serde_json::from_str(&runner.print(&["complete", "--grammar"])?)?;
    page(runner, directory, &[])?;
    pages(runner, directory, &grammar["command"], &[])?;
    page(runner, directory, &["help"])
}

fn pages(runner: &Runner, directory: &Path, verb: &Value, above: &[&str]) -> Result<()> {
    let below = verb["verbs"].as_array().into_iter().flatten();
    for verb in below.filter(|verb| verb["hidden"] != Value::Bool(true)) {
        let name = verb["name"].as_str().context("a verb without a name")?;
        let words = [above, &[name]].concat();
        page(runner, directory, &words)?;
        pages(runner, directory, verb, &words)?;
    }
    Ok(())
}

fn page(runner: &Runner, directory: &Path, words: &[&str]) -> Result<()> {
    let text = runner.print(&[&["help", "--man"], words].concat())?;
    let name = [&["foreread"], words].concat().join("-");
    let path = directory.join(format!("{name}.1"));
    put(&path, (text + "\n").as_bytes())?;
    compress(&path)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Compresses without name and time, so that equal files remain equal.
fn compress(path: &Path) -> Result<()> {
    run(Command::new("gzip").args(["-9", "-n", "-f"]).arg(path))
}

/// Runs the binary, with an emulator if it is for another architecture.
struct Runner {
    words: Vec<std::ffi::OsString>,
}

impl Runner {
    fn of(of: Architecture, binary: &Path) -> Self {
        let mut words = Vec::new();
        if of.arch() != std::env::consts::ARCH {
            words.push(format!("qemu-{}-static", of.arch()).into());
        }
        words.push(binary.into());
        Self { words }
    }

    fn print(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.words[0]);
        // Ignores all configuration files of this machine's user.
        command.env_clear().env("FOREREAD_CONFIG", "").env("LANG", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        output(command.args(&self.words[1..]).args(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packaged unit has at least the restrictions of `foreread auto --emit systemd`.
    #[test]
    fn the_unit_of_the_package_is_as_strict_as_the_one_that_is_emitted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a repository");
        let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file");
        let (emitted, packaged) =
            (read("crates/daemon/src/service.rs"), read("packaging/foreread-auto.service"));
        let section = emitted.split("[Service]\n").nth(1).expect("a service");
        let section = section.split("[Install]").next().unwrap_or_default();
        // Long lines are continued.
        let section = section.replace("\\\n", "");
        let rules = section.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
        let rules: Vec<&str> = rules.filter(|line| !line.contains("{program}")).collect();
        assert!(rules.len() > 20, "{rules:?}");
        for rule in rules {
            assert!(packaged.lines().any(|line| line == rule), "not in the package: {rule}");
        }
    }
}
