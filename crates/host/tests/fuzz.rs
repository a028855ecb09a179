//! Checks that no parser of the host's files panics, whatever they contain. The seeds are files as
//! distributions, vendors and users write them, and inputs that once broke a parser.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

use std::path::Path;

use foreread_host::owners::{
    Certainty, Owners, Target, boot_script, csi, fstab, lvm, nfs_conf, setters, shell, sysctl,
    sysfs_conf, systemd, tmpfiles, tuned, udev,
};
use foreread_host::{BdiId, Root, dpkg_packages, parse_maps, parse_mountinfo};
use testkit::fuzz;

fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(folder);
    let seeds = fuzz::seeds(&dir);
    assert!(!seeds.is_empty(), "{}", dir.display());
    seeds
}

fn survives(folder: &str, parse: impl Fn(&str)) {
    let inputs = fuzz::run(fuzz::budget(), &corpus(folder), |input| {
        parse(&String::from_utf8_lossy(input));
    });
    println!("{folder}: {inputs} inputs");
}

fn target() -> Target {
    Target {
        bdi: BdiId::new("8:0").unwrap(),
        name: Some("sda".to_owned()),
        dm: Some(("vg-home".to_owned(), "LVM-x".to_owned())),
        fstype: Some("nfs4".to_owned()),
        points: vec!["/srv".into()],
    }
}

#[test]
fn udev_rules_are_survived() {
    let tree = tempfile::tempdir().unwrap();
    let rules = tree.path().join("etc/udev/rules.d/60-x.rules");
    std::fs::create_dir_all(rules.parent().unwrap()).unwrap();
    let root = Root::at(tree.path());
    let disk = tree.path().join("sys/devices/virtual/block/sda");
    std::fs::create_dir_all(&disk).unwrap();
    let number = tree.path().join("sys/dev/block/8:0");
    std::fs::create_dir_all(number.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../../devices/virtual/block/sda", number).unwrap();
    survives("udev", |text| {
        udev::parse(text);
        std::fs::write(&rules, text).unwrap();
        Owners::read(&root).claims(&root, &target());
        setters(&root, Path::new("/sys/dev/block/8:0/queue/scheduler"));
    });
}

#[test]
fn tuned_profiles_are_survived() {
    survives("tuned", |text| {
        tuned::parse(Path::new("/etc/tuned/x/tuned.conf"), text);
        tuned::options(Path::new("/etc/tuned/x/tuned.conf"), text);
        tuned::includes(text);
    });
}

#[test]
fn lvm_metadata_are_survived() {
    survives("lvm", |text| {
        lvm::parse(Path::new("/etc/lvm/backup/vg"), "vg", text);
    });
}

#[test]
fn scripts_and_units_are_survived() {
    survives("shell", |text| {
        for (_, write) in shell::commands(text) {
            write.goal.covers(&target());
        }
        let unit = Path::new("/etc/systemd/system/x.service");
        systemd::parse(unit, text, Certainty::Sure, "scheduler");
        systemd::parse(unit, text, Certainty::Sure, "read_ahead_kb");
        shell::commands(&boot_script::boot_jobs(text));
    });
}

#[test]
fn fstab_is_survived() {
    survives("lines", |text| {
        fstab::parse(text);
    });
}

#[test]
fn mountinfo_is_survived() {
    survives("lines", |text| {
        parse_mountinfo(text);
    });
}

#[test]
fn nfs_conf_is_survived() {
    survives("lines", |text| {
        let mut conf = nfs_conf::NfsConf::default();
        conf.add(Path::new("/etc/nfs.conf"), text);
        conf.of("nfs4");
    });
}

#[test]
fn sysctl_conf_is_survived() {
    survives("lines", |text| {
        sysctl::parse(Path::new("/etc/sysctl.conf"), text);
    });
}

#[test]
fn tables_of_files_and_processes_are_survived() {
    survives("lines", |text| {
        tmpfiles::parse(Path::new("/etc/tmpfiles.d/x.conf"), text, "read_ahead_kb");
        sysfs_conf::parse(Path::new("/etc/sysfs.conf"), text, "read_ahead_kb");
        csi::driver_name(text);
        parse_maps(text);
        dpkg_packages(text);
    });
}
