//! Checks every block of a trace.

use std::sync::Arc;

use super::records::LastTransfers;
use super::source::TraceBytes;
use super::stream::{TraceDamage, TraceStream};
use super::{EMPTY_DIGEST, fold};
use crate::error::TraceError;

/// The result of checking a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceVerification {
    pub blocks: usize,
    /// Number of readable records.
    pub records: u64,
    pub damages: Vec<TraceDamage>,
}

/// Reads every block and reports each damaged one.
///
/// # Errors
///
/// If the source is no trace in blocks.
pub fn verify(source: Arc<dyn TraceBytes>) -> Result<TraceVerification, TraceError> {
    let stream = TraceStream::open(source)?;
    let mut found = TraceVerification { blocks: stream.blocks(), ..Default::default() };
    let mut digest = fold(EMPTY_DIGEST, &[u8::from(stream.is_timed())]);
    let (mut last, mut time) = (LastTransfers::default(), units::Nanos::ZERO);
    for (at, entry) in stream.entries().iter().enumerate() {
        match stream.decode_entry(*entry, &mut last) {
            Ok((records, payload)) => {
                digest = fold(digest, &payload);
                if records.first().is_some_and(|record| record.time < time) {
                    let problem = "its times are before those of the block before".to_owned();
                    found.damages.push(stream.damage_at(at, problem));
                }
                time = records.last().map_or(time, |record| record.time);
                found.records += records.len() as u64;
            }
            Err(error) => found.damages.push(stream.damage_at(at, error.problem)),
        }
    }
    if let Some(damage) = stream.damage() {
        found.damages.push(damage.clone());
    } else if found.damages.is_empty() && digest != stream.digest() {
        let problem = "the digest of the blocks is not that of the index".to_owned();
        let (block, offset) = (stream.blocks() + 1, stream.source().size().unwrap_or(0));
        let records_before = found.records;
        found.damages.push(TraceDamage { block, offset, problem, records_before });
    }
    Ok(found)
}
