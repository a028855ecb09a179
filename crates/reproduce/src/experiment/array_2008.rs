//! Common parts of the sweeps of 2008: fio with eight readers of 8 GiB and one of 64 GiB, in blocks
//! of 8 KiB, on Linux before its read-ahead was rewritten for folios.

use model::Spec;
use sim::{Costs, FileSystem};
use units::{Bytes, Nanos};

use super::{Effort, marked};
use crate::ReproduceError;
use crate::load::Streams;
use crate::outcome::{Cell, Column, ModelParameter};
use crate::published::PublishedTable;

/// The source, of 2008, does not name the kernel. Kernels before 2.6.23 have the same windows for
/// these readers.
pub(super) const POLICY: &str = "linux-on-demand,since=2.6.23";
pub(super) const SETTING: &str = "read-ahead (512-byte sectors)";
/// Column of the settings in the transcription.
const ROWS: &str = "readahead_sectors";

/// Fitted: the host's times to copy and to request a byte, in ns.
pub(super) const COPY_NS: f64 = 1.37;
pub(super) const SUBMIT_NS: f64 = 0.26;

/// Returns the two parameters that are not in the model.
pub(super) fn host_parameters() -> [ModelParameter; 2] {
    [
        super::other("copy", format!("{COPY_NS} ns/byte")),
        super::other("submit", format!("{SUBMIT_NS} ns/byte")),
    ]
}

/// An array of 2008 with a file system.
#[derive(Clone, Debug)]
pub(super) struct Array2008 {
    pub(super) model: Spec,
    pub(super) filesystem: FileSystem,
    pub(super) first: Bytes,
}

/// A column of the transcription, and its name here.
#[derive(Clone, Copy)]
pub(super) struct Readers {
    pub(super) count: u32,
    pub(super) published: &'static str,
    pub(super) name: &'static str,
}

pub(super) const EIGHT: Readers =
    Readers { count: 8, published: "rate_8_readers", name: "8 readers" };
pub(super) const ONE: Readers = Readers { count: 1, published: "rate_1_reader", name: "1 reader" };

impl Array2008 {
    /// Returns the throughput in MB/s with this read-ahead.
    pub(super) fn mb_s(
        &self,
        readers: u32,
        sectors: u64,
        seed: u64,
    ) -> Result<f64, ReproduceError> {
        // With large windows, readers alternate only after many megabytes: a short span would be
        // over within one turn.
        let large = sectors >= if readers > 1 { 12288 } else { 49152 };
        let streams = Streams {
            model: self.model.clone(),
            policy: POLICY.to_owned(),
            read_ahead: Bytes::new(512 * sectors).to_kib_floor(),
            readers,
            block: Bytes::from_kib(8),
            file_size: Bytes::from_gib(if readers == 1 { 64 } else { 8 }),
            first: self.first,
            filesystem: self.filesystem,
            costs: Costs { call_ns: 0.0, copy_ns: COPY_NS, submit_ns: SUBMIT_NS, fault_ns: 0.0 },
            warm_up: Nanos::from_millis(if large { 2500 } else { 700 }),
            span: Nanos::from_secs(if large { 6 } else { 2 }),
        };
        streams.mb_s(seed)
    }

    /// Returns the column for this many readers.
    pub(super) fn column(
        &self,
        table: &PublishedTable,
        readers: Readers,
        effort: Effort,
        reason: fn(f64) -> Option<&'static str>,
    ) -> Result<Column, ReproduceError> {
        let mut cells = Vec::new();
        for (sectors, published) in table.pairs(ROWS, readers.published)? {
            let figures = effort.repeat(|seed| self.mb_s(readers.count, sectors as u64, seed))?;
            cells.push(marked(Cell::new(sectors, published, &figures), reason(sectors)));
        }
        Ok(Column::new(readers.name, "MB/s", cells))
    }
}
