//! Verbs that draw on a terminal, and a terminal that goes away.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a skipped test says so, others may panic

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use program::foreread_in;

/// Longer than it takes to end, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program on a terminal of its own, which script(1) holds: when that is killed, the terminal is
/// gone.
struct Session {
    dir: tempfile::TempDir,
    script: Child,
}

impl Session {
    /// Starts it, with what its shell does on SIGHUP: `:` for nothing, or to have it ignored by the
    /// program too, an empty word. `None` where there is no script(1).
    fn of(test: &str, words: &str, hangup: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let program = foreread_in(dir.path());
        let path = program.get_program().to_str().unwrap();
        let shell = format!(
            "trap '{hangup}' HUP; sh -c 'echo $$ > pid; exec {path} {words}'; echo $? > code.new; \
             mv code.new code"
        );
        fs::write(dir.path().join("session.sh"), shell).unwrap();
        let mut command = Command::new("script");
        command.args(["-qec", "sh session.sh", "/dev/null"]).current_dir(dir.path());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // Its input stays open: the end of it would be typed to the program.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(script) => Some(Self { dir, script }),
            Err(error) => {
                println!("SKIP {test}: script(1) cannot be started: {error}");
                None
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The number of the program, once it has taken the place of its shell.
    fn pid(&self) -> u32 {
        wait("the program to begin", || {
            let pid = fs::read_to_string(self.file("pid")).ok()?.trim().parse().ok()?;
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (comm.trim() == "foreread").then_some(pid)
        })
    }

    /// Takes the terminal away, and gives the program's exit code.
    fn hang_up(&mut self) -> i32 {
        self.script.kill().unwrap();
        self.script.wait().unwrap();
        wait("the program to end", || {
            fs::read_to_string(self.file("code")).ok()?.trim().parse().ok()
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
        // A test that failed must not leave the program behind; without a code it still runs.
        let pid = fs::read_to_string(self.file("pid")).unwrap_or_default();
        if !self.file("code").exists() && !pid.trim().is_empty() {
            let _ = Command::new("kill").args(["-KILL", pid.trim()]).status();
        }
    }
}

#[track_caller]
fn wait<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Hangs up while the program works, with and without SIGHUP coming through.
#[track_caller]
fn ends_with_its_terminal(test: &str, words: &str) {
    for hangup in [":", ""] {
        let Some(mut session) = Session::of(test, words, hangup) else { return };
        let pid = session.pid();
        std::thread::sleep(Duration::from_secs(3));
        assert!(Path::new(&format!("/proc/{pid}")).exists(), "{words} is at work");
        let code = session.hang_up();
        assert_eq!(code, 129, "{words}, SIGHUP {hangup:?}");
    }
}

#[test]
fn the_screen_of_watch_ends_with_its_terminal() {
    ends_with_its_terminal("the_screen_of_watch_ends_with_its_terminal", "watch");
}

#[test]
fn lines_of_watch_end_with_their_terminal() {
    ends_with_its_terminal("lines_of_watch_end_with_their_terminal", "watch --json");
}

#[test]
fn a_progress_bar_ends_with_its_terminal() {
    let words = "sweep sim:raid10-2008 --repeats 500 --fresh";
    ends_with_its_terminal("a_progress_bar_ends_with_its_terminal", words);
}

#[test]
fn what_is_to_outlive_its_terminal_does() {
    let test = "what_is_to_outlive_its_terminal_does";
    // As nohup(1) does: SIGHUP ignored, and nothing of it on the terminal.
    let words = "sweep sim:zero --vary read_ahead=4K,128K --workload seq-1 --repeats 3 > out \
                 2> err < /dev/null";
    let Some(mut session) = Session::of(test, words, "") else { return };
    session.pid();
    let code = session.hang_up();
    assert!(matches!(code, 0 | 5), "{code}: {:?}", fs::read_to_string(session.file("err")));
}
