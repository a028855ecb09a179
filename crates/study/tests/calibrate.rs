//! Calibrates presets in simulation as if they were devices, and tests how well the resulting
//! models predict the read-ahead curve.

#![allow(clippy::print_stdout)]

use bench::Cancel;
use foreread_study::{
    CurvePoint, Environment, Grid, Plan, Repeats, Silent, Store, Target, TargetSpec, calibrate,
    predict_curve, sweep,
};
use host::{Dirs, Root};
use tunables::GuardCommand;
use units::{Bytes, Kib, Nanos};
use vdisk::ServerCommand;

/// Returns the mean of |ln(predicted ÷ measured)| in percent.
fn mean_error(curve: &[CurvePoint]) -> f64 {
    let error = |point: &CurvePoint| (point.predicted_mib_s / point.measured_mib_s).ln().abs();
    100.0 * curve.iter().map(error).sum::<f64>() / curve.len() as f64
}

fn curve(words: &str) -> Vec<CurvePoint> {
    let dir = tempfile::tempdir().expect("a directory");
    let environment = Environment {
        dirs: Dirs::under(dir.path()),
        root: Root::system(),
        guard: GuardCommand { program: "true".into(), args: Vec::new() },
        server: ServerCommand { program: "true".into(), args: Vec::new() },
        cancel: Cancel::new(),
    };
    let target = Target::parse(&format!("sim:{words}")).expect("a target");
    let size = Bytes::from_gib(1);
    let found = calibrate(&target, "found", size, 1, &environment, &mut Silent).expect(words);
    let file = dir.path().join("found.toml");
    std::fs::write(&file, found.calibration.spec.to_toml()).expect("a file");
    let mut plan = Plan::new(target);
    plan.workloads.truncate(2);
    plan.read_ahead = Grid::Values([32, 128, 512, 2048, 8192].map(Kib::new).to_vec());
    plan.repeats = Repeats::exactly(1);
    plan.trial = Nanos::from_millis(500);
    plan.seed = Some(1);
    let mut store = Store::open(&dir.path().join("runs.sqlite")).expect("a store");
    let outcome = sweep(&plan, None, true, &mut store, &environment, &mut Silent).expect("a sweep");
    let run = store.load(outcome.run).expect("the run");
    let words = file.to_str().expect("a path");
    predict_curve(&TargetSpec::parse(words).expect("a machine"), &run, &outcome.analysis.cells)
        .expect("a curve")
}

#[test]
fn a_calibrated_model_predicts_the_curve() {
    let mut wrong = Vec::new();
    for (words, most) in [
        ("hdd-2008", 10.0),
        ("hdd-modern", 10.0),
        ("ssd-sata", 10.0),
        ("cloud-ssd", 10.0),
        ("raid5-2012,level=raid0,chunk=256K", 10.0),
        ("raid5-2012,level=raid0,chunk=64K,members=6", 10.0),
        ("raid5-2012,level=raid0,chunk=128K,members=2", 15.0),
        ("raid5-2012,level=raid0,chunk=512K,members=8", 15.0),
    ] {
        let curve = curve(words);
        let error = mean_error(&curve);
        println!("{words}: {error:.1} %");
        assert_eq!(curve.len(), 10, "{words}");
        if error >= most {
            wrong.push(format!("{words}: {error:.1} % {curve:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
