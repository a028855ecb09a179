/// A response to a client.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    kind: &'static str,
    pub body: Vec<u8>,
}

impl Response {
    fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, body: body.into() }
    }

    pub fn html(page: impl Into<Vec<u8>>) -> Self {
        Self::new("text/html", page)
    }

    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self::new("application/json", text)
    }

    pub(crate) fn csv(text: impl Into<Vec<u8>>) -> Self {
        Self::new("text/csv", text)
    }

    /// Metrics in the Prometheus text format.
    pub fn metrics(text: impl Into<Vec<u8>>) -> Self {
        Self::new("text/plain; version=0.0.4", text)
    }

    /// A line of text with an HTTP status.
    pub fn plain(status: u16, text: &str) -> Self {
        Self { status, ..Self::new("text/plain", format!("{text}\n")) }
    }

    pub fn not_found() -> Self {
        Self::plain(404, "no such page")
    }

    /// The source of the pages cannot be read now.
    pub fn unavailable(why: &str) -> Self {
        Self::plain(503, &crate::clean::plain(why))
    }

    /// Returns the status line and the headers.
    pub(crate) fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Bad Request",
        };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n\
             {allow}Connection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n",
            self.status,
            self.kind,
            self.body.len()
        )
    }
}
