//! `foreread serve`: live while a study runs, read-only, on this machine only.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

mod program;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use program::{Answer, Served, foreread_in};

struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn foreread(&self) -> Command {
        let mut command = foreread_in(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn sweep(&self, repeats: &str) -> Command {
        let mut command = self.foreread();
        let vary = "read_ahead=4K,128K,1M,8M";
        let words = ["sweep", "sim:hdd-2008", "--seed", "1", "-q", "--vary", vary, "--repeats"];
        command.args(words).arg(repeats);
        command
    }

    fn serve(&self) -> Served {
        let mut command = self.foreread();
        command.args(["serve", "--port", "0"]);
        Served::start(command)
    }

    /// Returns all files below the state directory with their contents.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut dirs = vec![self.0.path().join("state")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(path).unwrap());
                }
            }
        }
        files
    }
}

#[test]
fn whatever_is_asked_for_nothing_changes() {
    let state = State::new();
    assert!(state.sweep("2").status().unwrap().success());
    let before = state.files();
    let served = state.serve();
    for path in ["/", "/run/1", "/run/1.json", "/run/1.csv", "/run/1/state", "/compare/1,1"] {
        let Answer { status, body, .. } = served.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        let head = served.ask("HEAD", path, "localhost");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
    }
    // Paths that look like actions have no effect, either.
    for path in ["/run/1/delete", "/runs/delete?run=1", "/run/1?delete=yes", "/../runs.sqlite"] {
        served.get(path);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(served.ask(method, "/run/1", "localhost").status, 405, "{method}");
    }
    assert_eq!(served.ask("GET", "/", "evil.example").status, 403, "under another name");
    drop(served);
    let after = state.files();
    for (path, bytes) in &before {
        assert_eq!(after.get(path), Some(bytes), "{} changed", path.display());
    }
    // The files that SQLite creates to read a record hold no data.
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    let harmless = |path: &&&PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with("-shm") || (name.ends_with("-wal") && after[**path].is_empty())
    };
    assert!(new.iter().all(|path| harmless(&path)), "{new:?}");
}

#[test]
fn nobody_else_on_the_network_is_answered_unless_told() {
    let state = State::new();
    let served = state.serve();
    assert!(served.address.ip().is_loopback(), "{}", served.address);
    // Connecting a datagram socket sends no packet; it only determines the local address.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    match own.map(|own| own.ip()) {
        Ok(own) if !own.is_loopback() => {
            let there = SocketAddr::new(own, served.address.port());
            let found = TcpStream::connect_timeout(&there, Duration::from_secs(5));
            assert!(found.is_err(), "{there} answers");
        }
        _ => println!("SKIP the other address: this machine has none"),
    }
}

#[test]
fn trials_are_seen_as_they_land() {
    let state = State::new();
    let mut study = state.sweep("60").spawn().unwrap();
    let served = state.serve();
    let trials = || {
        let Answer { status, body, .. } = served.get("/run/1/state");
        let state: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        (status == 200).then(|| (state["trials"].as_u64().unwrap(), state["status"].clone()))
    };
    let begun = Instant::now();
    let mut seen: Vec<u64> = Vec::new();
    while seen.len() < 3 && begun.elapsed() < Duration::from_secs(120) {
        if let Some((count, status)) = trials()
            && seen.last().is_none_or(|last| count > *last)
        {
            assert_eq!(status, "running", "after {count} trials");
            seen.push(count);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Answer { status, body: page, .. } = served.get("/run/1");
    let _ = study.kill();
    let _ = study.wait();
    assert!(seen.len() == 3 && seen.is_sorted(), "{seen:?}");
    assert_eq!(status, 200);
    assert!(page.contains("data-live=\"/run/1/state\""), "the page keeps itself up to date");
}
