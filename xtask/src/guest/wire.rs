//! Requests and replies in JSON lines over a socket, as for QEMU's monitor and guest agent.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// This end of such a socket.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<UnixStream>,
    /// What has arrived of the next line.
    line: Vec<u8>,
}

impl Wire {
    /// Connects as soon as QEMU has created the socket.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self> {
        let deadline = Instant::now() + patience;
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => {
                    return Ok(Self { stream: BufReader::new(stream), line: Vec::new() });
                }
                Err(_) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("connecting to {}", path.display()));
                }
            }
        }
    }

    /// Sends a request and waits for its reply.
    pub fn ask(&mut self, execute: &str, arguments: &Value, patience: Duration) -> Result<Value> {
        self.send(execute, arguments)?;
        let reply = self.reply(execute, patience)?;
        reply.with_context(|| format!("{execute}: no answer in time"))
    }

    /// Sends a request, to which there will be a reply.
    pub fn send(&mut self, execute: &str, arguments: &Value) -> Result<()> {
        let mut request = json!({ "execute": execute });
        if !arguments.is_null() {
            request["arguments"] = arguments.clone();
        }
        let line = format!("{request}\n");
        self.stream.get_mut().write_all(line.as_bytes()).with_context(|| execute.to_owned())
    }

    /// Waits for the next reply; returns `None` if there is none in time.
    pub fn reply(&mut self, execute: &str, patience: Duration) -> Result<Option<Value>> {
        let deadline = Instant::now() + patience;
        while let Some(mut answer) = self.next(deadline).with_context(|| execute.to_owned())? {
            if let Some(error) = answer.get("error") {
                bail!("{execute}: {error}");
            }
            // Other messages are greetings or events.
            if answer.get("return").is_some() {
                return Ok(Some(answer["return"].take()));
            }
        }
        Ok(None)
    }

    fn next(&mut self, deadline: Instant) -> Result<Option<Value>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        self.stream.get_mut().set_read_timeout(Some(left))?;
        match self.stream.read_until(b'\n', &mut self.line) {
            Ok(0) => bail!("the machine is off"),
            Ok(_) => {
                let line = std::mem::take(&mut self.line);
                let text = String::from_utf8_lossy(&line);
                let answer = serde_json::from_str(&text).map(Some);
                answer.with_context(|| format!("not JSON: {text}"))
            }
            // What was read of a line stays until the rest arrives.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
