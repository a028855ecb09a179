//! Parses the requests of clients.

use super::PageAddress;

/// Maximum size of a request; longer ones are rejected.
const MAX_REQUEST_BYTES: usize = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// The headers are longer than the limit.
    TooLong,
    /// The request is not HTTP.
    Malformed,
}

/// The parts of a request that the server uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    /// True if the method is GET or HEAD.
    pub readable: bool,
    /// True if the method is HEAD, so that the response has no body.
    pub head: bool,
    pub address: PageAddress,
    /// Name by which the client addresses this server, from the Host header.
    pub host: Option<String>,
}

impl HttpRequest {
    /// Parses a request; `None` if it is incomplete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, RequestError> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) if bytes.len() > MAX_REQUEST_BYTES => {
                return Err(RequestError::TooLong);
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLong),
            Err(_) => return Err(RequestError::Malformed),
        }
        let method = parsed.method.unwrap_or_default();
        let path = parsed.path.unwrap_or("/");
        let mut hosts =
            parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
        let host = hosts.next().and_then(|header| std::str::from_utf8(header.value).ok());
        if hosts.next().is_some() {
            return Err(RequestError::Malformed);
        }
        Ok(Some(Self {
            readable: matches!(method, "GET" | "HEAD"),
            head: method == "HEAD",
            address: PageAddress::new(path),
            host: host.map(|host| host.trim().to_owned()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<HttpRequest>, RequestError> {
        HttpRequest::parse(text.as_bytes())
    }

    #[test]
    fn a_request_is_read_when_it_is_complete() {
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: x"), Ok(None));
        let request =
            parse("GET /run/3?x=1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n").unwrap().unwrap();
        assert_eq!(request.address, PageAddress::new("/run/3?x=1"));
        assert_eq!(request.host.as_deref(), Some("localhost:1"));
        assert!(request.readable && !request.head);
        assert!(!parse("POST / HTTP/1.1\r\n\r\n").unwrap().unwrap().readable);
    }

    #[test]
    fn nonsense_and_endless_requests_are_refused() {
        assert_eq!(parse("\u{1}\u{2}\r\n\r\n"), Err(RequestError::Malformed));
        let two = "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        assert_eq!(parse(two), Err(RequestError::Malformed));
        let endless = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(9000));
        assert_eq!(parse(&endless), Err(RequestError::TooLong));
    }
}
