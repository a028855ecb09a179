//! Configuration files: options for a user or a whole host.
//!
//! Their values become the defaults of the options, so the command line and the environment take
//! precedence without a rule here. docs/book/configuration.md explains them to users.

mod read;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{ArgMatches, Command};
use serde::Serialize;
use sys::input::{self, InputError, InputKind};

pub use self::values::Values;
use crate::exit::Usage;

/// The file for the whole host.
const SYSTEM: &str = "/etc/foreread.toml";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigScope {
    System,
    User,
    /// From `--config` or `FOREREAD_CONFIG`: no other file is read.
    Named,
}

/// A configuration file that may exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub whose: ConfigScope,
    /// Whether it exists and was read.
    pub read: bool,
    pub problem: Option<String>,
}

impl ConfigFile {
    fn new(path: PathBuf, whose: ConfigScope) -> Self {
        Self { path, whose, read: false, problem: None }
    }
}

/// Returns the files to read; later ones take precedence.
pub fn files(words: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Vec<ConfigFile> {
    let named = named(words).or_else(|| variable("FOREREAD_CONFIG"));
    match named {
        Some(path) if path.is_empty() => return Vec::new(),
        Some(path) => return vec![ConfigFile::new(path.into(), ConfigScope::Named)],
        None => {}
    }
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let user = absolute("XDG_CONFIG_HOME").or_else(home);
    let user =
        user.map(|base| ConfigFile::new(base.join("foreread/config.toml"), ConfigScope::User));
    [ConfigFile::new(SYSTEM.into(), ConfigScope::System)].into_iter().chain(user).collect()
}

/// Returns the file of `--config`, before the command line is parsed.
fn named(words: &[OsString]) -> Option<OsString> {
    let mut words = words.iter().skip(1).take_while(|word| *word != "--");
    let mut found = None;
    while let Some(word) = words.next() {
        if word == "--config" {
            found = words.next().cloned();
        } else if let Some(path) = word.as_encoded_bytes().strip_prefix(b"--config=") {
            use std::os::unix::ffi::OsStrExt;
            found = Some(OsStr::from_bytes(path).to_owned());
        }
    }
    found
}

/// Reads the files and returns their values for the options of `command`.
///
/// # Errors
///
/// If a named file does not exist, a file cannot be read, a key is not an option, or the option
/// does not accept the value.
pub fn read(command: &Command, files: &mut [ConfigFile]) -> anyhow::Result<Values> {
    let mut values = Values::default();
    for file in files {
        match read_one(command, file, &mut values) {
            Ok(()) => {}
            Err(problem) => {
                file.problem = Some(problem.clone());
                return Err(Usage(problem).into());
            }
        }
    }
    Ok(values)
}

fn read_one(command: &Command, file: &mut ConfigFile, values: &mut Values) -> Result<(), String> {
    let name = report::clean::plain(&file.path.display().to_string());
    // A default file that this user may not read belongs to another user: HOME is often that of
    // root although the process runs as an ordinary user.
    let absent = |error: &InputError| {
        let passed_over = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
        error.io_kind().is_some_and(|kind| passed_over.contains(&kind))
            && file.whose != ConfigScope::Named
    };
    let text = match input::read_text(&file.path, InputKind::CONFIGURATION) {
        Err(error) if absent(&error) => return Ok(()),
        text => text.map_err(|error| error.to_string())?,
    };
    file.read = true;
    read::into(command, &text, values).map_err(|(line, why)| format!("{name}:{line}: {why}"))
}

/// Returns whether configuration files affect this verb: they do not affect internal verbs.
pub fn applies_to(matches: &ArgMatches) -> bool {
    !matches!(
        (
            matches.subcommand_name(),
            matches.subcommand().and_then(|(_, verb)| verb.subcommand_name())
        ),
        (Some("guard" | "complete"), _) | (Some("vdisk"), Some("serve"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_for(words: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let found = files(&words, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        });
        found.into_iter().map(|file| file.path.display().to_string()).collect()
    }

    #[test]
    fn the_user_s_file_comes_after_the_host_s_unless_another_is_named() {
        let home = [("HOME", "/home/a")];
        assert_eq!(
            looked_for(&["foreread"], &home),
            ["/etc/foreread.toml", "/home/a/.config/foreread/config.toml"]
        );
        let xdg = [("HOME", "/home/a"), ("XDG_CONFIG_HOME", "/x")];
        assert_eq!(looked_for(&[""], &xdg)[1], "/x/foreread/config.toml");
        assert_eq!(looked_for(&[""], &[("XDG_CONFIG_HOME", "relative")]).len(), 1);
        let named = [("HOME", "/home/a"), ("FOREREAD_CONFIG", "mine.toml")];
        assert_eq!(looked_for(&[""], &named), ["mine.toml"]);
        assert_eq!(looked_for(&["", "runs", "--config", "b"], &named), ["b"]);
        assert_eq!(looked_for(&["", "--config=b", "runs"], &named), ["b"]);
        assert_eq!(looked_for(&["", "run", "--", "--config=b"], &named), ["mine.toml"]);
        assert!(looked_for(&[""], &[("HOME", "/h"), ("FOREREAD_CONFIG", "")]).is_empty());
    }
}
