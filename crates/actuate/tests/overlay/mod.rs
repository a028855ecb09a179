use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use foreread_actuate::{AccessRules, ActionOutcome, ActuateFailure, Actuator};
use sys::cachestat::mincore;
use units::{Bytes, Pages};

use crate::kib;
use crate::stage::{Reader, Stage, run};

/// An overlay of directories of the stage, unmounted on drop.
struct Overlay<'a> {
    stage: &'a Stage,
    point: PathBuf,
}

impl<'a> Overlay<'a> {
    /// Mounts it with options, in which `/` stands for the mount point of the stage.
    fn mount(stage: &'a Stage, name: &str, options: &str) -> Option<Self> {
        let point = stage.point().join(name);
        fs::create_dir(&point).expect("a directory");
        let options = options.replace('/', &format!("{}/", stage.point().display()));
        let words = ["-t", "overlay", "-o", &options, "overlay"].into_iter().chain(point.to_str());
        let is_mounted = run("mount", &words.collect::<Vec<_>>());
        is_mounted.then_some(Self { stage, point })
    }

    /// Returns the inode of a file on a layer.
    fn inode(&self, path: &str) -> u64 {
        fs::metadata(self.stage.point().join(path)).expect("a file").ino()
    }
}

impl Drop for Overlay<'_> {
    fn drop(&mut self) {
        let _ = run("umount", &[self.point.to_str().expect("a name")]);
    }
}

fn is_older_than_6_13() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let numbers: Vec<u32> = release.split('.').map_while(|part| part.parse().ok()).collect();
    numbers[..2] < [6, 13][..]
}

#[test]
fn host_an_open_file_on_overlayfs_is_that_of_its_layer() {
    let name = "host_an_open_file_on_overlayfs_is_that_of_its_layer";
    let Some(stage) = Stage::set(name) else { return };
    stage.set_bdi(128);
    for name in ["lower", "upper", "work"] {
        fs::create_dir(stage.point().join(name)).expect("a directory");
    }
    let data = stage.file("lower/data", 4 << 20);
    let options = "lowerdir=/lower,upperdir=/upper,workdir=/work";
    let Some(overlay) = Overlay::mount(&stage, "merged", options) else {
        println!("SKIP {name}: overlayfs cannot be mounted");
        return;
    };
    let mut reader = Reader::of(&overlay.point.join("data"));
    reader.share().seek(SeekFrom::Start(8192)).expect("a position");
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let file = stage.one(&actuator, &reader);
    assert_eq!((file.inode, file.size), (overlay.inode("lower/data"), Bytes::from_mib(4)));
    assert_eq!((file.position, file.window), (Bytes::new(8192), kib(128)));
    let mut lease = stage.lease();
    let set = actuator.set_windows(&mut lease, &[(&file, kib(1088))]).expect("acted");
    assert_eq!(set.outcomes, [ActionOutcome::Done { before: kib(128), after: kib(1088) }]);
    assert_eq!(stage.one(&actuator, &reader).window, kib(1088));
    let asked = actuator.prefetch(&file, Bytes::from_mib(1), Bytes::from_mib(1)).expect("acted");
    assert_eq!(asked, Ok(Bytes::from_mib(1)));
    let lower = File::open(&data).expect("open");
    let cached = || mincore(lower.as_fd(), Bytes::ZERO, Bytes::from_mib(4)).expect("mincore");
    assert!(crate::soon(|| cached() == Pages::new(256)), "{:?}", cached());
    let elsewhere = File::open(&overlay.point).expect("a directory");
    assert_eq!(
        stage.all(&actuator).len(),
        2,
        "a directory is not listed: the reader's and `lower`"
    );
    drop(elsewhere);
    let rule = format!("mount:{}", overlay.point.display()).parse().expect("a rule");
    let limits = AccessRules { deny: vec![rule], ..AccessRules::default() };
    let excluded = Actuator::load(limits).expect("an actuator");
    let denied = excluded.prefetch(&file, Bytes::ZERO, kib(4)).expect("acted");
    assert!(matches!(denied, Err(ActuateFailure::Denied(_))), "{denied:?}");
    {
        let twice = Overlay::mount(&stage, "twice", "lowerdir=/merged:/lower").expect("mounted");
        let mut reader = Reader::of(&twice.point.join("data"));
        let below = stage.one(&actuator, &reader);
        assert_eq!(below.inode, file.inode, "an overlay on an overlay");
        let set = actuator.set_windows(&mut lease, &[(&below, kib(64))]).expect("acted");
        assert_eq!(set.outcomes, [ActionOutcome::Done { before: kib(128), after: kib(64) }]);
        reader.end();
    }
    // A write copies the file to the upper layer, from which it is read from then on.
    let mut writer = File::options().write(true).open(overlay.point.join("data")).expect("open");
    writer.write_all(b"new").expect("written");
    drop(writer);
    let mut start = [0; 3];
    reader.share().read_exact_at(&mut start, 0).expect("read");
    assert_eq!(&start, b"new");
    let copied = stage.one(&actuator, &reader);
    if is_older_than_6_13() {
        return; // the original is still listed
    }
    assert_eq!((copied.inode, copied.window), (overlay.inode("upper/data"), kib(128)));
    let set = actuator.set_windows(&mut lease, &[(&copied, kib(544))]).expect("acted");
    assert_eq!(set.outcomes, [ActionOutcome::Done { before: kib(128), after: kib(544) }]);
    reader.end();
}
