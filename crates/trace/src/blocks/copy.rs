//! Copies a trace of any length block by block.

use std::io::{self, Write};

use super::stream::{TraceDamage, TraceStream};
use super::writer::TraceWriter;
use crate::model::TraceRecord;

/// The result of copying a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCopy {
    pub records: u64,
    /// Damage of the source: only the records before it were copied. `None` if it is intact.
    pub damage: Option<TraceDamage>,
}

impl TraceStream {
    /// Copies the trace to a new writer, finishes the writer as [`crate::Trace::write_with`] does,
    /// and calls `visit` with each record.
    ///
    /// # Errors
    ///
    /// If the trace cannot be written, or its records are not in order of time.
    pub fn copy_to(
        &self,
        mut writer: TraceWriter<impl Write>,
        mut visit: impl FnMut(&TraceRecord),
    ) -> io::Result<TraceCopy> {
        writer.tables(self.files(), (self.open_files(), self.open_flags()), self.threads())?;
        let mut copy = TraceCopy { records: 0, damage: self.damage().cloned() };
        for record in self.records() {
            match record {
                Ok(record) => {
                    writer.push(record)?;
                    visit(&record);
                    copy.records += 1;
                }
                Err(found) => copy.damage = Some(found),
            }
        }
        writer.finish()?;
        Ok(copy)
    }
}
