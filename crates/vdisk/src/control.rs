//! Requests to the server of a disk: one line of JSON in each direction, over a socket in the
//! disk's directory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use model::SpecError;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::counters::DiskCounters;
use crate::error::VdiskError;
use crate::head_start::HeadStart;
use crate::layout::DiskDirs;

/// Time limit for a reply; a slower server counts as hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum ControlRequest {
    Counters,
    /// Empty the caches of the modelled device and reset the counters.
    Reset,
    /// Apply the model's service times, or serve every request immediately.
    Timing {
        on: bool,
    },
    /// Serve every request after this real time, or by the model again if `None`.
    Probe {
        service: Option<Nanos>,
    },
    /// Send the replies to lone requests early.
    HeadStart {
        early: HeadStart,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    Counters(Box<DiskCounters>),
    Done,
    /// The request was invalid.
    Error {
        message: String,
    },
}

/// Sends a request to the server of the disk at `home` and returns the reply.
pub(crate) fn ask(home: &DiskDirs, question: ControlRequest) -> Result<ControlReply, VdiskError> {
    let name = home.name();
    let broken = |error: io::Error| VdiskError::Control {
        name: name.clone(),
        message: format!("its server does not answer: {error}"),
    };
    let stream = match connect(home) {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Err(VdiskError::Dead { name: name.clone() }),
        Err(error) => return Err(broken(error)),
    };
    let reply = exchange(stream, question).map_err(broken)?;
    match serde_json::from_str(&reply) {
        Ok(ControlReply::Error { message }) => Err(VdiskError::Control { name, message }),
        Ok(answer) => Ok(answer),
        Err(error) => Err(broken(error.into())),
    }
}

/// Sends a request that has no result.
pub(crate) fn send(home: &DiskDirs, question: ControlRequest) -> Result<(), VdiskError> {
    match ask(home, question)? {
        ControlReply::Done => Ok(()),
        other => Err(VdiskError::Control {
            name: home.name(),
            message: format!("{other:?} is not an answer to {question:?}"),
        }),
    }
}

pub(crate) fn counters(home: &DiskDirs) -> Result<DiskCounters, VdiskError> {
    match ask(home, ControlRequest::Counters)? {
        ControlReply::Counters(counters) => Ok(*counters),
        other => Err(VdiskError::Control {
            name: home.name(),
            message: format!("{other:?} are not counters"),
        }),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

fn exchange(mut stream: UnixStream, question: ControlRequest) -> io::Result<String> {
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut line = serde_json::to_string(&question)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    read_line(&stream)
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns a short path to the socket: a socket address holds only 107 bytes.
fn short_path(home: &DiskDirs) -> io::Result<(File, PathBuf)> {
    let dir = File::open(home.dir())?;
    let socket = home.socket();
    let name = socket.file_name().unwrap_or_default();
    let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    Ok((dir, path))
}

fn connect(home: &DiskDirs) -> io::Result<UnixStream> {
    let (_dir, path) = short_path(home)?;
    UnixStream::connect(path)
}

/// Creates the server's end of the socket.
pub(crate) fn listen(home: &DiskDirs) -> Result<UnixListener, VdiskError> {
    let socket = home.socket();
    let bind = || {
        let (_dir, path) = short_path(home)?;
        UnixListener::bind(path)
    };
    bind().map_err(VdiskError::io("creating the control socket", &socket))
}

/// Accepts one connection and answers its request. Logs errors of the client only.
pub(crate) fn serve_one(
    listener: &UnixListener,
    answer: impl FnOnce(ControlRequest) -> Result<ControlReply, SpecError>,
) {
    let serve = || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.set_write_timeout(Some(Duration::from_secs(1)))?;
        let line = read_line(&stream)?;
        let question = serde_json::from_str(&line).map_err(|error| error.to_string());
        let reply = question.and_then(|it| answer(it).map_err(|error| error.to_string()));
        let reply = reply.unwrap_or_else(|message| ControlReply::Error { message });
        let mut line = serde_json::to_string(&reply)?;
        line.push('\n');
        stream.write_all(line.as_bytes())
    };
    if let Err(error) = serve() {
        tracing::debug!("a control connection failed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, DiskDirs) {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        (base, DiskDirs::from_path(deep))
    }

    #[test]
    fn questions_get_their_answers_even_from_a_long_path() {
        let (_base, home) = home();
        let listener = listen(&home).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                serve_one(&listener, |question| {
                    assert_eq!(question, ControlRequest::Timing { on: true });
                    Ok(ControlReply::Done)
                });
                serve_one(&listener, |_| {
                    Ok(ControlReply::Counters(Box::new(DiskCounters {
                        reads: 7,
                        ..DiskCounters::default()
                    })))
                });
                serve_one(&listener, |_| Ok(ControlReply::Error { message: "no".to_owned() }));
            });
            send(&home, ControlRequest::Timing { on: true }).unwrap();
            assert_eq!(counters(&home).unwrap().reads, 7);
            let error = send(&home, ControlRequest::Reset).unwrap_err();
            assert!(matches!(error, VdiskError::Control { message, .. } if message == "no"));
        });
    }

    #[test]
    fn a_server_that_is_gone_is_dead() {
        let (_base, home) = home();
        assert!(matches!(ask(&home, ControlRequest::Counters), Err(VdiskError::Dead { .. })));
        drop(listen(&home).unwrap());
        assert!(matches!(ask(&home, ControlRequest::Counters), Err(VdiskError::Dead { .. })));
    }

    #[test]
    fn nonsense_gets_an_error_and_does_no_harm() {
        let (_base, home) = home();
        let listener = listen(&home).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve_one(&listener, |_| unreachable!("not a question")));
            let mut stream = connect(&home).unwrap();
            stream.write_all(b"{\"ask\":\"nonsense\"}\n").unwrap();
            assert!(read_line(&stream).unwrap().contains("\"error\""));
        });
    }
}
