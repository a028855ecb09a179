//! Defines a trace format: a name, a detector and a parser.

use units::Bytes;

use crate::error::TraceError;
use crate::model::Trace;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Sort records by time instead of rejecting a time that runs backward.
    pub sort: bool,
    /// Page size of traces with page numbers. `None`: 4 KiB, or a size that is derived from the
    /// trace.
    pub page: Option<Bytes>,
}

/// A trace format that can be read.
#[derive(Clone, Copy, Debug)]
pub struct TraceFormat {
    /// Name on the command line.
    pub name: &'static str,
    pub summary: &'static str,
    /// Returns whether the start of a file looks like this format.
    pub(super) detects: fn(&[u8]) -> bool,
    pub(super) parse: fn(&[u8], ImportOptions) -> Result<Trace, TraceError>,
}

impl TraceFormat {
    /// Parses a whole file in this format.
    pub fn parse(&self, bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
        if bytes.is_empty() {
            return Err(TraceError::whole("it is empty"));
        }
        (self.parse)(bytes, options)
    }
}
