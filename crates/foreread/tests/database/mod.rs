//! Captured hosts in a directory, and a PostgreSQL server for them.
#![allow(dead_code)] // each test uses a part of it

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pg::{Cluster, RunLimit, Tools};
use serde_json::Value;
use testkit::host_tree::{HostTree, TreeDisk};

use crate::program::{Scratch, run};

/// Captured hosts in a directory, and a server for them.
pub struct Fleet {
    pub server: Cluster,
    pub scratch: Scratch,
    _turn: MutexGuard<'static, ()>,
}

/// A process runs one server at a time.
static TURN: Mutex<()> = Mutex::new(());

impl Fleet {
    /// Starts a server; `None`, after printing why, if that is impossible.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new())
    }

    /// Starts a server with the settings that `prepare` returns. `prepare` may also put files into
    /// the data directory.
    pub fn start_with(prepare: impl FnOnce(&Path) -> Vec<(String, String)>) -> Option<Self> {
        let tools = match Tools::find() {
            Ok(tools) => tools,
            Err(error) => {
                println!("SKIP: {error}");
                return None;
            }
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::new();
        // The server may run as a user of its own.
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        let limit = RunLimit::seconds(120);
        let mut server = Cluster::create(&tools, scratch.path(), &limit).unwrap();
        let settings = prepare(&server.data());
        server.start(&settings).unwrap();
        Some(Self { server, scratch, _turn: turn })
    }

    pub fn host(&self, name: &str, number: u32, kib: &[u64]) -> HostTree {
        let path = self.scratch.path().join("hosts").join(name);
        let mut tree = HostTree::new(&path, name, &format!("{number:032x}")).unwrap();
        for (index, kib) in (0..).zip(kib) {
            let (mount, wwn) = (format!("/srv/{index}"), format!("eui.{number:x}.{index:x}"));
            let disk = TreeDisk { index, read_ahead_kib: *kib, mount: &mount, wwn: &wwn };
            tree.disk(&disk).unwrap();
        }
        tree
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = self.scratch.foreread(&format!("fleet {words}"));
        command.env("FOREREAD_DATABASE", self.server.client().unwrap().connection());
        command
    }

    pub fn json(&self, words: &str) -> Value {
        let (code, out, said) = run(&mut self.command(&format!("{words} --json")));
        assert_eq!(code, 0, "{words}: {out}{said}");
        serde_json::from_str(&out).unwrap()
    }

    pub fn sql(&self, statements: &str) -> String {
        let client = self.server.client().unwrap();
        client.run(statements, &RunLimit::seconds(60)).unwrap().trim().to_owned()
    }

    /// Waits until the server has a session that meets this SQL condition.
    pub fn wait_for(&self, session: &str) {
        let started = Instant::now();
        let count = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {session}"
        );
        while self.sql(&count) == "0" {
            assert!(started.elapsed() < Duration::from_secs(120), "no session with {session}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Surveys a captured host into a file of this name, with this time of the survey.
    pub fn survey(&self, host: &str, file: &str, taken_unix_s: f64, change: impl Fn(&mut Value)) {
        let words = format!("survey --root hosts/{host}");
        let (code, out, said) = run(&mut self.command(&words));
        assert_eq!(code, 0, "{said}");
        let mut survey: Value = serde_json::from_str(&out).unwrap();
        survey["taken_unix_s"] = taken_unix_s.into();
        change(&mut survey);
        self.scratch.file(file, survey.to_string());
    }
}
