//! `foreread auto` and `run` with processes that start, exit, crash or are hostile, on a slow
//! virtual disk: if no reader waits, `auto` does nothing.

mod answers;
mod hostile;
mod next_files;
mod sandbox;
mod unprivileged;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::BdiId;
use observe::{Census, OpenFile, OpenFileFilter};
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};

use super::{Stage, foreread_in, text};

/// A slow disk.
const DISK: &str = "raid10-2008,fs=ext4,size=2G,dilation=1";
const MIB: u64 = 1 << 20;

/// Returns the number (of repeats or seconds) in a variable. The default keeps an ordinary run of
/// the tests short.
fn asked(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Creates the stage of a test; `None`, after printing why, if the test is skipped.
fn stage(name: &str) -> Option<Stage> {
    stage_of(name, DISK)
}

/// Like `stage`, on a disk with this specification.
fn stage_of(name: &str, disk: &str) -> Option<Stage> {
    if let Err(error) = Census::load() {
        println!("SKIP {name}: {error}");
        return None;
    }
    let mut stage = Stage::of(name, disk)?;
    fs::write(&stage.knob, "128").unwrap();
    stage.original = stage.value();
    Some(stage)
}

impl Stage {
    /// Creates a file that consists of this byte, and evicts it.
    fn data(&self, name: &str, mib: u64, byte: u8) -> PathBuf {
        let path = self.mount.join(name);
        fs::write(&path, vec![byte; (mib * MIB) as usize]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        evict(&file);
        path
    }

    fn bdi(&self) -> BdiId {
        let dir = self.knob.parent().unwrap().file_name().unwrap();
        BdiId::new(dir.to_str().unwrap()).unwrap()
    }

    fn open_files(&self, census: &Census) -> Vec<OpenFile> {
        census.open_files(&OpenFileFilter::on_bdi(&self.bdi())).unwrap()
    }

    fn auto(&self, words: &[&str]) -> Daemon {
        let mut command = self.foreread();
        command.args(["auto", "--interval", "20ms"]).args(words).arg(&self.mount);
        Daemon::start(&mut command)
    }
}

fn evict(file: &File) {
    fadvise(file, 0, None, Advice::DontNeed).unwrap();
}

/// A running `foreread auto`, and the lines that it has printed.
struct Daemon {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (out, message) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                message.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    /// Returns the number of windows that it has set.
    fn windows_set(&self) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(": set window ")).count()
    }

    /// Waits until it has set this number of windows.
    #[track_caller]
    fn wait_for_windows(&mut self, count: usize) {
        let begun = Instant::now();
        while self.windows_set() < count {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?} {}", self.said());
            assert!(begun.elapsed() < Duration::from_secs(60), "it sets no windows");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: Signal) {
        // The process may have exited already.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    /// Terminates the daemon and returns its stderr.
    #[track_caller]
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.child.wait().unwrap();
        let said = self.said();
        assert_eq!(status.code(), Some(143), "{said}");
        assert!(!said.contains("panic"), "{said}");
        said
    }

    /// Returns the targets of its descriptors: BPF objects, pidfds, sockets, others' files.
    fn descriptors(&self) -> Vec<String> {
        let dir = format!("/proc/{}/fd", self.child.id());
        let entries = fs::read_dir(dir).unwrap().flatten();
        let names = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

/// Ends the daemon of a test that has failed, as it would disturb the next test.
impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// Threads that repeat their work until this is dropped.
struct Busy {
    end: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn new() -> Self {
        Self { end: Arc::default(), threads: Vec::new() }
    }

    fn with(mut self, mut work: impl FnMut() + Send + 'static) -> Self {
        let end = Arc::clone(&self.end);
        self.threads.push(std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                work();
            }
        }));
        self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Opens a file, reads all of it from the disk, and checks that it consists of this byte.
fn read_anew(path: &Path, byte: u8) {
    let file = File::open(path).unwrap();
    evict(&file);
    read_all(&file, byte);
}

fn read_all(file: &File, byte: u8) {
    let mut buffer = vec![0; 65536];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut buffer, at).unwrap();
        if read == 0 {
            return;
        }
        assert!(buffer[..read].iter().all(|found| *found == byte), "at {at}");
        at += read as u64;
    }
}

/// A small random number generator, seeded so that a failure can be reproduced.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

#[test]
fn host_auto_killed_at_any_moment_leaves_the_bdi_and_the_files() {
    let name = "host_auto_killed_at_any_moment_leaves_the_bdi_and_the_files";
    let Some(stage) = stage(name) else { return };
    let paths: Vec<PathBuf> = (1..=4).map(|byte| stage.data(&byte.to_string(), 24, byte)).collect();
    // Some open files stay and some come and go, so that there is always a window to set.
    let busy = paths.iter().zip(1..).fold(Busy::new(), |busy, (path, byte)| {
        let (path, held) = (path.clone(), File::open(path).unwrap());
        busy.with(move || {
            evict(&held);
            read_all(&held, byte);
            read_anew(&path, byte);
        })
    });
    let kills = asked("FOREREAD_KILLS", 6);
    let mut chance = Chance(asked("FOREREAD_SEED", 7));
    let (mut acted, mut held) = (0, 0);
    for number in 0..kills {
        let mut auto = stage.auto(&["--new-files"]);
        match number % 3 {
            // At any moment, also while it starts.
            0 => std::thread::sleep(Duration::from_millis(chance.below(2500))),
            // Perhaps it sets no window: open files keep those of the auto that was killed before.
            1 => {
                let begun = Instant::now();
                while auto.windows_set() == 0 && begun.elapsed() < Duration::from_secs(3) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                std::thread::sleep(Duration::from_micros(chance.below(1_500_000)));
            }
            // In the instant in which the bdi has another window.
            _ => {
                let begun = Instant::now();
                while stage.value() == stage.original && begun.elapsed() < Duration::from_secs(3) {}
            }
        }
        auto.signal(Signal::KILL);
        auto.child.wait().unwrap();
        acted += usize::from(auto.windows_set() > 0);
        held += usize::from(stage.value() != stage.original);
        stage.wait(|| stage.value() == stage.original, "the guard to put the bdi back");
    }
    drop(busy);
    println!("{kills} kills, {acted} after it had acted, {held} while the bdi was held");
    for (path, byte) in paths.iter().zip(1..) {
        read_anew(path, byte);
    }
    let left = stage.foreread().args(["rollback", "all"]).output().unwrap();
    assert!(left.status.success(), "{}", text(&left.stderr));
    assert_eq!(stage.value(), stage.original);
}

/// Processes that open, read, duplicate, close, exec and exit in any order.
const RESTLESS: &str = r#"
    exec 9<"$0"; exec 8<"$1"; head -c 3000000 <&9 >/dev/null
    exec 9<&8; exec 8<"$0"; head -c 3000000 <&8 >/dev/null; exec 8<&-
    ( head -c 2000000 <&9 >/dev/null ) & exec dd bs=65536 count=99 <&9 2>/dev/null >/dev/null
"#;

#[test]
fn host_auto_goes_along_with_processes_that_come_and_go() {
    let name = "host_auto_goes_along_with_processes_that_come_and_go";
    let Some(stage) = stage(name) else { return };
    let paths: Vec<PathBuf> = (1..=6).map(|byte| stage.data(&byte.to_string(), 16, byte)).collect();
    let mut busy = Busy::new();
    for number in 0..3_u8 {
        let (path, other) = (paths[usize::from(number)].clone(), paths[5].clone());
        let mut chance = Chance(u64::from(number));
        busy = busy.with(move || match chance.below(4) {
            0 => read_anew(&path, number + 1),
            1 => {
                let files: Vec<File> = (0..20).map(|_| File::open(&path).unwrap()).collect();
                read_all(&files[3], number + 1);
            }
            2 => {
                let mut shell = Command::new("sh");
                shell.args(["-c", RESTLESS]).arg(&path).arg(&other).status().unwrap();
            }
            _ => {
                let mut shell = Command::new("sh");
                shell.args(["-c", RESTLESS]).arg(&other).arg(&path).stdout(Stdio::null());
                let mut child = shell.spawn().unwrap();
                std::thread::sleep(Duration::from_millis(chance.below(60)));
                child.kill().unwrap();
                child.wait().unwrap();
                evict(&File::open(&path).unwrap());
            }
        });
    }
    let kept = File::open(&paths[4]).unwrap();
    // Otherwise new files are opened with the right window, and auto leaves them alone.
    let mut auto = stage.auto(&[]);
    let until = Instant::now() + Duration::from_secs(asked("FOREREAD_FUZZ_SECONDS", 5));
    auto.wait_for_windows(10);
    while Instant::now() < until {
        evict(&kept);
        read_all(&kept, 5);
        assert!(auto.child.try_wait().unwrap().is_none(), "{}", auto.said());
    }
    let set = auto.windows_set();
    drop(busy);
    println!("{set} windows set; {}", auto.end().trim());
    assert_eq!(stage.value(), stage.original);
    for file in stage.open_files(&Census::load().unwrap()) {
        assert_eq!(file.window, file.bdi_window, "{file:?}");
    }
}

#[test]
fn host_auto_leaks_nothing() {
    let Some(stage) = stage("host_auto_leaks_nothing") else { return };
    let paths: Vec<PathBuf> = (1..=3).map(|byte| stage.data(&byte.to_string(), 16, byte)).collect();
    let busy = paths.iter().zip(1..).fold(Busy::new(), |busy, (path, byte)| {
        let path = path.clone();
        busy.with(move || read_anew(&path, byte))
    });
    // Otherwise new files are opened with the right window, and auto leaves them alone.
    let mut auto = stage.auto(&[]);
    auto.wait_for_windows(3);
    // The smallest of many samples omits descriptors that are held only for an instant.
    let least = |auto: &Daemon| {
        let looks = (0..40).map(|_| {
            std::thread::sleep(Duration::from_millis(25));
            auto.descriptors()
        });
        looks.min_by_key(Vec::len).unwrap()
    };
    let before = least(&auto);
    std::thread::sleep(Duration::from_secs(asked("FOREREAD_SOAK_SECONDS", 18)));
    // On a busy machine, a descriptor may be held longer; a leaked one is held forever.
    let mut after = least(&auto);
    let begun = Instant::now();
    while after.len() > before.len() && begun.elapsed() < Duration::from_secs(30) {
        after = least(&auto);
    }
    let set = auto.windows_set();
    let bpf = |held: &[String]| held.iter().filter(|name| name.contains("bpf")).count();
    println!(
        "{} descriptors, {} of them of BPF, then {} and {}; {set} windows set",
        before.len(),
        bpf(&before),
        after.len(),
        bpf(&after)
    );
    assert!(bpf(&before) > 0 && after.len() <= before.len(), "{before:#?} {after:#?}");
    assert!(bpf(&after) <= bpf(&before));
    drop(busy);
    let program = auto.child.id();
    auto.end();
    // When the process and its guard exit, the kernel frees everything that they held.
    let guards = |pid: u32| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    assert!(guards(program).is_err(), "it is gone");
}

#[test]
fn host_run_changes_the_window_of_what_its_command_reads() {
    let name = "host_run_changes_the_window_of_what_its_command_reads";
    let Some(stage) = stage(name) else { return };
    let path = stage.data("read", 700, 7);
    let other = stage.data("other", 8, 8);
    let bystander = Busy::new().with(move || read_anew(&other, 8));
    let mut command = foreread_in(stage.dir.path());
    command.args(["run", "--interval", "20ms", "--", "sh", "-c"]);
    command.args(["dd bs=64k of=/dev/null < \"$0\"; exit 7"]).arg(&path);
    let output = command.output().unwrap();
    drop(bystander);
    let (lines, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{said}");
    let of_it = |line: &&str| line.contains("/read: set window 128 KiB → ");
    assert!(lines.lines().any(|line| of_it(&line)), "{lines} {said}");
    let who: BTreeSet<&str> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(who.iter().all(|who| ["dd", "sh"].contains(who)), "{lines}");
    assert_eq!(stage.value(), stage.original);
}
