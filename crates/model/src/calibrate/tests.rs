use super::*;
use crate::{DeviceSpec, Spec};

/// Calibrates a model as if it were a device.
fn calibrated(words: &str) -> (Spec, ModelCalibration) {
    calibrated_from(words, 99)
}

/// The same with a device seed, which determines the initial angles of the platters.
fn calibrated_from(words: &str, seed: u64) -> (Spec, ModelCalibration) {
    let truth = Spec::parse(words).unwrap();
    let mut device = truth.build(seed).unwrap();
    let (mut measured, mut now) = (Measured::default(), Nanos::ZERO);
    for probe in probes(truth.capacity(), 7) {
        let (timing, end) = run(device.as_mut(), &probe, now);
        measured.note(probe.purpose, timing);
        now = end + Nanos::from_millis(50);
    }
    let found = fit("found", truth.capacity(), truth.host().clone(), &measured).unwrap();
    (truth, found)
}

fn lines(found: &ModelCalibration) -> String {
    let line = |line: &ProbeAgreement| {
        format!("{:?} {:.2} {:.2}\n", line.purpose, line.measured, line.model)
    };
    found.agreement.iter().map(line).collect()
}

fn near(found: f64, truth: f64, tolerance: f64) -> bool {
    (found / truth).ln().abs() < tolerance
}

#[test]
fn disks_are_found_again() {
    for words in ["hdd-2008", "hdd-modern", "hdd-laptop-2006", "hdd-15k-2008"] {
        let (truth, found) = calibrated(words);
        let (DeviceSpec::Hdd(truth), DeviceSpec::Hdd(drive)) = (&truth.device, &found.spec.device)
        else {
            panic!("{words}: {:?}\n{}", found.findings, lines(&found))
        };
        assert_eq!(drive.rpm, truth.rpm, "{words}");
        for (what, found, truth, tolerance) in [
            ("outer", drive.outer_mb_s, truth.outer_mb_s, 0.05),
            ("inner", drive.inner_mb_s, truth.inner_mb_s, 0.05),
            ("average", drive.seek_average_ms, truth.seek_average_ms, 0.1),
            (
                "full",
                drive.seek_full_ms.unwrap(),
                truth.seek_full_ms.unwrap_or(1.9 * truth.seek_average_ms),
                0.15,
            ),
        ] {
            assert!(near(found, truth, tolerance), "{words}: {what} {found}, {truth}");
        }
    }
}

#[test]
fn arrays_are_found_again() {
    for (words, seed, chunk, members, mb_s) in [
        ("raid5-2012,level=raid0,chunk=256K", 99, 256, 4.0_f64, 600.0),
        ("raid5-2012,level=raid0,chunk=64K,members=6", 99, 64, 6.0, 900.0),
        ("raid5-2012,level=raid0,chunk=64K,members=6", 2, 64, 6.0, 900.0),
        ("raid5-2012,level=raid0,chunk=512K,members=8", 99, 512, 8.0, 1200.0),
        ("raid5-2012,level=raid0,chunk=512K,members=8", 4, 512, 8.0, 1200.0),
    ] {
        let (_, found) = calibrated_from(words, seed);
        let DeviceSpec::Array(array) = &found.spec.device else {
            panic!("{words}: {:?}\n{}", found.findings, lines(&found))
        };
        let message = || format!("{words}: {:?}\n{}", found.findings, lines(&found));
        assert_eq!(array.chunk, Bytes::from_kib(chunk), "{}", message());
        // Six and eight drives have similar timings.
        assert!(near(array.members as f64, members, 0.34), "{}", message());
        assert!(near(found.spec.peak().throughput.as_mb(), mb_s, 0.1), "{}", message());
    }
}

#[test]
fn flash_and_volumes_are_told_apart() {
    let (_, found) = calibrated("ssd-sata");
    let DeviceSpec::Flash(flash) = &found.spec.device else { panic!("{:?}", found.findings) };
    assert!(near(flash.link_mb_s, 560.0, 0.1), "{}", flash.link_mb_s);
    let alone = found.agreement.iter().find(|line| line.purpose == Purpose::Queue(1)).unwrap();
    assert!(near(alone.model, alone.measured, 0.1), "{alone:?}");
    let (_, found) = calibrated("cloud-ssd");
    let DeviceSpec::Volume(volume) = &found.spec.device else { panic!("{:?}", found.findings) };
    assert!(near(volume.latency_ms, 0.7, 0.1), "{}", volume.latency_ms);
    assert!(near(volume.iops, 3000.0, 0.1), "{}", volume.iops);
    assert!(near(volume.throughput_mib_s, 125.0, 0.1), "{}", volume.throughput_mib_s);
}

#[test]
fn the_model_agrees_with_its_probes() {
    for words in ["hdd-2008", "hdd-modern", "ssd-sata", "nvme", "mirror-2010"] {
        let (_, found) = calibrated(words);
        let errors = found.agreement.iter().map(|line| (line.model / line.measured).ln().abs());
        let mean = errors.clone().sum::<f64>() / found.agreement.len() as f64;
        assert!(mean < 0.25, "{words}: {mean} {:?}\n{}", found.findings, lines(&found));
    }
}

#[test]
fn what_was_not_measured_is_said() {
    let problem = fit("x", Bytes::from_gib(1), crate::HostLimits::default(), &Measured::default());
    assert!(problem.unwrap_err().to_string().contains("nothing was measured"));
}

#[test]
fn a_calibrated_model_is_read_back_from_its_file() {
    let (_, found) = calibrated("raid5-2012,level=raid0");
    assert_eq!(Spec::from_toml(&found.spec.to_toml()).unwrap(), found.spec);
}
