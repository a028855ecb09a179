//! Runs statements with `psql`.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::process::{PgCommand, RunLimit};
use crate::error::PgError;

/// A connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub(crate) psql: PathBuf,
    pub(crate) pgbench: Option<PathBuf>,
    /// Connection as for `psql -d`: a name, a connection string or a URI.
    pub(crate) connection: String,
    /// Options of the sessions (PGOPTIONS).
    pub(crate) options: String,
}

/// The result of a statement, and its duration.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Rows: one per line, with columns separated by `|`.
    pub rows: String,
    pub ms: f64,
}

impl Client {
    /// Creates a read-only connection to an existing server.
    pub fn connect_to(connection: &str) -> Result<Self, PgError> {
        let beside = std::path::Path::new("/usr/bin");
        Ok(Self {
            psql: super::tools::program("psql", beside)?,
            pgbench: super::tools::program("pgbench", beside).ok(),
            connection: connection.to_owned(),
            options: "-c default_transaction_read_only=on".to_owned(),
        })
    }

    /// Creates a connection to an existing server that may also write.
    pub fn writing_to(connection: &str) -> Result<Self, PgError> {
        Ok(Self { options: String::new(), ..Self::connect_to(connection)? })
    }

    /// Returns the connection string, as for `psql -d`.
    pub fn connection(&self) -> &str {
        &self.connection
    }

    pub fn run(&self, statements: &str, limit: &RunLimit) -> Result<String, PgError> {
        let invocation = PgCommand::new(self.psql.clone())
            // No start-up file, no headers, and exit at the first error.
            .args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-f", "-", "-d"]);
        let (connection, password) = split_password(&self.connection);
        let mut invocation = invocation.arg(connection).env("PGOPTIONS", &self.options);
        if let Some(password) = password {
            invocation = invocation.env("PGPASSWORD", &password);
        }
        invocation.input(statements.to_owned()).run(limit)
    }

    /// Runs statements that prepare the session, then times a statement.
    pub fn time(&self, prepare: &str, statement: &str, limit: &RunLimit) -> Result<Timed, PgError> {
        let script = format!("{prepare}\n\\timing on\n{statement};\n");
        timed(&self.run(&script, limit)?)
    }
}

/// Removes the password from a URL or from `key=value` pairs, so that other users do not see it in
/// the list of processes.
fn split_password(connection: &str) -> (String, Option<String>) {
    let whole = || (connection.to_owned(), None);
    let Some((scheme, rest)) = connection.split_once("://") else {
        return pairs_without_password(connection).unwrap_or_else(whole);
    };
    if let Some((before, parameters)) = rest.split_once('?') {
        let is_password = |word: &&str| word.starts_with("password=");
        let (found, others): (Vec<&str>, Vec<&str>) = parameters.split('&').partition(is_password);
        if let Some(password) = found.last().and_then(|word| word.split_once('=')) {
            let (shown, _) = split_password(&format!("{scheme}://{before}?{}", others.join("&")));
            return (shown, Some(percent_decoded(password.1)));
        }
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let Some((login, host)) = authority.rsplit_once('@') else { return whole() };
    let Some((user, password)) = login.split_once(':') else { return whole() };
    (format!("{scheme}://{user}@{host}{after}"), Some(percent_decoded(password)))
}

/// Returns the pairs of a connection string (libpq, "Keyword/Value Connection Strings") without the
/// password, and the password; `None` if the string has another form, which `psql` then reports.
fn pairs_without_password(connection: &str) -> Option<(String, Option<String>)> {
    let (mut others, mut password) = (Vec::new(), None);
    let mut rest = connection.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = first_value(after.trim_start())?;
        let pair = &rest[..rest.len() - after.len()];
        match key.trim_end() {
            "password" => password = Some(value),
            _ => others.push(pair.trim_end()),
        }
        rest = after.trim_start();
    }
    Some((others.join(" "), password))
}

/// Returns the first value, without its quotes and escapes, and the text after it.
fn first_value(text: &str) -> Option<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            _ if !quoted && character.is_whitespace() => return Some((value, &text[at..])),
            _ => value.push(character),
        }
    }
    (!quoted).then_some((value, ""))
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Parses `Time: 1234.567 ms (00:01.235)` in psql's output.
fn timed(said: &str) -> Result<Timed, PgError> {
    let is_time = |line: &&str| line.starts_with("Time: ");
    let garbage = || PgError::Garbage { program: "psql".to_owned(), text: said.to_owned() };
    let line = said.lines().rev().find(is_time).ok_or_else(garbage)?;
    let number = line.trim_start_matches("Time: ").split_whitespace().next();
    let ms = number.and_then(|number| number.parse::<f64>().ok());
    let ms = ms.filter(|ms| ms.is_finite() && *ms >= 0.0).ok_or_else(garbage)?;
    let rows: Vec<&str> = said.lines().filter(|line| !is_time(line)).collect();
    Ok(Timed { rows: rows.join("\n"), ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_out_of_a_url_and_of_nothing_else() {
        for (given, shown, password) in [
            ("postgresql://u:p%40%2x@h:5/d?x=1", "postgresql://u@h:5/d?x=1", Some("p@%2x")),
            ("postgres://u:@h", "postgres://u@h", Some("")),
            ("postgresql://u@h/d", "postgresql://u@h/d", None),
            ("postgresql:///d?host=/a:b@c", "postgresql:///d?host=/a:b@c", None),
            ("postgresql://u@h/d?password=a%20b&x=1", "postgresql://u@h/d?x=1", Some("a b")),
            ("host=h user=u", "host=h user=u", None),
            ("host=h password=p user=u", "host=h user=u", Some("p")),
            (r"password = 'a \'b' host='/x y'", "host='/x y'", Some("a 'b")),
            (r"password=a\ b", "", Some("a b")),
            ("host=h password='open", "host=h password='open", None),
            ("d", "d", None),
        ] {
            let expected = (shown.to_owned(), password.map(str::to_owned));
            assert_eq!(split_password(given), expected, "{given}");
        }
    }

    #[test]
    fn times_are_read() {
        let found = timed("1000\nTime: 1234.567 ms (00:01.235)\n").unwrap();
        assert_eq!(found, Timed { rows: "1000".to_owned(), ms: 1234.567 });
        for garbage in ["", "Time: ", "Time: fast ms", "Time: NaN ms", "Time: -1 ms"] {
            assert!(timed(garbage).is_err(), "{garbage:?}");
        }
    }
}
