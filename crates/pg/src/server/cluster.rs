//! A private server of foreread.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sys::child::ChildProcess;
use sys::lock::Lock;

use super::home::{NAME, mark, remove_home, remove_left_over};
use super::process::RunLimit;
use super::{Client, ServerAccount, Tools, left};
use crate::error::PgError;

/// Superuser of a private server, and its database.
const USER: &str = "foreread";
/// Time limit for a server to start or to stop.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of every private server: no port, no background work during measurements.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "autovacuum=off",
    "synchronize_seqscans=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "jit=off",
    "logging_collector=off",
];

/// A private server. [`Cluster::remove`] or dropping stops it and removes its files. If this
/// process dies, the server exits, and the next run or [`remove_left`](super::remove_left) removes
/// its files.
#[derive(Debug)]
pub struct Cluster {
    tools: Tools,
    account: ServerAccount,
    home: PathBuf,
    socket: PathBuf,
    server: Option<ChildProcess>,
    lock: Lock,
}

impl Cluster {
    /// Creates a cluster in foreread's directory inside `dir`, without starting it.
    pub fn create(tools: &Tools, dir: &Path, limit: &RunLimit) -> Result<Self, PgError> {
        let account = ServerAccount::of_server()?;
        // Failures elsewhere are irrelevant; the code below checks the target itself.
        drop(left::remove_left(false));
        let home = dir.join(NAME);
        remove_left_over(&home)?;
        fs::DirBuilder::new().mode(0o700).create(&home).map_err(PgError::io("make", &home))?;
        let marked = mark(&home);
        let lock = match marked {
            Ok(lock) => lock,
            Err(error) => {
                let _ = fs::remove_dir(&home);
                return Err(error);
            }
        };
        let socket = left::socket_directory();
        let (tools, server) = (tools.clone(), None);
        // From here on, dropping the cluster removes the files.
        let cluster = Self { tools, account, home, socket, server, lock };
        cluster.account.own(&cluster.home)?;
        if !cluster.account.reaches(&cluster.home) {
            let (user, path) = (cluster.account.name.clone(), cluster.home.clone());
            return Err(PgError::Unreachable { user, path });
        }
        cluster.make_socket_directory()?;
        let invocation = cluster.account.invocation(&cluster.tools.program("initdb")?)?;
        // Without syncing (-N): the data need not survive a power loss.
        let invocation =
            invocation.args(["-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", USER, "-D"]);
        invocation.arg(cluster.data()).holding(cluster.shared_lock()?).run(limit)?;
        Ok(cluster)
    }

    fn make_socket_directory(&self) -> Result<(), PgError> {
        // The path of a socket is limited to about 100 characters; that of a target may be longer.
        let _ = fs::remove_dir_all(&self.socket);
        let made = fs::DirBuilder::new().mode(0o700).create(&self.socket);
        made.map_err(PgError::io("make", &self.socket))?;
        left::note(&self.socket, &self.home)?;
        self.account.own(&self.socket)
    }

    /// Returns the lock for a program that uses the files: they remain in use while that program
    /// exits after this process has died.
    fn shared_lock(&self) -> Result<File, PgError> {
        self.lock.file().try_clone().map_err(PgError::io("share", &self.home))
    }

    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Starts the server with these additional settings.
    pub fn start(&mut self, settings: &[(String, String)]) -> Result<(), PgError> {
        let log_path = self.home.join("log");
        let log = File::create(&log_path).map_err(PgError::io("make", &log_path))?;
        let mut command = self.account.command(&self.tools.program("postgres")?)?;
        command.arg("-D").arg(self.data());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(["-c", &format!("unix_socket_directories={}", self.socket.display())]);
        for (name, value) in settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let errors = log.try_clone().map_err(PgError::io("share", &log_path))?;
        command.stdin(self.shared_lock()?).stdout(log).stderr(errors);
        let child = ChildProcess::start(&mut command, "", 0);
        let child = child.map_err(PgError::io("start", "postgres"))?;
        self.server = Some(child);
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<(), PgError> {
        let pid_file = self.data().join("postmaster.pid");
        let begun = Instant::now();
        while begun.elapsed() < SERVER_TIMEOUT {
            // The eighth line is the state (src/include/utils/pidfile.h).
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            if text.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
                return Ok(());
            }
            let ended = self.server.as_mut().and_then(|server| server.try_status().ok().flatten());
            if let Some(status) = ended {
                self.server = None;
                let said = fs::read_to_string(self.home.join("log")).unwrap_or_default();
                return Err(super::process::failed("postgres".to_owned(), &status, &said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(PgError::Hangs { program: "postgres".to_owned(), limit: SERVER_TIMEOUT })
    }

    /// Stops the server, if it is running.
    pub fn stop(&mut self) -> Result<(), PgError> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        for (signal, timeout) in
            [(Signal::INT, SERVER_TIMEOUT), (Signal::QUIT, Duration::from_secs(5))]
        {
            server.signal(signal);
            let status =
                server.wait_timeout(timeout).map_err(PgError::io("wait for", "postgres"))?;
            if status.is_some() {
                return Ok(());
            }
        }
        Err(PgError::Hangs { program: "postgres".to_owned(), limit: SERVER_TIMEOUT })
    }

    pub fn client(&self) -> Result<Client, PgError> {
        let socket = self.socket.display();
        Ok(Client {
            psql: self.tools.program("psql")?,
            pgbench: self.tools.program("pgbench").ok(),
            connection: format!("host='{socket}' user={USER} dbname=postgres"),
            options: String::new(),
        })
    }

    /// Stops the server and removes its files.
    pub fn remove(mut self) -> Result<(), PgError> {
        let stopped = self.stop();
        let removed = self.clear();
        stopped?;
        removed
    }

    fn clear(&self) -> Result<(), PgError> {
        let _ = fs::remove_dir_all(&self.socket);
        remove_home(&self.home)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = self.clear();
    }
}
