//! Serves the reports of a record over a local port, updated while a study runs.
//!
//! The server is read-only: it answers GET and HEAD, opens the record for reading, and has no
//! state. A request must name the server's address or a loopback name in its Host header, so that a
//! page from elsewhere cannot read it through a browser (DNS rebinding).

mod pages;
mod request;
mod response;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

pub use pages::RunPages;
use request::{HttpRequest, RequestError};
use response::Response;

/// Time limit for a client to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a client to receive the response: a page of a long run has megabytes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of concurrent clients; others get status 503.
const MAX_CLIENTS: usize = 16;
/// How often the server checks whether it should stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is in use or not local.
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
}

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    pages: Arc<RunPages>,
}

impl Server {
    /// Listens at an address; port 0 selects a free port.
    pub fn bind(address: SocketAddr, store: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let store = PathBuf::from(store);
        Ok(Self { listener, pages: Arc::new(RunPages { store, address: bound }) })
    }

    pub fn address(&self) -> SocketAddr {
        self.pages.address
    }

    /// Serves until `stop` is set.
    pub fn run(&self, stop: &AtomicBool) {
        let clients = Arc::new(AtomicUsize::new(0));
        while !stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => self.accept(stream, &clients),
                Err(_) => std::thread::sleep(STOP_POLL_INTERVAL),
            }
        }
    }

    fn accept(&self, stream: TcpStream, clients: &Arc<AtomicUsize>) {
        let slot = ClientSlot(Arc::clone(clients));
        if clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
            let _ = respond(&stream, &Response::plain(503, "too many clients"), false);
            return;
        }
        let pages = Arc::clone(&self.pages);
        let answer = move || {
            let _slot = slot;
            let _ = serve_client(stream, &pages);
        };
        // If no thread can be started, the connection is closed.
        let _ = std::thread::Builder::new().name("client".to_owned()).spawn(answer);
    }
}

/// Decrements the number of clients when dropped.
struct ClientSlot(Arc<AtomicUsize>);

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve_client(stream: TcpStream, pages: &RunPages) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut received = Vec::new();
    let mut piece = [0; 2048];
    let mut client = Timed { stream: &stream, deadline: Instant::now() + REQUEST_TIMEOUT };
    let request = loop {
        let read = client.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        received.extend_from_slice(&piece[..read]);
        match HttpRequest::parse(&received) {
            Ok(Some(request)) => break Ok(request),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    match request {
        Ok(request) => respond(&stream, &pages.answer(&request), request.head),
        Err(RequestError::TooLong) => {
            respond(&stream, &Response::plain(431, "request too long"), false)
        }
        Err(RequestError::Malformed) => {
            respond(&stream, &Response::plain(400, "not an HTTP request"), false)
        }
    }
}

fn respond(stream: &TcpStream, response: &Response, head: bool) -> io::Result<()> {
    let mut client = Timed { stream, deadline: Instant::now() + RESPONSE_TIMEOUT };
    client.write_all(response.head().as_bytes())?;
    if !head {
        client.write_all(&response.body)?;
    }
    client.flush()
}

/// A connection with one deadline for all reads and writes. With a timeout for each call, a client
/// that sends a byte occasionally would keep its slot forever.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    /// Remaining time; an error once it has passed.
    fn remaining(&self) -> io::Result<Option<Duration>> {
        match self.deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.remaining()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_does_not_keep_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("its address")).expect("a client");
        let (stream, _) = listener.accept().expect("a connection");
        let drip = std::thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let started = Instant::now();
        let mut timed = Timed { stream: &stream, deadline: started + Duration::from_millis(200) };
        let mut bytes = Vec::new();
        let error = timed.read_to_end(&mut bytes).expect_err("the deadline passes");
        let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert!(bytes.len() > 1 && started.elapsed() >= Duration::from_millis(150));
        drop(stream);
        drip.join().expect("the client ends");
    }
}
