//! The verbs of foreread, and how each is tried on other systems: where something is missing
//! (`xtask packages`), and on other kernels (`xtask kernels`).
//!
//! A script finds an empty directory `$D`, files `/srv/data/file1` to `file9` on a filesystem of
//! their own, and the program `reader`.

use crate::outcome::{Output, VerbOutcome};

/// Reads a file in pieces, from the disk each time.
pub const READER: &str = include_str!("reader.pl");

/// Runs a program whose calls of bpf(2) are refused: `perl no-bpf PROGRAM…`.
pub const WITHOUT_BPF: &str = include_str!("no-bpf.pl");

/// Where the files are.
pub const DIRECTORY: &str = "/srv/data";

/// How many files there are. The last one is read backward.
pub const FILE_COUNT: usize = 9;

/// The direction in which a file is read.
pub fn direction(file: usize) -> &'static str {
    if file == FILE_COUNT { "backward" } else { "forward" }
}

/// Where a verb is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Systems {
    All,
    /// It depends on nothing that another kernel has, or would take long when emulated.
    Chroots,
    /// It changes what only a machine of its own has.
    Guests,
}

#[derive(Debug)]
pub struct TriedVerb {
    pub name: &'static str,
    pub script: &'static str,
    /// Exit codes of a verb that did its work.
    success: &'static [i64],
    /// What it prints then, among other things.
    evidence: &'static str,
    /// Whether each file is read meanwhile.
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

/// The verbs for chroots or for guests, in this order.
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
    // One repeat may well be inconclusive.
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
    // From cold, as dropping pages between two passes is a diagnosis of its own; and almost without
    // pauses, beside which all waits would be within the error of a prediction.
    verb(
        "profile",
        "dd if=/srv/data/file9 iflag=nocache count=0 2>/dev/null
             foreread profile -- reader /srv/data/file9 backward 1 0.01",
        "backward (4)",
    ),
    verb("run", "foreread run --json -- reader /srv/data/file1 forward 1", ""),
    // Every byte of the file is in the trace.
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
