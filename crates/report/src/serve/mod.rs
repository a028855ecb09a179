//! Serves pages on a local port: the reports of a record ([`RunPages`]), or another [`Site`].
//!
//! The server is read-only and stateless, and answers GET and HEAD. A request must have the
//! server's address or a loopback name in its Host header, so that a page from another site cannot
//! read the server through a browser (DNS rebinding).

mod address;
mod pages;
mod request;
mod response;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

pub use address::PageAddress;
pub use pages::RunPages;
use request::{HttpRequest, RequestError};
pub use response::Response;

/// Time limit for a client to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a client to receive the response; the page of a long run has megabytes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of concurrent clients; others get status 503.
const MAX_CLIENTS: usize = 16;
/// Interval of the checks whether the server should stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is in use or not local.
    #[error("cannot listen at {address}: {source}{}", port_advice(source))]
    Listen { address: SocketAddr, source: io::Error },
}

fn port_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; use another --port, or --port 0 for a free one",
        _ => "",
    }
}

/// The pages of a server. Several clients may request pages concurrently.
pub trait Site: Send + Sync + 'static {
    fn page(&self, address: &PageAddress) -> Response;
}

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<dyn Site>,
}

impl Server {
    /// Listens at an address; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// If the address is in use or not local.
    pub fn bind(address: SocketAddr, site: impl Site) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, site: Arc::new(site) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
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
        let (site, address) = (Arc::clone(&self.site), self.address);
        let answer = move || {
            let _slot = slot;
            let _ = serve_client(stream, &*site, address);
        };
        // If the thread cannot be started, the connection is closed.
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

/// Returns the response to a request, if the request may read this server.
fn answer(site: &dyn Site, address: SocketAddr, request: &HttpRequest) -> Response {
    if !request.readable {
        return Response::plain(405, "read-only: use GET or HEAD");
    }
    if !request.host.as_deref().is_some_and(|host| names_server(host, address.ip())) {
        return Response::plain(403, "unknown Host header");
    }
    site.page(&request.address)
}

/// Returns whether a Host header names the server at this address. The page of another site that
/// uses its own name for this address does not (DNS rebinding).
fn names_server(host: &str, address: IpAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let ip: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name.eq_ignore_ascii_case("localhost")
        || ip.is_some_and(|ip| address.is_unspecified() || ip.is_loopback() || ip == address)
}

fn serve_client(stream: TcpStream, site: &dyn Site, address: SocketAddr) -> io::Result<()> {
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
        Ok(request) => respond(&stream, &answer(site, address, &request), request.head),
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

/// A connection with one deadline for all reads and writes. With a timeout per call, a client that
/// sends a byte occasionally would keep its slot forever.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    /// Returns the remaining time; an error once the deadline has passed.
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
    fn only_requests_that_name_the_server_are_answered() {
        let here = IpAddr::from([127, 0, 0, 1]);
        for (host, known) in [
            ("localhost", true),
            ("127.0.0.1:8277", true),
            ("[::1]:8277", true),
            ("evil.example:8277", false),
            ("192.0.2.1", false),
            ("", false),
        ] {
            assert_eq!(names_server(host, here), known, "{host}");
        }
        assert!(
            names_server("192.0.2.1:9", IpAddr::from([0, 0, 0, 0])),
            "listens on all addresses"
        );
        assert!(!names_server("evil.example", IpAddr::from([0, 0, 0, 0])));
    }

    #[test]
    fn a_request_that_writes_or_names_nobody_never_reaches_the_site() {
        struct Unasked;
        impl Site for Unasked {
            fn page(&self, address: &PageAddress) -> Response {
                panic!("asked for {address:?}")
            }
        }
        let request = |head: &str| HttpRequest::parse(head.as_bytes()).unwrap().unwrap();
        let here = ([127, 0, 0, 1], 1).into();
        for (head, status) in
            [("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405), ("GET / HTTP/1.1\r\n\r\n", 403)]
        {
            assert_eq!(answer(&Unasked, here, &request(head)).status, status, "{head}");
        }
    }

    #[test]
    fn a_port_in_use_is_an_error_with_advice() {
        let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = holder.local_addr().expect("its address");
        let error = TcpListener::bind(address).expect_err("in use");
        let error = ServeError::Listen { address, source: error }.to_string();
        assert!(error.ends_with("use another --port, or --port 0 for a free one"), "{error}");
    }

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
