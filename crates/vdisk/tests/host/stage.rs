//! The fixture of the host tests, and helpers that use a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_vdisk::{
    DiskConfig, Filesystem, Lifetime, ServerCommand, VdiskError, VirtualDisk, availability, list,
    remove,
};
use host::Dirs;
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use sys::lock::Lock;
use testkit::HOST_LOCK;

pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_vdisk-helper");

/// A device without latency, and one that takes 0.5 ms for every request.
pub(crate) const ZERO: &str = "name = 'zero'\n[device]\nkind = 'zero'\ncapacity = '8GiB'\n";
pub(crate) const HALF_MS: &str = "name = 'half-ms'\n[host]\nmax_request = '256KiB'\n\
     nr_requests = 64\n[device]\nkind = 'volume'\ncapacity = '8GiB'\nlatency_ms = 0.5\n\
     latency_spread = 0.0\n";
pub(crate) const HDD: &str = include_str!("../../../model/presets/hdd-2008.toml");

/// The fixture of one test: a lock that serialises the host tests, and separate directories.
pub(crate) struct Stage {
    pub(crate) base: tempfile::TempDir,
    pub(crate) dirs: Dirs,
    _turn: Lock,
}

impl Stage {
    /// Returns `None` and prints the reason if the test cannot run.
    pub(crate) fn set(test: &str, filesystem: Filesystem) -> Option<Self> {
        if let Err(missing) = availability(filesystem) {
            println!("SKIP {test}: {missing}");
            return None;
        }
        let turn = Lock::acquire(Path::new(HOST_LOCK)).unwrap();
        let base = tempfile::tempdir().unwrap();
        let dirs = Dirs::under(base.path());
        Some(Self { base, dirs, _turn: turn })
    }

    pub(crate) fn words(&self, model: &str, rest: &str) -> String {
        let path = self.base.path().join("model.toml");
        fs::write(&path, model).unwrap();
        // As fast as the model, unless the test sets a dilation.
        let dilation = if rest.contains("dilation=") { "" } else { "dilation=1," };
        format!("{},{dilation}{rest}", path.display())
    }

    pub(crate) fn config(&self, name: &str, model: &str, rest: &str) -> DiskConfig {
        let mut config = DiskConfig::parse(&self.words(model, rest)).unwrap();
        config.name = Some(name.to_owned());
        config
    }

    pub(crate) fn create(&self, name: &str, model: &str, rest: &str) -> VirtualDisk {
        self.try_create(name, model, rest, Lifetime::Kept).unwrap()
    }

    pub(crate) fn try_create(
        &self,
        name: &str,
        model: &str,
        rest: &str,
        lifetime: Lifetime,
    ) -> Result<VirtualDisk, VdiskError> {
        let server = ServerCommand { program: HELPER.into(), args: vec!["serve".into()] };
        VirtualDisk::create(&self.dirs, self.config(name, model, rest), &server, lifetime)
    }

    /// Lists mounts, loop devices, processes and files that this test's virtual disks have left.
    fn traces(&self) -> Vec<String> {
        let base = self.base.path().to_str().unwrap();
        let mut traces: Vec<String> = fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .lines()
            .filter(|line| line.contains(base))
            .map(|line| format!("mount {line}"))
            .collect();
        for block in fs::read_dir("/sys/block").unwrap().flatten() {
            let file = fs::read_to_string(block.path().join("loop/backing_file"));
            if file.is_ok_and(|file| file.contains(base)) {
                traces.push(format!("loop device {:?}", block.file_name()));
            }
        }
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(base) {
                traces.push(format!("process {:?}", process.file_name()));
            }
        }
        let files = fs::read_dir(self.dirs.runtime.join("vdisk")).into_iter().flatten().flatten();
        let is_ours = |name: &str| name != ".lock";
        traces.extend(
            files
                .map(|file| file.file_name().into_string().unwrap())
                .filter(|name| is_ours(name))
                .map(|name| format!("directory {name}")),
        );
        traces
    }

    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.traces(), Vec::<String>::new());
    }

    /// Waits until another process has cleaned up.
    pub(crate) fn await_nothing_left(&self) {
        wait_until(|| self.traces().is_empty());
        self.assert_nothing_left();
    }

    /// Like `await_nothing_left`, but while another process has the disk open: the process that
    /// cleans up keeps running until the loop device is closed.
    pub(crate) fn await_nothing_but(&self, device: &Path) {
        let left = || -> Vec<String> {
            self.traces().into_iter().filter(|trace| !trace.starts_with("process")).collect()
        };
        wait_until(|| left().is_empty());
        assert_eq!(left(), Vec::<String>::new());
        assert!(device.exists());
    }
}

impl Drop for Stage {
    /// Removes the disks of a failed test, so that it leaves no mounts.
    fn drop(&mut self) {
        for disk in list(&self.dirs).unwrap_or_default() {
            if let Err(error) = remove(&self.dirs, &disk.name) {
                eprintln!("{} is left over: {error}", disk.name);
            }
        }
    }
}

pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns incompressible bytes without repetitions.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

/// Writes `data`, drops it from the page cache, and reads it again.
pub(crate) fn write_and_read_back(path: &Path, data: &[u8]) -> Vec<u8> {
    let mut file = File::options().create(true).truncate(true).write(true).open(path).unwrap();
    file.write_all(data).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    drop(file);
    let mut back = vec![0; data.len()];
    File::open(path).unwrap().read_exact(&mut back).unwrap();
    back
}

pub(crate) fn open_direct(path: &Path) -> File {
    let flags = OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// Reads `length` bytes at each of `count` consecutive offsets with direct I/O.
pub(crate) fn read_direct(path: &Path, length: usize, count: u64) {
    let file = open_direct(path);
    let mut room = vec![0u8; length + 4096];
    let start = room.as_ptr().align_offset(4096);
    for index in 0..count {
        file.read_exact_at(&mut room[start..start + length], index * length as u64).unwrap();
    }
}

pub(crate) fn end(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}
