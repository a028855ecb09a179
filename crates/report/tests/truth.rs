//! The JSON of doctor, check and presets conforms to docs/foreread.schema.json.
#![allow(clippy::unwrap_used)] // a test may panic

extern crate doctor as foreread_doctor;

#[path = "../../doctor/tests/hosts/mod.rs"]
mod hosts;
mod validate;

use doctor::check::{CompliancePolicy, check};
use doctor::{Windows, diagnose as examine, host_presets, presets};
use foreread_report::{
    DoctorReport, PresetsReport, check_json, doctor_json, presets_json, storage_name,
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

#[test]
fn doctor_keeps_the_promise() {
    let snapshot = machine().snapshot(Windows::not_asked());
    let diagnoses = examine(&snapshot);
    assert!(diagnoses.iter().any(|diagnosis| !diagnosis.findings.is_empty()));
    let plan = doctor::plan::plan(&snapshot, &diagnoses);
    assert!(plan.iter().any(|plan| plan.changes() && !plan.overrides.is_empty()));
    let doctor = DoctorReport {
        diagnoses: &diagnoses,
        plan: &plan,
        missing: &snapshot.missing,
        tree: Some("/tree"),
        kernel: "6.1.0",
        detail: true,
    };
    let document = serde_json::to_value(doctor_json(&doctor)).unwrap();
    validate::assert_valid_as("doctor_document", &document);
    assert_eq!(document["schema_version"], 2);
}

#[test]
fn check_keeps_the_promise() {
    let snapshot = machine().snapshot(Windows::not_asked());
    let diagnoses = examine(&snapshot);
    let text = "version = 1\n[[rule]]\nmax = \"1M\"\n[[rule]]\nmount = \"/no\"\nmin = \"4K\"\n";
    let report = check(&CompliancePolicy::parse(text).unwrap(), &snapshot, &diagnoses);
    assert!(!report.kept() && !report.idle_rules.is_empty());
    let document = serde_json::to_value(check_json("p.toml", &report, None)).unwrap();
    validate::assert_valid_as("check_document", &document);
}

#[test]
fn presets_keep_the_promise() {
    let machine = machine();
    let snapshot = machine.snapshot(Windows::not_asked());
    let here: Vec<_> = host_presets::running(&snapshot)
        .iter()
        .map(|applies| (applies, host_presets::compare(&snapshot, applies)))
        .collect();
    let contradictions = host_presets::contradictions(&snapshot);
    assert!(!here.is_empty() && !contradictions.is_empty());
    let asked: Vec<&presets::VendorPreset> = presets::all().iter().collect();
    let name_of = |bdi: &host::BdiId| snapshot.subject(bdi).map_or_else(String::new, storage_name);
    let presets = PresetsReport {
        asked: &asked,
        here: &here,
        contradictions: &contradictions,
        named: false,
        name_of: &name_of,
    };
    let document = serde_json::to_value(presets_json(&presets)).unwrap();
    validate::assert_valid_as("presets_document", &document);
}

#[test]
fn reproductions_keep_the_promise() {
    let effort = reproduce::Effort { seeds: 1 };
    let tables = [reproduce::named("md-2012").unwrap().run(effort).unwrap()];
    let document = serde_json::to_value(foreread_report::reproductions_json(&tables)).unwrap();
    validate::assert_valid_as("reproduction_document", &document);
    let mut wrong = document.clone();
    wrong["tables"][0]["lines"][0]["required"] = serde_json::json!("no");
    let schema = validate::schema();
    let of = serde_json::json!({ "$ref": "#/$defs/reproduction_document" });
    let mut found = Vec::new();
    validate::problems(&schema, &of, &wrong, "", &mut found);
    assert!(!found.is_empty());
}

#[test]
fn calibrations_keep_the_promise() {
    use model::calibrate::{Measured, fit, probes, run};
    let truth = model::Spec::parse("hdd-2008").unwrap();
    let mut device = truth.build(1).unwrap();
    let (mut measured, mut now) = (Measured::default(), units::Nanos::ZERO);
    for probe in probes(truth.capacity(), 1) {
        let (timing, end) = run(device.as_mut(), &probe, now);
        measured.note(probe.purpose, timing);
        now = end;
    }
    let calibration = fit("found", truth.capacity(), truth.host().clone(), &measured).unwrap();
    let found = study::CalibrationResult { calibration, dilation: 1.0 };
    let curve = [study::CurvePoint {
        workload: "seq-1".to_owned(),
        read_ahead_kib: units::Kib::new(128),
        measured_mib_s: 100.0,
        predicted_mib_s: 90.0,
    }];
    let (target, file) = ("virtual:hdd-2008", "found.toml");
    let report = foreread_report::CalibrationReport {
        target,
        file,
        found: &found,
        curve: &curve,
        run: None,
    };
    let document = serde_json::to_value(foreread_report::calibration_json(&report)).unwrap();
    validate::assert_valid_as("calibration_document", &document);
    assert!((document["curve"][0]["error_percent"].as_f64().unwrap() + 10.0).abs() < 1e-9);
    let text = foreread_report::calibration(&report);
    assert!(text.contains("mean error of the predicted curve: 10.5 %"), "{text}");
}
