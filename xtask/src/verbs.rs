//! The verbs of foreread, and how each is run on other systems: where something is missing (`xtask
//! packages`), and on other kernels (`xtask kernels`).
//!
//! A script has an empty directory `$D`, files `/srv/data/file1` to `file9` on a separate file
//! system, and the program `reader`.

use crate::command::Output;
use crate::outcome::VerbOutcome;

/// Reads a file in pieces, each time from the disk.
pub const READER: &str = include_str!("reader.pl");

/// Runs a program for which bpf(2) is refused: `perl no-bpf PROGRAM…`.
pub const WITHOUT_BPF: &str = include_str!("no-bpf.pl");

/// Directory of the files.
pub const DIRECTORY: &str = "/srv/data";

/// Number of files. The last one is read backward.
pub const FILE_COUNT: usize = 9;

/// Returns the direction in which a file is read.
pub fn direction(file: usize) -> &'static str {
    if file == FILE_COUNT { "backward" } else { "forward" }
}

/// The systems on which a verb is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Systems {
    All,
    /// It does not depend on the kernel, or would take long under emulation.
    Chroots,
    /// It changes settings that only a separate machine has.
    Guests,
}

#[derive(Debug)]
pub struct TriedVerb {
    pub name: &'static str,
    pub script: &'static str,
    /// Exit codes of a verb that did its work.
    success: &'static [i64],
    /// Text that is then part of its output.
    evidence: &'static str,
    /// True if each file is being read while the verb runs.
    pub readers: bool,
    systems: Systems,
}

const fn verb(name: &'static str, script: &'static str, evidence: &'static str) -> TriedVerb {
    let (success, readers, systems) = (&[0], false, Systems::All);
    TriedVerb { name, script, success, evidence, readers, systems }
}

impl TriedVerb {
    const fn exits(self, success: &'static [i64]) -> Self {
        Self { success, ..self }
    }

    const fn read_meanwhile(self) -> Self {
        Self { readers: true, ..self }
    }

    const fn only_in(self, systems: Systems) -> Self {
        Self { systems, ..self }
    }

    pub fn judge(&self, output: &Output) -> VerbOutcome {
        VerbOutcome::judge(output, self.success, self.evidence)
    }
}

/// Returns the verbs for chroots or for guests, in this order.
pub fn tried_in(systems: Systems) -> impl Iterator<Item = &'static TriedVerb> {
    VERBS.iter().filter(move |verb| verb.systems == systems || verb.systems == Systems::All)
}

const VERBS: &[TriedVerb] = &[
    verb("info", "foreread info", "kernel"),
    verb("help", "foreread help tune", "EXAMPLES").only_in(Systems::Chroots),
    verb("doctor", "foreread doctor", "KiB"),
    verb("doctor PATH", "foreread doctor /srv/data", "KiB"),
    verb("check", "foreread check --emit-policy >$D/p && foreread check --policy $D/p", "")
        .exits(&[0, 3]),
    verb("presets", "foreread presets", "").only_in(Systems::Chroots),
    verb("models", "foreread models", "hdd-2008").only_in(Systems::Chroots),
    verb("demo", "foreread demo", "Measure").only_in(Systems::Chroots),
    verb(
        "sweep sim:",
        "foreread sweep sim:hdd-2008 --vary read_ahead=128K,1M --workload seq-1 --repeats 2 \
             --duration 100ms --fresh",
        "1024",
    )
    .only_in(Systems::Chroots),
    verb("runs", "foreread runs", "").only_in(Systems::Chroots),
    verb("report", "foreread report last -o $D/report.html && grep -c svg $D/report.html", "")
        .only_in(Systems::Chroots),
    verb("experiment", "foreread experiment readers sim:hdd-2008,cache=1G", "")
        .only_in(Systems::Chroots),
    verb("reproduce", "foreread reproduce", "").only_in(Systems::Chroots),
    // One repeat may be inconclusive.
    verb(
        "tune virtual:",
        "foreread tune virtual:nvme,fs=ext4 --vary read_ahead=32K,512K --workload seq-1 \
             --repeats 1 --duration 200ms --size 4M --fresh --json",
        "recommendation",
    )
    .exits(&[0, 5]),
    verb(
        "tune PATH",
        "foreread tune /srv/data --vary read_ahead=32K,512K --workload seq-1 --repeats 1 \
             --duration 200ms --size 4M --fresh --json",
        "recommendation",
    )
    .exits(&[0, 5]),
    verb("watch", "foreread watch --once --json --interval 4s", "file1").read_meanwhile(),
    verb("auto", "foreread auto /srv/data --duration 10s --json", "file9").read_meanwhile(),
    // Cold, because dropping pages between two passes has its own diagnosis; and almost without
    // pauses, which would make all waits smaller than the error of a prediction.
    verb(
        "profile",
        "dd if=/srv/data/file9 iflag=nocache count=0 2>/dev/null
             foreread profile -- reader /srv/data/file9 backward 1 0.01",
        "backward (4)",
    ),
    verb("run", "foreread run --json -- reader /srv/data/file1 forward 1", ""),
    // The trace contains every byte of the file.
    verb(
        "trace record",
        "foreread trace record --force -o $D/t -- reader /srv/data/file1 forward 1 &&
             foreread trace show --json $D/t | grep \"bytes.: $(stat -c %s /srv/data/file1),\"",
        "bytes",
    ),
    verb("apply", "foreread apply read_ahead=256K --on /srv/data", ""),
    verb("verify", "foreread verify /srv/data", "").exits(&[0, 3]),
    verb("persist -n", "foreread persist -n read_ahead=256K --on /srv/data --with systemd", ""),
    verb("persist", "foreread persist read_ahead=256K --on /srv/data", "").only_in(Systems::Guests),
    verb("verify --no-probe", "foreread verify --no-probe", "").only_in(Systems::Guests),
    verb("rollback", "foreread rollback all", ""),
    verb("vdisk list", "foreread vdisk list", "").only_in(Systems::Chroots),
    verb("completions", "foreread completions bash", "foreread").only_in(Systems::Chroots),
];
