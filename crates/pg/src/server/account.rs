//! The user that a server runs as: PostgreSQL refuses to run as root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::process::PgCommand;
use crate::error::PgError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccount {
    pub name: String,
    /// Its ids; `None` for the user of this process.
    ids: Option<(u32, u32)>,
}

impl ServerAccount {
    /// The user of a server: for root, the user postgres or else nobody; otherwise the same user.
    pub fn of_server() -> Result<Self, PgError> {
        if !rustix::process::geteuid().is_root() {
            let name = std::env::var("USER").unwrap_or_else(|_| "this user".to_owned());
            return Ok(Self { name, ids: None });
        }
        let users =
            fs::read_to_string("/etc/passwd").map_err(PgError::io("read", "/etc/passwd"))?;
        find(&users, "postgres").or_else(|| find(&users, "nobody")).ok_or(PgError::NoUser)
    }

    /// Changes the owner of a file or directory to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), PgError> {
        let Some((uid, gid)) = self.ids else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(PgError::io("give away", path))
    }

    /// Whether it can access a directory.
    pub(crate) fn reaches(&self, path: &Path) -> bool {
        if self.ids.is_none() {
            return true;
        }
        let status = self.command(Path::new("/usr/bin/test"));
        let status = status.map(|mut command| {
            command.arg("-x").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).status()
        });
        matches!(status, Ok(Ok(status)) if status.success())
    }

    /// The invocation of a program by this user.
    pub(crate) fn invocation(&self, program: &Path) -> Result<PgCommand, PgError> {
        Ok(PgCommand::from_command(self.command(program)?, program))
    }

    /// A command of this user that exits when this process does for any reason.
    pub(crate) fn command(&self, program: &Path) -> Result<Command, PgError> {
        let Some((uid, gid)) = self.ids else { return Ok(Command::new(program)) };
        let setpriv = ["/usr/bin/setpriv", "/bin/setpriv"];
        let setpriv = setpriv.iter().find(|path| Path::new(path).is_file());
        let missing = PgError::NotInstalled { program: "setpriv", package: "util-linux" };
        let mut command = Command::new(setpriv.ok_or(missing)?);
        command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
        // SIGINT is the server's fast shutdown.
        command.args(["--clear-groups", "--pdeathsig=INT", "--"]).arg(program);
        command.current_dir("/");
        Ok(command)
    }
}

fn find(users: &str, name: &str) -> Option<ServerAccount> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let ids = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(ServerAccount { name: name.to_owned(), ids: Some(ids) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:,:/var:/bin/sh\nbad:x:a:b\n";
        let found = find(users, "postgres").unwrap();
        assert_eq!((found.name.as_str(), found.ids), ("postgres", Some((101, 104))));
        assert_eq!((find(users, "post"), find(users, "bad")), (None, None));
    }
}
