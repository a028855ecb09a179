//! Common code of the lease tests: the helper process, and a directory for its journals.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use foreread_tunables::{GuardCommand, TunableScope, Value, find, read};
use host::{BdiId, Dirs, Root, resolve};
use rustix::process::{Pid, Signal, kill_process};
use sys::lock::Lock;
use tempfile::TempDir;
use units::Bytes;

/// The timeout of a wait, for busy machines; the awaited events take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A bdi, and a directory for journals and locks.
pub struct Stage {
    base: TempDir,
    /// The tree that the helper uses instead of the machine; `None` for the machine.
    pub prefix: Option<PathBuf>,
    /// The path to resolve.
    pub target: String,
    pub bdi: BdiId,
}

impl Stage {
    pub fn new(prefix: Option<PathBuf>, target: &str, bdi: &str) -> Self {
        let base = tempfile::tempdir().expect("a directory");
        let bdi = BdiId::new(bdi).expect("a bdi");
        Self { base, prefix, target: target.to_owned(), bdi }
    }

    pub fn root(&self) -> Root {
        self.prefix.clone().map_or_else(Root::system, Root::at)
    }

    pub fn dirs(&self) -> Dirs {
        Dirs::under(self.base.path())
    }

    pub fn guard(&self) -> GuardCommand {
        // `env` sets `FLIP_ROOT` for the guard alone.
        let flip = flip_path().into_os_string();
        match &self.prefix {
            None => GuardCommand { program: flip.into(), args: vec!["guard".into()] },
            Some(prefix) => {
                let root = format!("FLIP_ROOT={}", prefix.display());
                GuardCommand {
                    program: "/usr/bin/env".into(),
                    args: vec![root.into(), flip, "guard".into()],
                }
            }
        }
    }

    /// Returns the command that starts the helper.
    pub fn flip(&self) -> Command {
        let mut command = Command::new(flip_path());
        command.arg(&self.target).arg(self.base.path()).stderr(Stdio::null());
        if let Some(prefix) = &self.prefix {
            command.env("FLIP_ROOT", prefix);
        }
        command
    }

    /// Starts the helper and returns when it has made its first change.
    pub fn flipping(&self) -> Child {
        started(&mut self.flip(), "flipping")
    }

    /// Creates the state after a power loss: run and guard are killed at once; the value is 4 KiB,
    /// and was 64 KiB before.
    pub fn power_cut(&self) {
        let mut child = started(self.flip().arg("hold"), "holding");
        let guard = self.guard_pid();
        // While stopped, the helper cannot notice that its guard has exited and restore the
        // settings itself.
        kill_process(Pid::from_child(&child), Signal::STOP).expect("stopped");
        kill_hard(guard);
        child.kill().expect("killed");
        child.wait().expect("its end");
        self.await_end();
        assert_eq!(self.value(), kib(4));
    }

    pub fn value(&self) -> Value {
        read(&self.root(), find("read_ahead").expect("it"), &self.site()).expect("a value")
    }

    pub fn site(&self) -> TunableScope {
        let storage = resolve(&self.root(), Path::new(&self.target)).expect("storage");
        TunableScope::with_layers(&self.root(), &storage)
    }

    /// Writes the value directly, as an administrator would.
    pub fn set_by_hand(&self, kib: u64) {
        let path = self.root().path(self.bdi.dir().join("read_ahead_kb"));
        fs::write(path, format!("{kib}\n")).expect("written");
    }

    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dirs().state.join("journal"));
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Waits until run and guard have exited.
    pub fn await_end(&self) {
        let lock = self.dirs().runtime.join(format!("lock/bdi-{}.lock", self.bdi));
        if lock.exists() {
            wait_until("the lock is free", || {
                let taken = Lock::try_take(&lock).expect("a lock file");
                taken.is_some_and(|lock| lock.release().is_ok())
            });
        }
    }

    /// Returns the process ID of the running helper's guard.
    pub fn guard_pid(&self) -> u32 {
        let journal = self.journals().pop().expect("a journal");
        let journal = journal.to_str().expect("a name");
        let all = fs::read_dir("/proc").expect("proc").flatten();
        let is_guard = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.windows(2).any(|pair| pair == [b"guard".as_slice(), journal.as_bytes()])
        };
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.into_iter().find(is_guard).expect("a guard")
    }
}

/// A machine with one disk, `8:0`, at 128 KiB, with a queue.
pub fn machine() -> (TempDir, Stage) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    };
    file("proc/self/mountinfo", "1 0 8:0 / / rw - ext4 /dev/sda rw\n");
    file("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    file("proc/sys/vm/dirty_bytes", "0\n");
    file("proc/sys/vm/dirty_ratio", "20\n");
    file("sys/devices/sda/dev", "8:0\n");
    file("sys/devices/sda/size", "2048\n");
    file("sys/devices/sda/diskseq", "3\n");
    file("sys/devices/sda/serial", "SN-0815\n");
    file("sys/devices/sda/queue/nr_requests", "64\n");
    file("sys/devices/sda/queue/max_sectors_kb", "1280\n");
    file("sys/devices/sda/queue/rotational", "1\n");
    file("sys/class/bdi/8:0/read_ahead_kb", "128\n");
    fs::create_dir_all(dir.path().join("sys/dev/block")).expect("directories");
    symlink("../../devices/sda", dir.path().join("sys/dev/block/8:0")).expect("a link");
    let stage = Stage::new(Some(dir.path().to_owned()), "/data", "8:0");
    (dir, stage)
}

pub fn kib(kib: u64) -> Value {
    Bytes::from_kib(kib).into()
}

/// Kills a process with SIGKILL.
pub fn kill_hard(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process");
    kill_process(pid, Signal::KILL).expect("killed");
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        sleep(Duration::from_millis(2));
    }
}

/// Kills a run at each of `moments`; afterwards all values must be as before.
pub fn survives_kills(stage: &Stage, moments: impl Iterator<Item = Moment>) {
    let original = stage.value();
    for (round, moment) in moments.enumerate() {
        let mut child = if moment.after_first_change {
            stage.flipping()
        } else {
            stage.flip().stdout(Stdio::null()).spawn().expect("the helper")
        };
        sleep(moment.delay);
        child.kill().expect("killed");
        child.wait().expect("its end");
        stage.await_end();
        assert_eq!(stage.value(), original, "round {round}, {moment:?}");
        // A run killed after creating its journal and before its guard leaves an empty one.
        let result = foreread_tunables::rollback(
            &stage.dirs(),
            &stage.root(),
            &foreread_tunables::RollbackSelection::All,
        );
        assert!(result.expect("rolled back").undone.is_empty(), "round {round}, {moment:?}");
    }
}

/// Starts a helper and returns when it has printed `word`.
fn started(command: &mut Command, word: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the helper");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("its output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line.trim_end(), word);
    child
}

/// When to kill a run.
#[derive(Debug)]
pub struct Moment {
    pub after_first_change: bool,
    pub delay: Duration,
}

/// Returns fifty moments: most while values are flipped, some while the run starts. The seed is
/// fixed; the machine adds enough randomness.
pub fn fifty_moments() -> impl Iterator<Item = Moment> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..50).map(move |round| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let delay = Duration::from_micros(state % 25_000);
        Moment { after_first_change: round % 5 != 0, delay }
    })
}

/// Cargo builds examples next to the directory of the tests.
fn flip_path() -> PathBuf {
    let own = std::env::current_exe().expect("this test");
    let target = own.parent().and_then(Path::parent).expect("a target folder");
    let path = target.join("examples/flip");
    assert!(path.exists(), "{} is not built: run `cargo test` without --test", path.display());
    path
}
