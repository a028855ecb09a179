//! A server of our own.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sys::lock::Lock;

use crate::process::{Limit, signal};
use crate::{Account, Client, PostgresError, Tools, left};

/// The directory of a server of ours: one for each target, so that nothing is ever left twice.
pub(crate) const NAME: &str = ".foreread-postgres";
/// The file that tells it to be ours, locked as long as it is in use.
const MARK: &str = "made-by-foreread";
/// The superuser of a server of ours, and its database.
const USER: &str = "foreread";
/// A server that is not up, or not down, after so long never will be.
const PATIENCE: Duration = Duration::from_secs(60);

/// Settings of every server: no port, no work of its own while it is measured.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "autovacuum=off",
    "synchronize_seqscans=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "jit=off",
    "logging_collector=off",
];

/// A server of our own. It is stopped, and its files are removed, by [`Cluster::remove`] or when it
/// is dropped; if this process dies the server ends, and its files are removed by the next one, or
/// by [`crate::remove_left`].
#[derive(Debug)]
pub struct Cluster {
    tools: Tools,
    account: Account,
    home: PathBuf,
    socket: PathBuf,
    server: Option<Child>,
    lock: Lock,
}

impl Cluster {
    /// Makes one in a directory of its own inside `dir`, not yet started.
    pub fn create(tools: &Tools, dir: &Path, limit: &Limit) -> Result<Self, PostgresError> {
        let account = Account::of_server()?;
        // What cannot be removed hinders nobody here; the target's own is looked at below.
        drop(left::remove_left(false));
        let home = dir.join(NAME);
        remove_left_over(&home)?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&home)
            .map_err(PostgresError::io("make", &home))?;
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
        // From here on, dropping it removes the files.
        let cluster = Self { tools, account, home, socket, server, lock };
        cluster.account.own(&cluster.home)?;
        if !cluster.account.reaches(&cluster.home) {
            let (user, path) = (cluster.account.name.clone(), cluster.home.clone());
            return Err(PostgresError::Unreachable { user, path });
        }
        cluster.make_socket_directory()?;
        let order = cluster.account.order(&cluster.tools.program("initdb")?)?;
        // Without syncing: nobody will miss the data after a power loss.
        let order = order.args(["-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", USER, "-D"]);
        order.arg(cluster.data()).holding(cluster.shared_lock()?).run(limit)?;
        Ok(cluster)
    }

    fn make_socket_directory(&self) -> Result<(), PostgresError> {
        // The path of a socket has about a hundred letters; that of a target may have more.
        let _ = fs::remove_dir_all(&self.socket);
        let made = fs::DirBuilder::new().mode(0o700).create(&self.socket);
        made.map_err(PostgresError::io("make", &self.socket))?;
        left::note(&self.socket, &self.home)?;
        self.account.own(&self.socket)
    }

    /// The lock for a program at work in its files: while that goes down after the end of this
    /// process, the files are in use.
    fn shared_lock(&self) -> Result<File, PostgresError> {
        self.lock.file().try_clone().map_err(PostgresError::io("share", &self.home))
    }

    /// The directory of its data.
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Its programs.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Starts it with these settings besides its own.
    pub fn start(&mut self, settings: &[(String, String)]) -> Result<(), PostgresError> {
        let log_path = self.home.join("log");
        let log = File::create(&log_path).map_err(PostgresError::io("make", &log_path))?;
        let mut command = self.account.command(&self.tools.program("postgres")?)?;
        command.arg("-D").arg(self.data());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(["-c", &format!("unix_socket_directories={}", self.socket.display())]);
        for (name, value) in settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let errors = log.try_clone().map_err(PostgresError::io("share", &log_path))?;
        let child = command
            .process_group(0)
            .stdin(self.shared_lock()?)
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(PostgresError::io("start", "postgres"))?;
        self.server = Some(child);
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<(), PostgresError> {
        let pid_file = self.data().join("postmaster.pid");
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            // Its eighth line is the state (src/include/utils/pidfile.h).
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            if text.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
                return Ok(());
            }
            let ended = self.server.as_mut().and_then(|server| server.try_wait().ok().flatten());
            if let Some(status) = ended {
                self.server = None;
                let said = fs::read_to_string(self.home.join("log")).unwrap_or_default();
                return Err(crate::process::failed("postgres".to_owned(), &status, &said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(PostgresError::Hangs { program: "postgres".to_owned(), limit: PATIENCE })
    }

    /// Stops it; nothing happens if it does not run.
    pub fn stop(&mut self) -> Result<(), PostgresError> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        for (how, patience) in [(Signal::INT, PATIENCE), (Signal::QUIT, Duration::from_secs(5))] {
            signal(&server, how);
            let begun = Instant::now();
            while begun.elapsed() < patience {
                match server.try_wait() {
                    Ok(Some(_)) => return Ok(()),
                    Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                    Err(error) => return Err(PostgresError::io("wait for", "postgres")(error)),
                }
            }
        }
        let _ = server.kill();
        let _ = server.wait();
        Err(PostgresError::Hangs { program: "postgres".to_owned(), limit: PATIENCE })
    }

    /// The way to it.
    pub fn client(&self) -> Result<Client, PostgresError> {
        let socket = self.socket.display();
        Ok(Client {
            psql: self.tools.program("psql")?,
            pgbench: self.tools.program("pgbench").ok(),
            connection: format!("host='{socket}' user={USER} dbname=postgres"),
            options: String::new(),
        })
    }

    /// Stops it and removes its files.
    pub fn remove(mut self) -> Result<(), PostgresError> {
        let stopped = self.stop();
        let removed = self.clear();
        stopped?;
        removed
    }

    fn clear(&self) -> Result<(), PostgresError> {
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

/// Marks a directory as ours and takes it.
pub(crate) fn mark(home: &Path) -> Result<Lock, PostgresError> {
    let path = home.join(MARK);
    File::create(&path).map_err(PostgresError::io("make", &path))?;
    let lock = Lock::try_take(&path).map_err(PostgresError::io("lock", &path))?;
    lock.ok_or_else(|| PostgresError::Busy { path: home.to_owned() })
}

/// Removes what a run that died has left.
pub(crate) fn remove_left_over(home: &Path) -> Result<(), PostgresError> {
    if !home.exists() {
        return Ok(());
    }
    let mark = home.join(MARK);
    if !mark.is_file() {
        // An empty one is nobody's: ours, if a removal was cut short after the mark.
        return fs::remove_dir(home).map_err(|_| PostgresError::Foreign { path: home.to_owned() });
    }
    let lock = Lock::try_take(&mark).map_err(PostgresError::io("lock", &mark))?;
    if lock.is_none() {
        return Err(PostgresError::Busy { path: home.to_owned() });
    }
    remove_home(home)
}

/// Removes a directory of ours. The mark goes last: what cannot be removed whole, as something
/// still writes there, stays ours, and the next one tries again.
fn remove_home(home: &Path) -> Result<(), PostgresError> {
    let removed = remove_but_the_mark(home)
        .and_then(|()| fs::remove_file(home.join(MARK)))
        .and_then(|()| fs::remove_dir(home));
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound || home.exists() => {
            Err(PostgresError::io("remove", home)(error))
        }
        _ => Ok(()),
    }
}

fn remove_but_the_mark(home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_name() == MARK {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        // A server that goes down removes files, too.
        removed.or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_and_idle_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(NAME);
        remove_left_over(&home).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(home.join("somebody's"), "text").unwrap();
        assert!(matches!(remove_left_over(&home), Err(PostgresError::Foreign { .. })));
        fs::remove_file(home.join("somebody's")).unwrap();
        remove_left_over(&home).unwrap();
        assert!(!home.exists(), "an empty one is nobody's");
        fs::create_dir(&home).unwrap();
        let held = mark(&home).unwrap();
        assert!(matches!(remove_left_over(&home), Err(PostgresError::Busy { .. })));
        held.release().unwrap();
        fs::create_dir(home.join("data")).unwrap();
        fs::write(home.join("data/file"), "text").unwrap();
        remove_left_over(&home).unwrap();
        assert!(!home.exists());
    }

    #[test]
    fn what_cannot_be_removed_whole_stays_ours() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(NAME);
        fs::create_dir_all(home.join("data/base")).unwrap();
        fs::write(home.join("log"), "text").unwrap();
        mark(&home).unwrap().release().unwrap();
        remove_but_the_mark(&home).unwrap();
        let left: Vec<_> =
            fs::read_dir(&home).unwrap().map(|left| left.unwrap().file_name()).collect();
        assert_eq!(left, [MARK]);
        remove_left_over(&home).unwrap();
        assert!(!home.exists());
    }
}
