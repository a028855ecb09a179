//! Prefetching of the next of many small files, which `auto` opens itself: it opens permitted files
//! only, and holds them no longer than necessary.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use sys::cachestat::mincore;
use units::Bytes;

use super::{Busy, evict, stage_of};

const FILES: usize = 400;
const SIZE: usize = 16 << 10;
/// A slow disk that does not rotate: short lists of files are left to one that does.
const DISK: &str = "cloud-hdd,fs=ext4,size=2G,dilation=1";
/// Period of the directory's pattern, in files: two files of each period must not be read.
const TRAPS: usize = 50;

/// Files that no process reads, so that none of their pages is cached.
#[derive(Default)]
struct Untouched(Vec<PathBuf>);

impl Untouched {
    fn add(&mut self, path: PathBuf) {
        assert!(leaves_cache(&put(&path)), "{} stays cached", path.display());
        self.0.push(path);
    }

    fn check(&self) {
        for path in &self.0 {
            assert!(!cached(&File::open(path).unwrap()), "{} was read", path.display());
        }
    }
}

fn put(path: &Path) -> File {
    fs::write(path, vec![5; SIZE]).unwrap();
    File::open(path).unwrap()
}

fn cached(file: &File) -> bool {
    !mincore(file.as_fd(), Bytes::ZERO, Bytes::new(SIZE as u64)).unwrap().is_zero()
}

/// Evicts a new file from the cache; returns whether that is possible.
fn leaves_cache(file: &File) -> bool {
    let begun = Instant::now();
    while cached(file) {
        if begun.elapsed() > Duration::from_secs(30) {
            return false;
        }
        file.sync_all().unwrap();
        evict(file);
    }
    true
}

/// Creates a directory on another file system than the virtual disk's. `None`, after printing why,
/// if the test called `name` is skipped.
fn outside(name: &str) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if leaves_cache(&put(&dir.path().join("tried"))) {
        return Some(dir);
    }
    println!(
        "SKIP {name}: files in {} cannot be had out of the cache (a tmpfs?), so nobody could tell \
         whether they are read",
        env!("CARGO_TARGET_TMPDIR")
    );
    None
}

fn place(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{number:04}"))
}

/// Reads the files of a directory one after another from the disk, again and again. Some stay open
/// for a while; otherwise a scan would find an open file only by chance.
fn reads_through(dir: PathBuf) -> impl FnMut() + Send + 'static {
    let mut open = VecDeque::new();
    move || {
        for number in 0..FILES {
            if let Ok(file) = File::open(place(&dir, number)).and_then(regular) {
                evict(&file);
            }
        }
        for number in 0..FILES {
            // The reader itself would cache the target of a link.
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
            let Ok(file) = options.open(place(&dir, number)).and_then(regular) else { continue };
            if file.metadata().unwrap().permissions().mode() & 0o004 == 0 {
                continue;
            }
            super::read_all(&file, 5);
            open.push_back(file);
            if open.len() > 8 {
                open.pop_front();
            }
        }
    }
}

fn regular(file: File) -> std::io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::ErrorKind::NotFound.into()) }
}

/// Creates many files to read, some of which must not be read.
fn lay_out(many: &Path, outside: &Path) -> Untouched {
    fs::create_dir(many).unwrap();
    let mut untouched = Untouched::default();
    for number in 0..FILES {
        let path = place(many, number);
        match number % TRAPS {
            // A file that only another user may read.
            10 => {
                untouched.add(path.clone());
                fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
                chown(&path, Some(65_534), Some(65_534)).unwrap();
            }
            // A link to another file system.
            30 => {
                let beyond = outside.join(format!("beyond{number}"));
                untouched.add(beyond.clone());
                symlink(&beyond, &path).unwrap();
            }
            _ => drop(put(&path)),
        }
    }
    rustix::fs::syncfs(File::open(many).unwrap()).unwrap();
    untouched
}

/// Briefly replaces the directory by another one, and files in it by links to `swapped`.
fn swap_about(many: &Path, outside: &Path, swapped: &Path) {
    let (aside, kept) = (many.with_file_name("aside"), many.with_file_name("kept"));
    for turn in 0..100 {
        fs::rename(many, &aside).unwrap();
        symlink(outside, many).unwrap();
        fs::remove_file(many).unwrap();
        fs::rename(&aside, many).unwrap();
        let path = place(many, 100 + turn);
        if (100 + turn) % TRAPS != 10 && (100 + turn) % TRAPS != 30 {
            fs::rename(&path, &kept).unwrap();
            symlink(swapped, &path).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            fs::remove_file(&path).unwrap();
            fs::rename(&kept, &path).unwrap();
        }
    }
}

#[test]
fn host_auto_reads_the_next_files_and_no_others() {
    let name = "host_auto_reads_the_next_files_and_no_others";
    let Some(outside) = outside(name) else { return };
    let Some(stage) = stage_of(name, DISK) else { return };
    let begun = Instant::now();
    let many = stage.mount.join("many");
    let mut untouched = lay_out(&many, outside.path());
    let swapped = outside.path().join("swapped");
    untouched.add(swapped.clone());
    let own = format!("pid:{}", std::process::id());
    let mut auto = stage.auto(&["--only", &own]);
    let reader = Busy::new().with(reads_through(many.clone()));
    let read = |auto: &super::Daemon| {
        let lines = auto.lines.lock().unwrap();
        lines.iter().any(|line| line.contains("/many/") && line.contains(": prefetch ("))
    };
    let (made, begun) = (begun.elapsed(), Instant::now());
    while !read(&auto) {
        assert!(auto.child.try_wait().unwrap().is_none(), "{}", auto.said());
        assert!(begun.elapsed() < Duration::from_secs(120), "no next files are read");
        std::thread::sleep(Duration::from_millis(20));
    }
    let found = begun.elapsed();
    swap_about(&many, outside.path(), &swapped);
    untouched.check();
    drop(reader);
    // A descriptor on the file system prevents unmounting.
    let mount = stage.mount.to_str().unwrap().to_owned();
    let holds = || auto.descriptors().iter().any(|name| name.starts_with(&mount));
    stage.wait(|| !holds(), "auto to let go of the directory");
    untouched.check();
    println!("made in {made:.1?}, read ahead after {found:.1?}; {}", auto.end().trim());
    assert_eq!(stage.value(), stage.original);
}
