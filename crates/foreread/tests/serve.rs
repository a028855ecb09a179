//! `foreread serve`: live while a study runs, for reading only, on this machine only.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

mod program;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use program::foreread_in;

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

    /// Every file below the state directory with what is in it.
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

/// A server at work; it ends when this is dropped.
struct Served(Child, SocketAddr);

impl Served {
    fn start(state: &State) -> Self {
        let mut command = state.foreread();
        let mut child =
            command.args(["serve", "--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().next().unwrap().trim_start_matches("http://");
        Self(child, address.parse().unwrap())
    }

    /// Asks for a page; the status and everything after the headers.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.1).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned());
        (status, body)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "localhost")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn whatever_is_asked_for_nothing_changes() {
    let state = State::new();
    assert!(state.sweep("2").status().unwrap().success());
    let before = state.files();
    let served = Served::start(&state);
    for path in ["/", "/run/1", "/run/1.json", "/run/1.csv", "/run/1/state", "/compare/1,1"] {
        let (status, body) = served.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        assert_eq!(served.ask("HEAD", path, "localhost"), (200, String::new()), "{path}");
    }
    // Nor by paths that look like deeds.
    for path in ["/run/1/delete", "/runs/delete?run=1", "/run/1?delete=yes", "/../runs.sqlite"] {
        served.get(path);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(served.ask(method, "/run/1", "localhost").0, 405, "{method}");
    }
    assert_eq!(served.ask("GET", "/", "evil.example").0, 403, "under another name");
    drop(served);
    let after = state.files();
    for (path, bytes) in &before {
        assert_eq!(after.get(path), Some(bytes), "{} changed", path.display());
    }
    // What SQLite puts beside a record to read it holds no data.
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
    let served = Served::start(&state);
    assert!(served.1.ip().is_loopback(), "{}", served.1);
    // Connecting a datagram socket sends nothing; it only finds the way out.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    match own.map(|own| own.ip()) {
        Ok(own) if !own.is_loopback() => {
            let there = SocketAddr::new(own, served.1.port());
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
    let served = Served::start(&state);
    let trials = || {
        let (status, body) = served.get("/run/1/state");
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
    let (status, page) = served.get("/run/1");
    let _ = study.kill();
    let _ = study.wait();
    assert!(seen.len() == 3 && seen.is_sorted(), "{seen:?}");
    assert_eq!(status, 200);
    assert!(page.contains("data-live=\"/run/1/state\""), "the page keeps itself up to date");
}
