//! A virtual disk, and `foreread auto` on it.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use sys::cachestat::cachestat;
use testkit::HOST_LOCK;
use units::Bytes;

use crate::program::foreread_in;
use crate::readers::now;

/// A virtual disk; removed when dropped.
pub struct Stage {
    dir: tempfile::TempDir,
    pub mount: PathBuf,
    /// Device number of the disk, as in `7:3`.
    number: String,
    _turn: sys::lock::Lock,
}

impl Stage {
    /// Creates the disk with this specification.
    pub fn set(words: &str) -> Self {
        let turn = sys::lock::Lock::acquire(Path::new(HOST_LOCK)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut create = foreread_in(dir.path());
        let made = create.args(["vdisk", "create", words, "--name", "stage", "--json"]).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let record: Value = serde_json::from_slice(&made.stdout).unwrap();
        let mount = PathBuf::from(record["mountpoint"].as_str().unwrap());
        let device = Path::new(record["device"].as_str().unwrap()).file_name().unwrap().to_owned();
        let number = fs::read_to_string(Path::new("/sys/class/block").join(device).join("dev"));
        let number = number.unwrap().trim().to_owned();
        let dilation = record["dilation"].as_f64().unwrap();
        println!("  virtual:{words} at 1/{dilation} of its model's speed");
        Self { dir, mount, number, _turn: turn }
    }

    /// Creates files `0` to `count-1` of `mib` MiB each, and evicts them.
    pub fn files(&self, count: u32, mib: usize) {
        let piece = vec![7; 1 << 20];
        for number in 0..count {
            let mut file = fs::File::create(self.mount.join(number.to_string())).unwrap();
            for _ in 0..mib {
                std::io::Write::write_all(&mut file, &piece).unwrap();
            }
            file.sync_all().unwrap();
            evict(&file);
        }
    }

    /// Sets the window of files that are opened from now on.
    pub fn set_window(&self, kib: u64) {
        let knob = format!("/sys/class/bdi/{}/read_ahead_kb", self.number);
        fs::write(knob, kib.to_string()).unwrap();
    }

    /// Returns the number of bytes that the disk has read.
    pub fn device_bytes(&self) -> u64 {
        let stat = fs::read_to_string(format!("/sys/dev/block/{}/stat", self.number)).unwrap();
        stat.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() * 512
    }

    pub fn foreread(&self) -> Command {
        foreread_in(self.dir.path())
    }

    /// Starts `foreread auto` on the disk.
    pub fn auto(&self) -> Daemon {
        let begun = now();
        let mut command = self.foreread();
        command.arg("auto").arg(&self.mount).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines: Arc<Mutex<Vec<(f64, String)>>> = Arc::default();
        let (out, message) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                message.lock().unwrap().push((now() - begun, line));
            }
        });
        Daemon { child, begun, lines }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.foreread().args(["vdisk", "remove", "--all", "-q"]).status();
    }
}

/// Evicts a file; repeats it because dirty pages may stay cached for a moment.
fn evict(file: &fs::File) {
    let size = Bytes::new(file.metadata().unwrap().len());
    for _ in 0..100 {
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        if cachestat(file.as_fd(), Bytes::ZERO, size).unwrap().cached.is_zero() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a file stays cached");
}

/// A running `foreread auto`, terminated when dropped.
pub struct Daemon {
    child: Child,
    /// Start time on the monotonic clock, in seconds.
    pub begun: f64,
    lines: Arc<Mutex<Vec<(f64, String)>>>,
}

impl Daemon {
    /// Returns the decisions so far: seconds after the start, and the printed line.
    pub fn decisions(&self) -> Vec<(f64, String)> {
        self.lines.lock().unwrap().clone()
    }

    /// Prints the first `most` decisions.
    pub fn show(&self, most: usize) {
        let all = self.decisions();
        for (at, line) in all.iter().take(most) {
            println!("    {at:5.2} s  {line}");
        }
        if all.len() > most {
            println!("    … and {} more", all.len() - most);
        }
    }

    /// Returns the processor time of the daemon and its guard, in seconds (proc(5), hundredths).
    pub fn cpu(&self) -> f64 {
        let ticks = |pid: u32| -> f64 {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest: Vec<&str> =
                text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            rest.get(11..13)
                .map_or(0.0, |both| both.iter().map(|n| n.parse::<f64>().unwrap()).sum())
        };
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
        let children = children.split_whitespace().map(|pid| ticks(pid.parse().unwrap()));
        (ticks(own) + children.sum::<f64>()) / 100.0
    }

    /// Returns the resident memory of the daemon in MiB: the present and the peak value.
    pub fn memory(&self) -> (f64, f64) {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "auto does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut said = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
        println!("    {}", said.trim().replace('\n', "\n    "));
    }
}

/// Sleeps until this time of the monotonic clock, in seconds.
pub fn sleep_until(at: f64) {
    std::thread::sleep(Duration::from_secs_f64((at - now()).max(0.0)));
}
