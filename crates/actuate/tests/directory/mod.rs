use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use foreread_actuate::{AccessRules, Actuator, Directory};
use host::Root;
use sys::cachestat::mincore;
use units::{Bytes, Pages};

use crate::stage::{Reader, Stage, run};

const SIZE: usize = 16 << 10;

/// Waits until the file is cached; returns whether it is.
fn is_cached(path: &Path) -> bool {
    let file = File::open(path).expect("open");
    let size = Bytes::new(SIZE as u64);
    let cached = || mincore(file.as_fd(), Bytes::ZERO, size).expect("mincore");
    crate::soon(|| cached() == Pages::new(4))
}

#[test]
fn host_files_of_a_directory_are_prefetched_and_it_is_not_kept_open() {
    let name = "host_files_of_a_directory_are_prefetched_and_it_is_not_kept_open";
    let Some(stage) = Stage::set(name) else { return };
    fs::create_dir(stage.point().join("dir")).expect("a directory");
    let path = |name: &str| stage.point().join("dir").join(name);
    for name in ["a", "b", "c", "d"] {
        stage.file(&format!("dir/{name}"), SIZE);
    }
    let inode = |name: &str| fs::metadata(path(name)).expect("a file").ino();
    let (b, c, d) = (inode("b"), inode("c"), inode("d"));
    let mut reader = Reader::of(&path("a"));
    let actuator = Actuator::load(AccessRules::default()).expect("an actuator");
    let file = stage.one(&actuator, &reader);
    let at = path("a");
    let at = at.to_str().expect("a name");
    let found = Directory::find(&Root::system(), &AccessRules::default(), &file, at, None);
    let found = found.expect("a directory");
    let prefetch = |inode: u64| {
        let whole = (Bytes::ZERO, Bytes::new(SIZE as u64));
        actuator.prefetch_files(&found, &[(inode, whole)]).expect("allowed")
    };
    assert_eq!(prefetch(b), Bytes::new(SIZE as u64));
    assert!(is_cached(&path("b")));
    fs::rename(path("a"), path("c")).expect("another file with that name");
    assert_eq!(prefetch(c), Bytes::ZERO, "it was replaced");
    fs::rename(path("d"), path("real")).expect("a new name");
    symlink(path("real"), path("d")).expect("a link");
    assert_eq!(prefetch(d), Bytes::ZERO, "no link is followed");
    reader.end();
    assert!(stage.remount(), "the directory keeps nothing open");
    assert_eq!(prefetch(b), Bytes::new(SIZE as u64), "it is found again");
    let point = stage.point();
    let point = point.to_str().expect("a name");
    assert!(run("mount", &["-t", "tmpfs", "none", point]));
    assert_eq!(prefetch(b), Bytes::ZERO, "another mount hides it");
    assert!(run("umount", &[point]));
    assert!(stage.remount());
    fs::remove_dir_all(stage.point().join("dir")).expect("removed");
    assert_eq!(prefetch(b), Bytes::ZERO);
}
