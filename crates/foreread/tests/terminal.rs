//! Verbs that draw on a terminal, and the loss of that terminal.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test prints skips, and may panic

mod program;
mod session;

use std::fs;
use std::path::Path;
use std::time::Duration;

use session::Session;

/// Hangs up while the program runs, with SIGHUP delivered and with SIGHUP ignored.
#[track_caller]
fn ends_with_its_terminal(test: &str, words: &str) {
    for hangup in [":", ""] {
        let state = tempfile::tempdir().unwrap();
        let Some(mut session) = Session::of(test, state.path(), words, hangup) else { return };
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
    // As with nohup(1): SIGHUP is ignored, and no stream of the program is the terminal.
    let words = "sweep sim:zero --vary read_ahead=4K,128K --workload seq-1 --repeats 3 > out \
                 2> err < /dev/null";
    let state = tempfile::tempdir().unwrap();
    let Some(mut session) = Session::of(test, state.path(), words, "") else { return };
    session.pid();
    let code = session.hang_up();
    assert!(matches!(code, 0 | 5), "{code}: {:?}", fs::read_to_string(session.file("err")));
}
