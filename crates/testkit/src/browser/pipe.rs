//! Sends commands and receives answers and events.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::BrowserError;

/// Timeout of an answer: long, because a browser starts slowly on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_secs(240);

/// The two pipes, and the events that were received but not taken yet.
pub(crate) struct DevToolsPipe {
    to: ChildStdin,
    from: Receiver<Value>,
    events: VecDeque<Value>,
    last: u64,
}

impl DevToolsPipe {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for document in BufReader::new(from).split(0).map_while(Result::ok) {
                let Ok(value) = serde_json::from_slice(&document) else { continue };
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Self { to, from: receiver, events: VecDeque::new(), last: 0 }
    }

    /// Sends a command and returns the number of its answer.
    pub(crate) fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<u64, BrowserError> {
        self.last += 1;
        let mut command = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes)?;
        self.to.flush()?;
        Ok(self.last)
    }

    /// Sends a command and waits for its answer; keeps events that arrive meanwhile.
    pub(crate) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        let begun = Instant::now();
        loop {
            let mut document = self.receive(method, begun)?;
            if document["id"].as_u64() != Some(id) {
                if document.get("method").is_some() {
                    self.events.push_back(document);
                }
                continue;
            }
            if let Some(error) = document.get("error") {
                let (what, said) = (method.to_owned(), error["message"].to_string());
                return Err(BrowserError::Refused { what, said });
            }
            return Ok(document["result"].take());
        }
    }

    fn receive(&mut self, what: &str, begun: Instant) -> Result<Value, BrowserError> {
        let left = REPLY_TIMEOUT.saturating_sub(begun.elapsed());
        self.from
            .recv_timeout(left)
            .map_err(|_| BrowserError::Silent { what: what.to_owned(), waited: begun.elapsed() })
    }

    /// Waits for an event of this name, and keeps it.
    pub(crate) fn wait(&mut self, method: &str) -> Result<(), BrowserError> {
        let begun = Instant::now();
        while !self.events.iter().any(|event| event["method"] == method) {
            let document = self.receive(method, begun)?;
            if document.get("method").is_some() {
                self.events.push_back(document);
            }
        }
        Ok(())
    }

    /// Returns all events since the last call.
    pub(crate) fn drain(&mut self) -> Vec<Value> {
        while let Ok(document) = self.from.try_recv() {
            self.events.push_back(document);
        }
        self.events.drain(..).collect()
    }
}
