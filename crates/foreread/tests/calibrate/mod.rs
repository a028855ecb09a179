//! `calibrate` on a virtual disk creates a usable model, and leaves nothing else behind.

use std::fs;
use std::path::Path;

use serde_json::Value;
use sys::lock::Lock;
use testkit::HOST_LOCK;
use vdisk::Filesystem;

use super::{document, foreread_in, text};

const DISK: &str = "virtual:ssd-sata,size=1G";

#[track_caller]
fn calibrate(dir: &Path, extra: &[&str]) -> std::process::Output {
    let mut command = foreread_in(dir);
    command.current_dir(dir).args(["calibrate", DISK, "-o", "found.toml", "--json"]);
    command.arg("--no-check").args(extra).output().unwrap()
}

/// Returns the virtual disks that foreread lists.
fn disks(dir: &Path) -> String {
    let output = foreread_in(dir).args(["vdisk", "list", "--json"]).output().unwrap();
    text(&output.stdout)
}

/// Checks what was probed; the measured values depend on the speed of the machine.
fn assert_probed(found: &Value) {
    assert_eq!(found["capacity_bytes"], 1 << 30, "{found}");
    let probes = found["probes"].as_array().unwrap();
    assert!(probes.len() >= 10, "{probes:?}");
    for probe in probes {
        for side in ["measured", "model"] {
            assert!(probe[side].as_f64().is_some_and(|value| value > 0.0), "{probe}");
        }
    }
}

#[test]
fn host_calibrating_a_virtual_disk_gives_a_model_and_leaves_nothing_else() {
    let name = "host_calibrating_a_virtual_disk_gives_a_model_and_leaves_nothing_else";
    if let Err(lack) = vdisk::availability(Filesystem::Raw) {
        return println!("SKIP {name}: {lack}");
    }
    let _turn = Lock::acquire(Path::new(HOST_LOCK)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let before = disks(dir.path());
    let found = document(&calibrate(dir.path(), &[]));
    assert_probed(&found);
    assert_eq!(disks(dir.path()), before, "the disk is gone");
    // A simulation accepts the model.
    let file = dir.path().join("found.toml");
    let model = fs::read_to_string(&file).unwrap();
    let words = format!("sim:{}", file.display());
    let mut sweep = foreread_in(dir.path());
    sweep.args(["sweep", &words, "--vary", "read_ahead=32K,128K", "--workload", "seq-1"]);
    sweep.args(["--repeats", "1", "--seed", "1", "--size", "64M", "--duration", "100ms", "--json"]);
    let swept = document(&sweep.output().unwrap());
    assert_eq!(swept["cells"].as_array().map(Vec::len), Some(2), "{swept}");
    // An existing file is kept, unless `--force` is given.
    fs::write(&file, "mine").unwrap();
    let refused = calibrate(dir.path(), &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--force"), "{}", text(&refused.stderr));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    document(&calibrate(dir.path(), &["--force"]));
    let again = fs::read_to_string(&file).unwrap();
    assert_eq!(again.lines().next(), model.lines().next());
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert!(left.iter().all(|name| ["found.toml", "runtime", "state"].contains(&name.as_str())));
}
