//! Values that foreread set, and files that were opened before a change.

use foreread_doctor::Windows;

use super::hosts::Machine;
use super::{Situation, UDEV, case, flash, one, open_file};

/// The journal summary of root's foreread, which all users can read: 2 MiB on the disk.
const PUBLISHED: &str = r#"{"version":1,"journals":[{
    "journal":"/var/lib/foreread/journal/1-2-8:0.jsonl","bdi":"8:0","purpose":"apply",
    "owner":{"pid":4194305,"start_time":1,"boot_id":"b"},
    "settings":[{"tunable":"read_ahead","file":"/sys/class/bdi/8:0/read_ahead_kb",
    "original":{"bytes":131072},"value":{"bytes":2097152}}]}]}"#;

fn applied(kib: u64, path: &str) -> Machine {
    one("6.1.0", flash(kib)).with(path, PUBLISHED)
}

pub fn foreread_itself() -> Vec<Situation> {
    let system = "var/lib/foreread/settings.json";
    vec![
        case(
            "an ordinary user sees what root applied",
            applied(2048, system),
            "/data",
            "foreread",
            "certain",
            &[],
        ),
        case(
            "from the state directory that is named",
            applied(2048, "own/state/settings.json"),
            "/data",
            "foreread",
            "certain",
            &[],
        ),
        case(
            "applied, then changed by hand",
            applied(512, system),
            "/data",
            "unknown",
            "none",
            &["not-persistent"],
        ),
        case(
            "a summary that cannot be believed",
            one("6.1.0", flash(2048)).with(system, &PUBLISHED.replace("2097152", "\"much\"")),
            "/data",
            "unknown",
            "none",
            &["not-persistent"],
        ),
    ]
}

/// A machine with a udev rule that sets the disk to 1 MiB, and one open file.
fn ruled(window: u64, fresh: u64) -> Situation {
    let rule = "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"1024\"\n";
    let machine = one("6.1.0", flash(1024)).with(UDEV, rule);
    let windows = Windows { files: vec![open_file(window, fresh)], unseen: None };
    Situation { windows, ..case("", machine, "/data", "udev", "high", &[]) }
}

pub fn open_files() -> Vec<Situation> {
    let mut direct = ruled(128, 1024);
    direct.windows.files[0].cached = false;
    let mut elsewhere = ruled(128, 1024);
    elsewhere.windows.files[0].bdi = host::BdiId::new("8:16").unwrap();
    let mut large = ruled(1024, 1024);
    large.windows.files = vec![large.windows.files[0].clone(); 10_000];
    vec![
        Situation {
            name: "opened before the rule was applied",
            findings: &["old-windows"],
            ..ruled(128, 1024)
        },
        Situation { name: "opened after it", ..ruled(1024, 1024) },
        Situation { name: "FADV_SEQUENTIAL", ..ruled(2048, 1024) },
        Situation { name: "open with O_DIRECT", ..direct },
        Situation { name: "open on another disk", ..elsewhere },
        Situation { name: "more open files than memory", findings: &["memory"], ..large },
    ]
}
