//! `auto` with the privileges of its service unit, and no others.

use std::fs;
use std::process::Command;

use super::{Busy, Daemon, read_anew, stage};
use crate::text;

#[test]
fn host_auto_works_with_the_capabilities_of_its_unit() {
    let name = "host_auto_works_with_the_capabilities_of_its_unit";
    let Some(stage) = stage(name) else { return };
    let emitted = stage.foreread().args(["auto", "--emit", "systemd"]).arg(&stage.mount).output();
    let unit = text(&emitted.unwrap().stdout);
    let set = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let names = set.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase());
    let bounding = names.fold("-all".to_owned(), |all, name| format!("{all},+{name}"));
    // As a service manager does: root without the capabilities that the unit removes.
    let mut limited = Command::new("setpriv");
    limited.args(["--no-new-privs", "--bounding-set", &bounding, "--inh-caps", "-all", "--"]);
    let tried = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(limited.get_args()).args(words);
        command.output().is_ok_and(|output| output.status.success())
    };
    if !tried(&["true"]) {
        println!("SKIP {name}: there is no setpriv, or it does not know {bounding}");
        return;
    }
    assert!(!tried(&["unshare", "--mount", "true"]), "it has CAP_SYS_ADMIN");
    let maps = format!("/proc/{}/map_files", std::process::id());
    let mapped = fs::read_dir(maps).unwrap().next().unwrap().unwrap().path();
    assert!(tried(&["head", "-c", "1", mapped.to_str().unwrap()]), "it cannot open mapped files");
    let path = stage.data("read", 24, 1);
    let reader = Busy::new().with(move || read_anew(&path, 1));
    let auto = stage.foreread();
    limited.arg(auto.get_program());
    for (name, value) in auto.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.args(["auto", "--interval", "20ms"]).arg(&stage.mount);
    let mut auto = Daemon::start(&mut limited);
    auto.wait_for_windows(1);
    let lines = auto.lines.lock().unwrap().join("\n");
    assert!(lines.contains("/read: set window 128 KiB → "), "{lines}");
    drop(reader);
    println!("{}", auto.end().trim());
    assert_eq!(stage.value(), stage.original);
}
