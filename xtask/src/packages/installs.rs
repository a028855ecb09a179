//! Installs, uses, upgrades and removes each package on the systems it supports.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::chroot::Chroot;
use crate::command::{Output, captured, output};
use crate::dist::{Architecture, Release, ReleaseTools, names, write_packages};
use crate::outcome::{Footnotes, VerbOutcome};

/// Debian releases: name and suite.
const SYSTEMS: [(&str, &str); 4] = [
    ("Debian 11", "bullseye"),
    ("Debian 12", "bookworm"),
    ("Debian 13", "trixie"),
    ("Debian testing", "testing"),
];

/// Files that version 0.1.0, which had no packages, left in its state directory.
const OLD_STATE: [&str; 2] = ["runs.sqlite", "journal.jsonl"];

const PUT_OLD_STATE: &str = "mkdir -p /var/lib/foreread/journal
mv /runs.sqlite /var/lib/foreread
mv /journal.jsonl /var/lib/foreread/journal/1795493377690-30590-4095:9.jsonl";

const OLD_STATE_OPENS: &str = "foreread runs show 1 >/dev/null
foreread rollback all --dry-run | grep -q 4095:9";

/// The steps for a package, in order; steps after a failure are not run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Install,
    Use,
    Upgrade,
    Remove,
}

const STEPS: [(Step, &str); 4] = [
    (Step::Install, "install"),
    (Step::Use, "use"),
    (Step::Upgrade, "upgrade"),
    (Step::Remove, "remove"),
];

const USE: &str = "foreread --version
foreread doctor --json >/tmp/doctor.json
foreread sweep sim:hdd-2008 --vary read_ahead=128K,1M --workload seq-1 --repeats 2 \
    --duration 100ms --json >/tmp/sweep.json
test -s /tmp/doctor.json
test -s /tmp/sweep.json
foreread demo >/tmp/demo
grep -q Measure /tmp/demo";

/// Checks the installed files, and that the package enabled nothing.
const INSTALLED: &str = "test -f /usr/share/man/man1/foreread-tune.1.gz
test -f /usr/share/bash-completion/completions/foreread
test -f /usr/share/doc/foreread/THIRD-PARTY-LICENSES.gz
test ! -e /etc/systemd/system/multi-user.target.wants/foreread-auto.service";

const CHANGE_CONFIGURATION: &str = "echo '# mine' >>/etc/foreread.toml";

const UPGRADED: &str = "grep -q mine /etc/foreread.toml
foreread runs show last >/dev/null";

const REMOVED: &str = "test ! -e /usr/bin/foreread
test -s /var/lib/foreread/runs.sqlite";

/// Packages to install, and packages to upgrade to: the same files with a higher version.
pub struct Packages {
    directory: TempDir,
}

const NEXT_VERSION: &str = "999.0.0";

impl Packages {
    pub fn prepare(release: &Release) -> Result<Self> {
        let packages = Self { directory: tempfile::tempdir()? };
        let of = Architecture::named(std::env::consts::ARCH)?;
        let tools = ReleaseTools::install(&release.target)?;
        let stage = release.stage(of);
        ensure!(stage.is_dir(), "{} does not exist: run dist first", stage.display());
        let directory = packages.path("next");
        fs::create_dir(&directory)?;
        let next = Release { version: NEXT_VERSION.to_owned(), directory, ..release.clone() };
        write_packages(&next, of, &tools, &stage)?;
        for (name, release) in [("first", release), ("next", &next)] {
            for suffix in ["deb", "rpm", "apk", "tar.gz"] {
                let path = artefact(release, of, suffix)?;
                fs::copy(&path, packages.path(&format!("{name}.{suffix}")))?;
            }
            // The name of a wheel is significant.
            let wheels = packages.path("wheels").join(name);
            fs::create_dir_all(&wheels)?;
            let path = artefact(release, of, "whl")?;
            fs::copy(&path, wheels.join(path.file_name().unwrap_or_default()))?;
        }
        Ok(packages)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Returns the artefact of an architecture with this suffix.
pub fn artefact(release: &Release, of: Architecture, suffix: &str) -> Result<PathBuf> {
    let directory = &release.directory;
    let names =
        names(directory).with_context(|| format!("{}: run dist first", directory.display()))?;
    let found = names.into_iter().find(|name| {
        let is_of = name.contains(of.arch()) || name.contains(of.goarch());
        is_of && name.ends_with(&format!(".{suffix}"))
    });
    let found =
        found.with_context(|| format!("no .{suffix} for {} in {}", of.arch(), directory.display()));
    Ok(directory.join(found?))
}

/// Returns the table, and whether every step succeeded.
pub fn table(release: &Release, packages: &Packages) -> Result<(String, bool)> {
    let mut rows = Vec::new();
    let mut tarballs = Vec::new();
    for (system, suite) in SYSTEMS {
        let chroot = Chroot::unpack(&release.root, suite, &[])?;
        for name in ["first.deb", "next.deb", "first.tar.gz"] {
            chroot.copy(&packages.path(name), name)?;
        }
        for name in OLD_STATE {
            let fixtures = release.root.join("crates/foreread/tests/data/upgrade-0.1.0");
            chroot.copy(&fixtures.join(name), name)?;
        }
        rows.push(Row::new(".deb", system, |step| deb(&chroot, step))?);
        tarballs.push(Row::new("tarball", system, |step| tarball(&chroot, step))?);
    }
    let chroot = Chroot::busybox(&release.root)?;
    chroot.copy(&packages.path("first.tar.gz"), "first.tar.gz")?;
    let system = "busybox, without a C library";
    tarballs.push(Row::new("tarball", system, |step| tarball(&chroot, step))?);
    rows.append(&mut tarballs);
    let chroot = Chroot::unpack(&release.root, "bookworm", &[])?;
    rows.push(Row::new(".rpm", "dnf, into Debian 12", |step| rpm(&chroot, packages, step))?);
    if captured(Command::new("apk").arg("--version")).is_ok() {
        let chroot = Chroot::unpack(&release.root, "bookworm", &[])?;
        rows.push(Row::new(".apk", "apk, into Debian 12", |step| apk(&chroot, packages, step))?);
    }
    for (python, version) in pythons() {
        let home = tempfile::tempdir()?;
        let system = format!("pip, Python {version}");
        rows.push(Row::new("wheel", &system, |step| wheel(packages, &python, home.path(), step))?);
    }
    Ok(format(&rows))
}

fn deb(chroot: &Chroot, step: Step) -> Result<Option<Output>> {
    let script = match step {
        Step::Install => format!("{PUT_OLD_STATE}\ndpkg -i /first.deb\n{INSTALLED}"),
        Step::Use => format!("{OLD_STATE_OPENS}\n{USE}"),
        Step::Upgrade => {
            format!("{CHANGE_CONFIGURATION}\ndpkg -i --force-confold /next.deb\n{UPGRADED}")
        }
        Step::Remove => format!(
            "dpkg -r foreread >/tmp/removed\ngrep -q 'kept /var/lib/foreread' /tmp/removed\n\
             grep -q 'rollback all' /tmp/removed\n{REMOVED}\n\
             dpkg --purge foreread\n{REMOVED}\nrm -r /var/lib/foreread"
        ),
    };
    chroot.run(&script).map(Some)
}

fn tarball(chroot: &Chroot, step: Step) -> Result<Option<Output>> {
    let script = match step {
        Step::Install => {
            "mkdir -p /opt/foreread
             tar -xzf /first.tar.gz --strip-components=1 -C /opt/foreread
             ln -s /opt/foreread/bin/foreread /usr/local/bin/foreread
             test -f /opt/foreread/share/man/man1/foreread-tune.1.gz"
        }
        Step::Use => USE,
        // An upgrade is just another directory.
        Step::Upgrade => return Ok(None),
        Step::Remove => "rm -r /opt/foreread /usr/local/bin/foreread",
    };
    chroot.run(script).map(Some)
}

/// Runs dnf outside, which installs into a system without rpm.
fn rpm(chroot: &Chroot, packages: &Packages, step: Step) -> Result<Option<Output>> {
    let repositories = packages.path("no-repositories");
    fs::create_dir_all(&repositories)?;
    let dnf = |verb: &str, package: PathBuf| {
        let mut command = Command::new("dnf");
        command
            .args(["--assumeyes", "--quiet", "--releasever=1", "--nogpgcheck", "--disablerepo=*"])
            .arg(format!("--installroot={}", chroot.root.display()))
            .arg(format!("--setopt=reposdir={}", repositories.display()))
            .arg(verb)
            .arg(package)
            .env("LC_ALL", "C.UTF-8");
        captured(&mut command)
    };
    let (done, then) = match step {
        Step::Install => (dnf("install", packages.path("first.rpm"))?, INSTALLED),
        Step::Use => return chroot.run(USE).map(Some),
        Step::Upgrade => {
            chroot.run(CHANGE_CONFIGURATION)?;
            (dnf("upgrade", packages.path("next.rpm"))?, UPGRADED)
        }
        Step::Remove => (dnf("remove", "foreread".into())?, REMOVED),
    };
    if done.code == 0 { chroot.run(then).map(Some) } else { Ok(Some(done)) }
}

/// Runs apk outside. The packages are not signed.
fn apk(chroot: &Chroot, packages: &Packages, step: Step) -> Result<Option<Output>> {
    let apk = |words: &[&str], package: Option<&str>| {
        let mut command = Command::new("apk");
        command
            .arg("--root")
            .arg(&chroot.root)
            .args(["--arch", std::env::consts::ARCH, "--no-network", "--allow-untrusted"])
            .args(["--repositories-file", "/dev/null"])
            .args(words)
            .args(package.map(|name| packages.path(name)));
        captured(&mut command)
    };
    let (done, then) = match step {
        Step::Install => {
            apk(&["--initdb", "add"], None)?;
            (apk(&["add"], Some("first.apk"))?, INSTALLED)
        }
        Step::Use => return chroot.run(USE).map(Some),
        Step::Upgrade => {
            chroot.run(CHANGE_CONFIGURATION)?;
            (apk(&["add"], Some("next.apk"))?, UPGRADED)
        }
        Step::Remove => (apk(&["del", "foreread"], None)?, REMOVED),
    };
    if done.code == 0 { chroot.run(then).map(Some) } else { Ok(Some(done)) }
}

/// Installs into a separate virtual environment, without an index.
fn wheel(packages: &Packages, python: &str, home: &Path, step: Step) -> Result<Option<Output>> {
    let script = match step {
        Step::Install => {
            "\"$0\" -m venv env && env/bin/pip -q install --no-index \"$1\"/first/*.whl"
        }
        Step::Use => {
            "env/bin/foreread --version && env/bin/foreread doctor --json >/dev/null &&
             env/bin/foreread sweep sim:hdd-2008 --vary read_ahead=128K,1M --workload seq-1 \
                 --repeats 2 --duration 100ms --json >/dev/null"
        }
        Step::Upgrade => {
            "env/bin/pip -q install --no-index --upgrade \"$1\"/next/*.whl &&
             env/bin/pip show foreread | grep -q '^Version: 999'"
        }
        Step::Remove => "env/bin/pip -q uninstall -y foreread && test ! -e env/bin/foreread",
    };
    let mut command = Command::new("sh");
    command
        .args(["-c", script, python])
        .arg(packages.path("wheels"))
        .current_dir(home)
        .env("HOME", home)
        .env("FOREREAD_STORE", home.join("runs.sqlite"))
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    captured(&mut command).map(Some)
}

/// Returns the Python 3 interpreters on PATH, with their versions.
fn pythons() -> Vec<(String, String)> {
    let names = (8..20).map(|minor| format!("python3.{minor}"));
    let version = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])";
    let found = names.filter_map(|name| {
        let printed = output(Command::new(&name).args(["-c", version])).ok()?;
        Some((name, printed))
    });
    found.collect()
}

#[derive(Debug)]
struct Row {
    package: &'static str,
    system: String,
    /// Outcomes of the steps up to the first failure; `None` for a step that does not apply.
    outcomes: Vec<Option<VerbOutcome>>,
}

impl Row {
    fn new(
        package: &'static str,
        system: &str,
        mut run: impl FnMut(Step) -> Result<Option<Output>>,
    ) -> Result<Self> {
        let mut outcomes = Vec::new();
        for (step, name) in STEPS {
            eprintln!("{package}, {system}: {name}");
            outcomes.push(run(step)?.map(|output| match output.code {
                0 => VerbOutcome::Works,
                code => VerbOutcome::Fails(format!("exit code {code}: {}", output.last_line())),
            }));
            if matches!(outcomes.last(), Some(Some(VerbOutcome::Fails(_)))) {
                break;
            }
        }
        Ok(Self { package, system: system.to_owned(), outcomes })
    }
}

fn format(rows: &[Row]) -> (String, bool) {
    let names = STEPS.map(|(_, name)| name).join(" | ");
    let mut text = format!("| package | system | {names} |\n|---|---|---|---|---|---|\n");
    let mut notes = Footnotes::default();
    let mut good = true;
    for row in rows {
        let cells = (0..STEPS.len()).map(|index| match row.outcomes.get(index) {
            Some(Some(outcome)) => {
                good &= *outcome == VerbOutcome::Works;
                notes.cell(outcome.word(), outcome.line())
            }
            Some(None) => "–".to_owned(),
            None => notes.cell("", None),
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| {} | {} | {} |", row.package, row.system, cells.join(" | "));
    }
    let notes = notes.to_string();
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(&notes);
    }
    (text, good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_a_row_and_is_named_below_the_table() {
        let output = |code| Output { code, stdout: String::new(), stderr: "no space\n\n".into() };
        let row = Row::new(".deb", "a system", |step| {
            Ok(match step {
                Step::Install => None,
                Step::Use => Some(output(0)),
                Step::Upgrade => Some(output(1)),
                Step::Remove => panic!("tried after a failure"),
            })
        });
        let (text, good) = format(&[row.expect("tried")]);
        assert!(!good);
        let row = "| .deb | a system | – | works | **FAILS** (1) | not tried |";
        assert!(text.contains(row), "{text}");
        assert!(text.ends_with("\n1. `exit code 1: no space`\n"), "{text}");
    }
}
