//! The JSON of doctor, check and presets is what docs/foreread.schema.json promises.
#![allow(clippy::unwrap_used)] // a test may panic

extern crate diagnose as foreread_diagnose;

#[path = "../../diagnose/tests/hosts/mod.rs"]
mod hosts;
mod validate;

use diagnose::check::{Policy, check};
use diagnose::{Windows, diagnose as examine, presets};
use foreread_report::{
    Doctor, NameOf, Presets, check_json, doctor_json, presets_json, storage_name,
};
use hosts::{FLASH, Machine, Queue};

fn machine() -> Machine {
    let queue = Queue { read_ahead_kb: 4096, ..FLASH };
    Machine::new("6.1.0")
        .device("sda", "8:0", queue)
        .dm("dm-0", "253:0", "vg-home", "LVM-x", queue)
        .member("dm-0", "sda")
        .mount("253:0", "/", "xfs", "/dev/mapper/vg-home")
        .loop_device("loop0", "7:0", None, FLASH)
        .bdi("0:99", 300)
        .md("md0", "9:0", "raid5", 3, FLASH)
        .tuned("throughput-performance", "[disk]\nreadahead=>4096\n")
        .process(300, "mongod", "")
        .with("var/lib/mongodb/x", "")
        .with("etc/udev/rules.d/60-ra.rules", "KERNEL==\"dm-0\", ATTR{queue/read_ahead_kb}=\"3\"\n")
}

#[derive(Debug)]
struct Names<'a>(&'a diagnose::Scene);

impl NameOf for Names<'_> {
    fn name(&self, bdi: &host::BdiId) -> String {
        self.0.subject(bdi).map_or_else(String::new, storage_name)
    }
}

#[test]
fn doctor_keeps_the_promise() {
    let scene = machine().scene(Windows::not_asked());
    let diagnoses = examine(&scene);
    assert!(diagnoses.iter().any(|diagnosis| !diagnosis.findings.is_empty()));
    let doctor =
        Doctor { diagnoses: &diagnoses, missing: &scene.missing, kernel: "6.1.0", detail: true };
    let document = serde_json::to_value(doctor_json(&doctor)).unwrap();
    validate::assert_valid_as("doctor_document", &document);
    assert_eq!(document["schema_version"], 1);
}

#[test]
fn check_keeps_the_promise() {
    let scene = machine().scene(Windows::not_asked());
    let diagnoses = examine(&scene);
    let text = "version = 1\n[[rule]]\nmax = \"1M\"\n[[rule]]\nmount = \"/no\"\nmin = \"4K\"\n";
    let report = check(&Policy::parse(text).unwrap(), &scene, &diagnoses);
    assert!(!report.kept() && !report.idle_rules.is_empty());
    let document = serde_json::to_value(check_json("p.toml", &report)).unwrap();
    validate::assert_valid_as("check_document", &document);
}

#[test]
fn presets_keep_the_promise() {
    let machine = machine();
    let scene = machine.scene(Windows::not_asked());
    let here: Vec<_> = presets::running(&scene)
        .iter()
        .map(|applies| (applies, presets::compare(&scene, applies)))
        .collect();
    let contradictions = presets::contradictions(&scene);
    assert!(!here.is_empty() && !contradictions.is_empty());
    let asked: Vec<&presets::Preset> = presets::all().iter().collect();
    let names = Names(&scene);
    let presets = Presets {
        asked: &asked,
        here: &here,
        contradictions: &contradictions,
        named: false,
        name_of: &names,
    };
    let document = serde_json::to_value(presets_json(&presets)).unwrap();
    validate::assert_valid_as("presets_document", &document);
}
