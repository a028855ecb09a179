//! Finds PostgreSQL's programs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::process::{PgCommand, RunLimit};
use crate::error::PgError;

/// Directories of the programs of each version on Debian and Red Hat, outside PATH.
const HOMES: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];

/// The programs of one PostgreSQL version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    pub bin: PathBuf,
    /// Version, such as `15.18`.
    pub version: String,
}

impl Tools {
    /// Finds the programs of the server on PATH, or else of the latest installed version.
    pub fn find() -> Result<Self, PgError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let missing = PgError::NotInstalled { program: "postgres", package: "postgresql" };
        let bin = directory(&path).ok_or(missing)?;
        // A directory of links to the server may lack psql and pgbench.
        let server = bin.join("postgres");
        let real = fs::canonicalize(&server).unwrap_or(server);
        let bin = real.parent().map_or(bin, Path::to_owned);
        let said =
            PgCommand::new(bin.join("postgres")).arg("--version").run(&RunLimit::seconds(30))?;
        let version = version_of(&said)
            .ok_or(PgError::Garbage { program: "postgres --version".to_owned(), text: said })?;
        Ok(Self { bin, version })
    }

    /// Returns the major version; 0 if unknown.
    pub fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Returns one of the programs: next to the server, or on PATH.
    pub(crate) fn program(&self, name: &'static str) -> Result<PathBuf, PgError> {
        program(name, &self.bin)
    }
}

/// Returns the directory of a server's programs.
fn directory(path: &OsStr) -> Option<PathBuf> {
    let has = |bin: &PathBuf| ["initdb", "postgres"].iter().all(|it| bin.join(it).is_file());
    // Programs on PATH were put there on purpose, so they come first.
    std::env::split_paths(path).chain(HOMES.iter().flat_map(versions).rev()).find(has)
}

/// Finds a client, which need not be next to a server.
pub(crate) fn program(name: &'static str, beside: &Path) -> Result<PathBuf, PgError> {
    let missing = PgError::NotInstalled { program: name, package: "postgresql-client" };
    sys::program::find_also_in(name, &[beside.to_owned()]).ok_or(missing)
}

/// Returns the directories of all versions below a directory, ascending.
fn versions((home, prefix): &(&str, &str)) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, bin)| bin).collect()
}

/// Parses the version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
pub fn version_of(text: &str) -> Option<String> {
    let after = text.split("PostgreSQL)").nth(1)?.trim();
    let word = after.split_whitespace().next()?;
    word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let version = |text: &str| version_of(text);
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(version(debian).as_deref(), Some("15.18"));
        assert_eq!(version("postgres (PostgreSQL) 18beta1").as_deref(), Some("18beta1"));
        assert_eq!((version(""), version("postgres (PostgreSQL) ")), (None, None));
        let tools = Tools { bin: PathBuf::new(), version: "15.18".to_owned() };
        assert_eq!(tools.major(), 15);
    }

    #[test]
    fn the_first_server_on_path_is_found() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (dir, program) in [(&first, "postgres"), (&second, "postgres"), (&second, "initdb")] {
            fs::write(dir.path().join(program), "").unwrap();
        }
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(directory(&path).unwrap(), second.path(), "the first has no initdb");
        fs::write(first.path().join("initdb"), "").unwrap();
        assert_eq!(directory(&path).unwrap(), first.path());
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let error = program("no-such-client", Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("package postgresql-client"), "{error}");
    }
}
