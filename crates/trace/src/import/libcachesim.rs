//! Traces of libCacheSim (Yang, Yue and Rashmi): oracleGeneral, the format of most published cache
//! traces, and its successor LCS, which has a header of 8192 bytes and versions 1 to 8
//! (`traceReader/customizedReader/lcs.h`). All numbers are little-endian.
//!
//! A record names an object, not an offset. Traces of block devices number their blocks: such ids
//! are addresses, in the unit in which most requests follow the previous one. In other traces the
//! ids are hashes, which exceed any disk: their objects are laid out one after another in the order
//! of their first use.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use crate::builder::{RECORDS_MAX, TraceBuilder};
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const ORACLE_GENERAL: TraceFormat = TraceFormat {
    name: "oracle-general",
    summary: "oracleGeneral of libCacheSim: binary records of 24 bytes",
    detects: detects_oracle,
    parse: |bytes, options| parse(bytes, 1, options),
};

pub(super) const LCS: TraceFormat = TraceFormat {
    name: "lcs",
    summary: "LCS of libCacheSim, versions 1 to 8: a header and binary records",
    detects: |bytes| bytes.starts_with(&LCS_MAGIC.to_le_bytes()),
    parse: parse_lcs,
};

const LCS_MAGIC: u64 = 0x1234_5678_9abc_def0;
const HEADER_BYTES: usize = 8192;
/// Offset of the number of requests in the header, after the version of the statistics.
const REQUESTS_AT: usize = 24;
/// Maximum address in bytes: ids that exceed it are no addresses.
const DISK_MAX: u64 = 1 << 50;
/// Possible units of the ids of block traces, in bytes.
const UNITS: [u64; 3] = [4096, 512, 1];
/// Alignment of laid-out objects in bytes.
const OBJECT_ALIGNMENT_BYTES: u64 = 4096;

/// Returns the record length in bytes. Version 2 adds operation and tenant, 3 a 64-bit size.
fn record_length(version: u64) -> Option<usize> {
    Some(match version {
        1 => 24,
        2 => 28,
        // Versions 4 to 8 append 1, 2, 4, 8 and 16 features of 4 bytes.
        3 => 36,
        4..=8 => 36 + 4 * (1 << (version - 4)),
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    seconds: u32,
    object: u64,
    size: i64,
    operation: u8,
    tenant: u32,
    next: i64,
}

fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    if let Some(bytes) = record.get(at..at + N) {
        field.copy_from_slice(bytes);
    }
    field
}

impl Request {
    fn of(record: &[u8], version: u64) -> Self {
        let word = |at| u32::from_le_bytes(field(record, at));
        let long = |at| i64::from_le_bytes(field(record, at));
        let (size, behind) = match version {
            1 | 2 => (i64::from(word(12)), 16),
            _ => (long(12), 20),
        };
        let (mark, next) = match version {
            1 => (0, long(behind)),
            2 => (word(behind), long(behind + 4)),
            _ => (word(behind), long(behind + 8)),
        };
        Self {
            seconds: word(0),
            object: u64::from_le_bytes(field(record, 4)),
            size,
            operation: mark as u8,
            tenant: mark >> 8,
            next,
        }
    }

    /// Returns read or write; `None` if no data is transferred (`req_op_e` in `enum.h`).
    fn kind(&self) -> Option<TraceRecordKind> {
        match self.operation {
            9 => None,
            3..=8 | 10 | 11 | 13 | 14 => Some(TraceRecordKind::Write),
            _ => Some(TraceRecordKind::Read),
        }
    }
}

/// Returns whether the start looks like oracleGeneral, which has no magic number. Times must not
/// run backward, and a record's reference to the next request of its object must be correct.
fn detects_oracle(bytes: &[u8]) -> bool {
    let records: Vec<Request> =
        bytes.chunks_exact(24).map(|record| Request::of(record, 1)).collect();
    let follows = |at: usize, request: &Request| match usize::try_from(request.next) {
        _ if request.next == -1 || request.next == i64::MAX => true,
        Ok(next) if next > at && next < 1 << 40 => {
            // Counted from 0 or from 1. References beyond the start of the file are accepted.
            let same = |at: usize| records.get(at).is_none_or(|it| it.object == request.object);
            same(next) || same(next - 1) && next > at + 1
        }
        _ => false,
    };
    records.len() >= 2
        && records.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds)
        && records.iter().all(|request| request.size < 1 << 31)
        && records.iter().any(|request| request.size > 0)
        && records.iter().enumerate().all(|(at, request)| follows(at, request))
}

fn parse_lcs(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let long = |at| u64::from_le_bytes(field(bytes, at));
    let (Some(records), true) = (bytes.get(HEADER_BYTES..), long(0) == LCS_MAGIC) else {
        return Err(TraceError::whole(format!("it has no header of LCS ({HEADER_BYTES} bytes)")));
    };
    if long(HEADER_BYTES - 8) != LCS_MAGIC {
        let problem = "the header does not end as that of LCS does: it is damaged, or of a form \
                       before version 1";
        return Err(TraceError::at(TraceLocation::Byte(HEADER_BYTES as u64 - 8), problem));
    }
    let version = long(8);
    let Some(length) = record_length(version) else {
        let problem = format!("version {version} of LCS: versions 1 to 8 are known");
        return Err(TraceError::at(TraceLocation::Byte(8), problem));
    };
    let (said, there) = (long(REQUESTS_AT), (records.len() / length) as u64);
    if said > there && said < 1 << 48 {
        let problem = format!("it is cut short: {there} of its {said} requests are there");
        return Err(TraceError::at(TraceLocation::TraceRecord(there + 1), problem));
    }
    parse(records, version, options)
}

fn parse(bytes: &[u8], version: u64, options: ImportOptions) -> Result<Trace, TraceError> {
    let length = record_length(version).unwrap_or(24);
    let rest = bytes.len() % length;
    let count = bytes.len() / length;
    if rest > 0 {
        let problem = format!("it is cut short: {rest} of its {length} bytes are there");
        return Err(TraceError::at(TraceLocation::TraceRecord(count as u64 + 1), problem));
    }
    if count > RECORDS_MAX {
        let problem = format!("more than {RECORDS_MAX} requests: cut the trace");
        return Err(TraceError::at(TraceLocation::TraceRecord(RECORDS_MAX as u64 + 1), problem));
    }
    let requests = || bytes.chunks_exact(length).map(|record| Request::of(record, version));
    let layout = Layout::of(requests, options.page)?;
    let mut builder = TraceBuilder::new(true).sorting(options.sort);
    let file = builder.file("objects");
    let mut tenants: HashMap<u32, (u32, u32)> = HashMap::new();
    for (number, request) in (1..).zip(requests()) {
        let place = TraceLocation::TraceRecord(number);
        let Some(kind) = request.kind() else { continue };
        let Ok(size) = u64::try_from(request.size) else {
            let problem = format!("a size of {} bytes", request.size);
            return Err(TraceError::at(place, problem));
        };
        let (open_file, process) = *tenants.entry(request.tenant).or_insert_with(|| {
            let process = builder.process(u64::from(request.tenant));
            (builder.open(file, AccessMethod::Read), process)
        });
        let time = Nanos::from_secs(u64::from(request.seconds));
        let (offset, length) = (Bytes::new(layout.place(request.object)), Bytes::new(size));
        let took = Nanos::ZERO;
        builder
            .push(place, TraceRecord { time, open_file, process, kind, offset, length, took })?;
    }
    builder.finish()
}

enum Layout {
    /// Ids are addresses in units of this many bytes.
    Addresses(u64),
    Objects(HashMap<u64, u64>),
}

impl Layout {
    fn of<I: Iterator<Item = Request>>(
        requests: impl Fn() -> I,
        page: Option<Bytes>,
    ) -> Result<Self, TraceError> {
        let unit = page.map_or_else(|| unit_of(requests()), Bytes::get);
        let end = |request: &Request| {
            let start = request.object.checked_mul(unit)?;
            start.checked_add(u64::try_from(request.size).ok()?).filter(|end| *end <= DISK_MAX)
        };
        let beyond = (1..).zip(requests()).find(|(_, request)| end(request).is_none());
        match (beyond, page) {
            (None, _) => Ok(Self::Addresses(unit)),
            (Some((number, request)), Some(page)) if request.size >= 0 => {
                let problem = format!(
                    "object {} is beyond any disk if ids count pages of {page}: without --page \
                     objects are laid out one after another",
                    request.object
                );
                Err(TraceError::at(TraceLocation::TraceRecord(number), problem))
            }
            _ => Self::objects(requests),
        }
    }

    /// Lays out objects in order of first use, each with its maximum size.
    fn objects<I: Iterator<Item = Request>>(requests: impl Fn() -> I) -> Result<Self, TraceError> {
        let mut places: HashMap<u64, u64> = HashMap::new();
        for request in requests() {
            if places.len() == places.capacity() && places.try_reserve(places.len().max(1)).is_err()
            {
                return Err(TraceError::whole("there is no memory for its objects: cut the trace"));
            }
            let size = u64::try_from(request.size).unwrap_or(0);
            let largest = places.entry(request.object).or_default();
            *largest = size.max(*largest);
        }
        let mut end = 0u64;
        let mut placed = places.clone();
        for request in requests() {
            // `places` holds the sizes of the objects that are not placed yet.
            let Some(size) = places.remove(&request.object) else { continue };
            placed.insert(request.object, end);
            let next = size
                .checked_next_multiple_of(OBJECT_ALIGNMENT_BYTES)
                .and_then(|it| end.checked_add(it));
            end = next.ok_or_else(|| TraceError::whole("its objects are larger than any disk"))?;
        }
        Ok(Self::Objects(placed))
    }

    fn place(&self, object: u64) -> u64 {
        match self {
            Self::Addresses(unit) => object.saturating_mul(*unit),
            Self::Objects(places) => places.get(&object).copied().unwrap_or_default(),
        }
    }
}

/// Returns the unit in which most requests start where the previous one ended; pages if none does.
fn unit_of(requests: impl Iterator<Item = Request>) -> u64 {
    let mut counts = [0u64; UNITS.len()];
    let mut last: Option<Request> = None;
    for request in requests {
        for (unit, count) in UNITS.into_iter().zip(&mut counts) {
            let next = last.and_then(|last| {
                let size = u64::try_from(last.size).ok().filter(|size| *size > 0)?;
                size.is_multiple_of(unit).then(|| last.object.checked_add(size / unit))?
            });
            *count += u64::from(next == Some(request.object));
        }
        last = Some(request);
    }
    let best = UNITS.into_iter().zip(counts).rev().max_by_key(|(_, count)| *count);
    best.filter(|(_, count)| *count > 0).map_or(UNITS[0], |(unit, _)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
        let record = |(time, id, size, next): &(u32, u64, u32, i64)| {
            let mut bytes = time.to_le_bytes().to_vec();
            bytes.extend(id.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(next.to_le_bytes());
            bytes
        };
        records.iter().flat_map(record).collect()
    }

    fn lcs(version: u64, requests: u64, records: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&LCS_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
        bytes[REQUESTS_AT..REQUESTS_AT + 8].copy_from_slice(&requests.to_le_bytes());
        bytes[HEADER_BYTES - 8..].copy_from_slice(&LCS_MAGIC.to_le_bytes());
        bytes.extend(records);
        bytes
    }

    /// Returns offset and length of each request.
    fn reads(trace: &Trace) -> Vec<(u64, u64)> {
        let pair = |record: &TraceRecord| (record.offset.get(), record.length.get());
        trace.records().iter().map(pair).collect()
    }

    #[test]
    fn ids_are_addresses_in_the_unit_in_which_requests_follow() {
        let plain = ImportOptions::default();
        for (step, unit) in [(1, 4096), (8, 512), (4096, 1)] {
            let records: Vec<_> = (0..9u64).map(|n| (n as u32, 70 + n * step, 4096, -1)).collect();
            let bytes = oracle(&records);
            assert!(detects_oracle(&bytes), "{step}");
            let trace = parse(&bytes, 1, plain).unwrap();
            let expected: Vec<_> = (0..9).map(|n| (70 * unit + n * 4096, 4096)).collect();
            assert_eq!(reads(&trace), expected, "{step}");
            assert_eq!(trace.span(), Nanos::from_secs(8));
        }
        let bytes = oracle(&[(0, 7, 512, -1), (0, 9, 512, -1)]);
        assert_eq!(reads(&parse(&bytes, 1, plain).unwrap())[0], (7 * 4096, 512));
        let page = ImportOptions { page: Some(Bytes::new(512)), ..plain };
        assert_eq!(reads(&parse(&bytes, 1, page).unwrap())[0], (7 * 512, 512));
    }

    #[test]
    fn objects_with_hashes_for_ids_are_laid_out_in_order_of_first_use() {
        let (a, b) = (u64::MAX - 5, 1 << 60);
        let bytes = oracle(&[(0, a, 100, 2), (1, b, 5000, -1), (1, a, 8192, -1), (2, 3, 1, -1)]);
        let trace = parse(&bytes, 1, ImportOptions::default()).unwrap();
        assert_eq!(reads(&trace), [(0, 100), (8192, 5000), (0, 8192), (16384, 1)]);
        let page = ImportOptions { page: Some(Bytes::new(512)), ..ImportOptions::default() };
        let error = parse(&bytes, 1, page).unwrap_err();
        assert_eq!(error.place, TraceLocation::TraceRecord(1));
        assert!(error.problem.contains("without --page"), "{error}");
    }

    #[test]
    fn only_what_is_consistent_is_taken_for_oracle_general() {
        assert!(detects_oracle(&oracle(&[(5, 1, 10, 2), (6, 2, 10, -1), (6, 1, 10, -1)])));
        assert!(detects_oracle(&oracle(&[(5, 1, 10, 3), (6, 2, 10, i64::MAX), (6, 1, 10, -1)])));
        for records in [
            [(5, 1, 10, 2), (6, 2, 10, -1), (6, 3, 10, -1)],
            [(7, 1, 10, -1), (6, 2, 10, -1), (6, 3, 10, -1)],
            [(5, 1, 10, 0), (6, 1, 10, 0), (6, 1, 10, 0)],
        ] {
            assert!(!detects_oracle(&oracle(&records)), "{records:?}");
        }
        assert!(!detects_oracle(&[0; 240]) && !detects_oracle(&[0xff; 240]));
        assert!(!detects_oracle(b"offset,length\n0,4096\n4096,4096\n8192,4096\n12288,4096\n"));
    }

    #[test]
    fn each_version_of_lcs_has_its_records() {
        for version in 1..=8 {
            let mut records = Vec::new();
            for (id, operation) in [(1u64, 12u32), (2, 13), (3, 9), (4, 0)] {
                let start = records.len();
                records.extend(5u32.to_le_bytes());
                records.extend(id.to_le_bytes());
                match version {
                    1 | 2 => records.extend(4096u32.to_le_bytes()),
                    _ => records.extend(4096i64.to_le_bytes()),
                }
                if version > 1 {
                    records.extend((7u32 << 8 | operation).to_le_bytes());
                }
                records.resize(start + record_length(version).unwrap(), 0);
            }
            let bytes = lcs(version, 4, &records);
            assert!((LCS.detects)(&bytes));
            let trace = parse_lcs(&bytes, ImportOptions::default()).unwrap();
            let kinds: Vec<TraceRecordKind> =
                trace.records().iter().map(|record| record.kind).collect();
            if version == 1 {
                assert_eq!((kinds.len(), trace.threads()), (4, &[0.into()][..]));
            } else {
                assert_eq!(
                    kinds,
                    [TraceRecordKind::Read, TraceRecordKind::Write, TraceRecordKind::Read],
                    "version {version}"
                );
                assert_eq!(trace.threads(), [7.into()]);
            }
            let cut = parse_lcs(&bytes[..bytes.len() - 1], ImportOptions::default());
            assert_eq!(cut.unwrap_err().place, TraceLocation::TraceRecord(4), "version {version}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_is_named() {
        let wrong = |bytes: &[u8]| parse_lcs(bytes, ImportOptions::default()).unwrap_err();
        assert!(wrong(&lcs(9, 0, &[0; 24])).problem.contains("versions 1 to 8"));
        let mut damaged = lcs(1, 0, &[0; 24]);
        damaged[HEADER_BYTES - 1] = 0;
        assert_eq!(wrong(&damaged).place, TraceLocation::Byte(8184));
        assert!(wrong(&damaged[..100]).problem.contains("no header"));
        let negative = [&[0; 12][..], &[0xff; 24]].concat();
        assert_eq!(wrong(&lcs(3, 0, &negative)).place, TraceLocation::TraceRecord(1));
    }
}
