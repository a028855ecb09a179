//! The environment of a command: its own directories, files that may be named, limits.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ending::Ending;
use super::line::Line;
use super::sandbox::Inside;

/// How long a command may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(180);
/// Limit of a command's address space, in KiB.
const MEMORY_KIB: u64 = 4 << 20;
/// Part of a command's output that is checked, in bytes.
const PRINTED: u64 = 4 << 20;
/// Verbs whose changes stay until they are undone.
const LASTING: &[&str] = &["apply", "persist", "vdisk create"];

/// Environment of all commands, each of which runs in a scene of its own.
pub struct Stage {
    pub scratch: PathBuf,
    pub device: Option<String>,
    program: PathBuf,
    limit: Duration,
    /// Whether commands can run as an ordinary user.
    has_users: bool,
}

impl Stage {
    pub fn set(inside: &Inside, limit: Duration) -> Self {
        let ordinary = Command::new("unshare").args(ORDINARY).arg("true").output();
        let stage = Self {
            scratch: inside.scratch.clone(),
            device: inside.device.clone(),
            program: inside.program.clone(),
            limit,
            has_users: ordinary.is_ok_and(|output| output.status.success()),
        };
        stage.make_files();
        stage
    }

    /// Runs the program and returns its stdout.
    pub fn printed(&self, words: &[&str]) -> String {
        let dir = self.scratch.join("files");
        let mut command = Command::new(&self.program);
        environment(&mut command, &dir);
        let output = command.args(words).current_dir(dir.join("here")).output().unwrap();
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 5)),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Creates the files that command lines name, and a record with two runs.
    fn make_files(&self) {
        let here = self.scratch.join("files/here");
        for dir in ["data", "empty-dir"] {
            fs::create_dir_all(here.join(dir)).unwrap();
        }
        let write = |name: &str, bytes: &[u8]| fs::write(here.join(name), bytes).unwrap();
        write("data/file", &vec![7; 1 << 20]);
        write("empty", b"");
        write("binary", &[0, 159, 146, 150, 255, 1, 2, 3]);
        write("model.toml", self.printed(&["models", "show", "hdd-2008"]).as_bytes());
        write("workload.toml", self.printed(&["workloads", "show", "seq-8"]).as_bytes());
        write("table.csv", b"read_ahead_kib,seq-1\n128,100\n1024,200\n");
        write("t.trace", b"offset,length\n0,4096\n4096,4096\n65536,4096\n");
        write("job.fio", b"[a]\nrw=read\nsize=16m\nbs=64k\n");
        write("config.toml", b"color = \"never\"\n[sweep]\nrepeats = 1\n");
        write("policy.toml", b"[[rule]]\nread_ahead = \"128K\"\n");
        let sweep = ["sweep", "sim:nvme", "--vary", "read_ahead=4K,128K", "--workload", "seq-1"];
        for seed in ["1", "2"] {
            let rest = ["--repeats", "1", "--duration", "50ms", "--seed", seed, "--fresh"];
            self.printed(&[&sweep[..], &rest[..]].concat());
        }
        fs::copy(here.join("../state/runs.sqlite"), here.join("runs.sqlite")).unwrap();
        let foreign = rusqlite::Connection::open(here.join("foreign.sqlite")).unwrap();
        foreign.execute_batch("create table people (name text)").unwrap();
    }

    /// Runs a command in a scene of its own; returns how it exited, and what is wrong.
    pub fn play(&self, line: &Line, number: u64) -> (Ending, Vec<String>) {
        let dir = self.scratch.join(format!("scene-{number}"));
        copy(&self.scratch.join("files"), &dir);
        let here = dir.join("here");
        std::os::unix::fs::symlink("round", here.join("round")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            here.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let data = super::names(&here.join("data"));
        let mut problems = Vec::new();
        let (ending, stuck) = self.perform(line, &dir);
        if stuck {
            problems.push(format!("stuck: does not end within {GRACE:?} of SIGTERM"));
        }
        problems.extend(ending.problems(line));
        for (what, place) in [("TMPDIR", "tmp"), ("HOME", "home")] {
            let left = super::names(&dir.join(place));
            if !left.is_empty() {
                problems.push(format!("leftover in {what}: {left:?}"));
            }
        }
        let after = super::names(&here.join("data"));
        if after != data {
            problems.push(format!("leftover in the target: {after:?}"));
        }
        if LASTING.contains(&line.verb.as_str()) && !line.unprivileged {
            self.take_back(&dir);
        }
        let _ = fs::remove_dir_all(&dir);
        (ending, problems)
    }

    /// Undoes changes that stay until they are undone.
    fn take_back(&self, dir: &Path) {
        for words in [&["rollback", "all", "-q"][..], &["vdisk", "remove", "--all", "-q"]] {
            let mut command = Command::new(&self.program);
            environment(&mut command, dir);
            let _ = command.args(words).current_dir(dir.join("here")).output();
        }
    }

    /// Runs a command; returns how it exited, and whether it had to be killed.
    fn perform(&self, line: &Line, dir: &Path) -> (Ending, bool) {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -v {MEMORY_KIB}; exec \"$@\"")).arg("sh");
        if line.unprivileged && self.has_users {
            command.arg("unshare").args(ORDINARY);
        }
        command.arg(&self.program).args(&line.words).current_dir(dir.join("here"));
        environment(&mut command, dir);
        let (out, err) = (dir.join("out"), dir.join("err"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        command.stdin(if line.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut child = command.spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(line.stdin.as_bytes());
        }
        let (status, stopped, stuck) = self.wait(&mut child);
        (Ending::of(status, stopped, read(&out), read(&err)), stuck)
    }

    /// Waits for a command; also returns whether it got SIGTERM, and whether it ignored that.
    fn wait(&self, child: &mut Child) -> (ExitStatus, bool, bool) {
        if let Some(status) = wait_for(child, self.limit) {
            return (status, false, false);
        }
        let pid = Pid::from_child(child);
        let _ = kill_process(pid, Signal::TERM);
        if let Some(status) = wait_for(child, GRACE) {
            return (status, true, false);
        }
        child.kill().unwrap();
        (child.wait().unwrap(), true, true)
    }
}

/// Options of unshare(1) that make a command see an ordinary user without privileges.
const ORDINARY: &[&str] = &["--user", "--map-user=1000", "--map-group=1000"];

fn wait_for(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begun.elapsed() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path).unwrap();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, PRINTED), &mut bytes).unwrap();
    bytes
}

/// Clears the environment except for PATH, and sets the directories of the command.
fn environment(command: &mut Command, dir: &Path) {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env_clear().env("PATH", format!("{path}:/usr/sbin:/sbin")).env("LC_ALL", "C.UTF-8");
    let own = [
        ("FOREREAD_STATE_DIR", "state"),
        ("FOREREAD_RUNTIME_DIR", "runtime"),
        ("HOME", "home"),
        ("TMPDIR", "tmp"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "xdg-state"),
        ("XDG_RUNTIME_DIR", "xdg-runtime"),
    ];
    for (name, place) in own {
        let place = dir.join(place);
        fs::create_dir_all(&place).unwrap();
        command.env(name, place);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in super::names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}
