//! What a form of traces is: a name, a way to recognise it and a parser.

use units::Bytes;

use crate::error::TraceError;
use crate::model::Trace;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Put records in order of time instead of refusing a time that runs backward.
    pub sort: bool,
    /// The size of a page, where a trace has page numbers; 4 KiB, or what the trace itself shows,
    /// by default.
    pub page: Option<Bytes>,
}

/// A form that can be read.
#[derive(Clone, Copy, Debug)]
pub struct TraceFormat {
    /// Its name on the command line.
    pub name: &'static str,
    pub summary: &'static str,
    /// Whether the beginning of a file looks like it.
    pub(super) detects: fn(&[u8]) -> bool,
    pub(super) parse: fn(&[u8], ImportOptions) -> Result<Trace, TraceError>,
}

impl TraceFormat {
    /// Reads a whole file in this form.
    pub fn parse(&self, bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
        if bytes.is_empty() {
            return Err(TraceError::whole("it is empty"));
        }
        (self.parse)(bytes, options)
    }
}
