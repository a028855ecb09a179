//! The user that runs a server: PostgreSQL refuses to run as root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::process::PgCommand;
use crate::error::PgError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccount {
    pub name: String,
    /// User id and group id; `None` for the user of this process.
    ids: Option<(u32, u32)>,
}

impl ServerAccount {
    /// Returns the user of a server: postgres or else nobody for root, otherwise the same user.
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

    /// Returns whether this user can enter a directory.
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

    /// Returns the invocation of a program as this user.
    pub(crate) fn invocation(&self, program: &Path) -> Result<PgCommand, PgError> {
        Ok(PgCommand::from_command(self.command(program)?, program))
    }

    /// Returns a command as this user; another user's gets SIGINT when this process exits.
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
