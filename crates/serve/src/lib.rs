//! The reports of a record over a local port, live while a study runs.
//!
//! Nothing can be changed through it: it answers GET and HEAD, opens the record for reading only
//! and has no state of its own. A web page elsewhere cannot make a browser read it under another
//! name either: a request has to name the address that is listened at, or a loopback one.

mod request;
mod response;
mod site;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use thiserror::Error;

use request::{Request, RequestError};
use response::Response;
pub use site::Site;

/// How long a client may take over a request or an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are answered at once; further ones are told to come again.
const CLIENTS_MAX: usize = 16;
/// How often the server looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is taken, or not ours.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
}

impl Server {
    /// Listens at an address; port 0 takes a free one.
    pub fn bind(address: SocketAddr, store: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let store = PathBuf::from(store);
        Ok(Self { listener, site: Arc::new(Site { store, address: bound }) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.site.address
    }

    /// Answers until `stop` is set.
    pub fn run(&self, stop: &AtomicBool) {
        let clients = Arc::new(AtomicUsize::new(0));
        while !stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream, &clients),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    fn welcome(&self, stream: TcpStream, clients: &Arc<AtomicUsize>) {
        let leave = Leave(Arc::clone(clients));
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            let _ = respond(stream, &Response::plain(503, "too many at once"), false);
            return;
        }
        let site = Arc::clone(&self.site);
        let answer = move || {
            let _leave = leave;
            let _ = attend(stream, &site);
        };
        // Without a thread the client finds the connection closed.
        let _ = std::thread::Builder::new().name("client".to_owned()).spawn(answer);
    }
}

/// Counts a client as gone, however it goes.
struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn attend(mut stream: TcpStream, site: &Site) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut received = Vec::new();
    let mut piece = [0; 2048];
    let request = loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        received.extend_from_slice(&piece[..read]);
        match Request::parse(&received) {
            Ok(Some(request)) => break Ok(request),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    match request {
        Ok(request) => respond(stream, &site.answer(&request), request.head),
        Err(RequestError::TooLong) => respond(stream, &Response::plain(431, "too long"), false),
        Err(RequestError::Malformed) => respond(stream, &Response::plain(400, "no HTTP"), false),
    }
}

fn respond(mut stream: TcpStream, response: &Response, head: bool) -> io::Result<()> {
    stream.write_all(response.head().as_bytes())?;
    if !head {
        stream.write_all(&response.body)?;
    }
    stream.flush()
}
