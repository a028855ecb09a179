//! Specifications: presets, settings, errors, and round trips through TOML.
#![allow(clippy::unwrap_used)] // a test may panic

use foreread_model::{DeviceSpec, Spec, presets};
use proptest::prelude::*;
use units::Bytes;

#[test]
fn every_preset_reads_builds_and_reads_back() {
    for preset in presets() {
        let spec = preset.spec().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert_eq!(spec.name, preset.name);
        assert!(!spec.summary.is_empty() && !spec.sources.is_empty(), "{}", preset.name);
        assert_eq!(Spec::from_toml(&spec.to_toml()).unwrap(), spec, "{}", preset.name);
        assert_eq!(Spec::parse(preset.name).unwrap(), spec);
        let device = spec.build(1).unwrap();
        assert_eq!(device.capacity(), spec.capacity());
        assert!(spec.describe().contains(preset.name));
        let peak = spec.peak();
        assert!(peak.throughput.get() > 1e6 && peak.requests > 10.0, "{}", preset.name);
    }
}

#[test]
fn values_are_set_by_full_path_by_end_and_by_the_innermost_device() {
    let spec = Spec::parse("raid10-2008,chunk=128K,disk.rpm=10000,member.jitter_ms=0.1").unwrap();
    let DeviceSpec::Controller(controller) = &spec.device else { panic!("no controller") };
    let DeviceSpec::Array(array) = &*controller.behind else { panic!("no array") };
    let DeviceSpec::Hdd(disk) = &*array.member else { panic!("no disk") };
    assert_eq!(array.chunk, Bytes::from_kib(128));
    assert_eq!((disk.rpm, disk.jitter_ms), (10000.0, 0.1));
    let full = "raid10-2008,device.behind.chunk=128K,device.behind.member.rpm=10000,\
                device.behind.member.jitter_ms=100us";
    assert_eq!(Spec::parse(full).unwrap(), spec);
}

#[test]
fn values_may_bring_units() {
    let spec = Spec::parse("cloud-ssd,latency_ms=1500us,link_mib_s=1GiB/s,max_request=1M").unwrap();
    let DeviceSpec::Volume(volume) = &spec.device else { panic!("no volume") };
    assert_eq!((volume.latency_ms, volume.link_mib_s), (1.5, 1024.0));
    assert_eq!(spec.host().max_request, Bytes::from_mib(1));
    let disk = Spec::parse(
        "hdd-2008,seek_full_ms=20,segment_size=512K,queue_order=fifo,\
                            read_ahead_when_queued=true,seek_curve=[]",
    )
    .unwrap();
    assert!(disk.to_toml().contains("segment_size = \"512KiB\""));
}

#[test]
fn lists_are_set_too() {
    let mut spec = Spec::preset("hdd-2008").unwrap();
    spec.set("seek_curve", "[[1, 0.8], [1000, 5.0]]").unwrap();
    let DeviceSpec::Hdd(disk) = &spec.device else { panic!("no disk") };
    assert_eq!(disk.seek_curve, [[1.0, 0.8], [1000.0, 5.0]]);
}

fn message(words: &str) -> String {
    Spec::parse(words).unwrap_err().to_string()
}

#[test]
fn errors_name_the_key_the_value_and_what_would_do() {
    assert_eq!(
        message("raid10-2007"),
        "there is no model \"raid10-2007\": did you mean \"raid10-2008\"?"
    );
    assert_eq!(
        message("raid10-2008,chnuk=1M"),
        "there is no key \"chnuk\": did you mean \"chunk\"?"
    );
    assert_eq!(message("hdd-2008,fast"), "\"fast\" is not a setting: write key=value");
    assert_eq!(
        message("raid10-2008,overhead_ms=1"),
        "\"overhead_ms\" is ambiguous: write device.overhead_ms or \
         device.behind.member.overhead_ms"
    );
    assert_eq!(
        message("raid10-2008,members=7"),
        "device.behind.members = 7 is invalid: must be an even number"
    );
    assert_eq!(message("hdd-2008,rpm=0"), "device.rpm = 0 is invalid: must be 60 to 1000000");
    assert_eq!(
        message("raid10-2008,chunk=1K"),
        "device.behind.chunk = 1 KiB is invalid: must be 4 KiB to 1 GiB"
    );
    let size = message("hdd-2008,capacity=100");
    assert!(size.contains("device.capacity = \"100\"") && size.contains("no unit"), "{size}");
    let word = message("raid10-2008,read_policy=random");
    assert!(word.contains("random") && word.contains("gmirror-load"), "{word}");
    for (words, said) in [
        ("hdd-2008,rpm=fast", "invalid device.rpm = \"fast\": should be a number"),
        ("raid10-2008,members=-1", "members = \"-1\": should be a whole number"),
        ("hdd-2008,scheduler=cfg", "there is no cfg: use none or mq-deadline"),
        ("hdd-2008,rpm=1e300", "device.rpm = 1e300 is invalid"),
        ("hdd-2008,capacity=0", "device.capacity = 0 B is invalid: must be 1 MiB to"),
        ("hdd-2008,colour=red", "there are ageing, bus_mb_s, capacity, "),
        ("xyzzy", "`foreread models` lists them"),
    ] {
        assert!(message(words).contains(said), "{words}: {}", message(words));
    }
    let slow = message("raid10-2008,disk.seek_track_ms=9");
    assert!(
        slow.contains("seek_average_ms = ") && slow.contains("9 or more, which seek_track_ms"),
        "{slow}"
    );
}

#[test]
fn errors_in_files_name_the_table() {
    let no_kind = "name = \"x\"\n[device]\nrpm = 1\n";
    assert!(Spec::from_toml(no_kind).unwrap_err().to_string().contains("[device] needs a kind"));
    let typo = Spec::preset("nvme").unwrap().to_toml().replace("dies", "diess");
    let error = Spec::from_toml(&typo).unwrap_err();
    let hint = "did you mean \"dies\"?".to_owned();
    assert_eq!(
        error,
        units::text::SettingError::UnknownKey { key: "device.diess".to_owned(), hint }.into()
    );
    let lacking = "name = \"x\"\n[device]\nkind = \"zero\"\n";
    assert!(Spec::from_toml(lacking).unwrap_err().to_string().contains("capacity"));
    for (text, said) in [
        ("", "[device] is missing"),
        ("x = 1\n", "there is no key \"x\": there are name, summary"),
        ("name = 3\n[device]\nkind = \"zero\"\ncapacity = \"1GiB\"\n", "name: should be text"),
        ("name = \"x\"\n[device]\nkind = \"zero\"\ncapacity = 5\n", "[device] capacity: should"),
        ("name = \"x\"\n[device]\nkind = \"tape\"\n", "use one of hdd, flash"),
    ] {
        let error = Spec::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("TOML"), "{text}: {error}");
    }
    let broken =
        Spec::from_toml("name = \"x\"\n[device\nkind = \"hdd\"\n").unwrap_err().to_string();
    assert!(broken.contains("line 2, column 8") && !broken.contains('\n'), "{broken}");
    let mut deep = "name = \"x\"\n".to_owned();
    let mut path = "device".to_owned();
    for _ in 0..50 {
        deep += &format!("[{path}]\nkind = \"controller\"\n");
        path += ".behind";
    }
    assert!(Spec::from_toml(&deep).unwrap_err().to_string().contains("inside one another"));
}

fn preset_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(presets().iter().map(|preset| preset.name).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn no_text_panics_the_parsers(text in "\\PC{0,200}") {
        let _ = Spec::from_toml(&text);
        let _ = Spec::parse(&text);
    }

    #[test]
    fn no_setting_panics_and_what_is_taken_reads_back(
        name in preset_name(),
        key in prop::sample::Index::arbitrary(),
        value in prop_oneof![
            "\\PC{0,20}",
            "[0-9]{1,25}(\\.[0-9]{1,3})?(ms|us|K|M|G|T|s|B|MB/s|GiB/s)?",
            Just("true".to_owned()),
            Just("nan".to_owned()),
            Just("-1".to_owned()),
            Just("1e308".to_owned()),
        ],
    ) {
        let mut spec = Spec::preset(name).unwrap();
        let keys = spec.keys();
        if spec.set(&keys[key.index(keys.len())], &value).is_ok() && spec.validate().is_ok() {
            prop_assert_eq!(&Spec::from_toml(&spec.to_toml()).unwrap(), &spec);
            let _ = spec.peak();
            let _ = spec.describe();
        }
    }
}
