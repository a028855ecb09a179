//! Parquet: every trial as a row, for analysts.
//!
//! The usual library takes longer to compile than all of foreread, and a table of plain numbers
//! needs little of the format: one row group, one page for each column, no compression
//! (github.com/apache/parquet-format: README.md, `parquet.thrift`; the metadata use Thrift's
//! compact protocol).

use std::io::{self, Write};

use study::{Quantiles, Trial, TrialStatus};

use crate::clean;
use crate::run_report::RunReport;

const MAGIC: &[u8; 4] = b"PAR1";

/// The values of one column. Only numbers can be missing.
enum Values {
    Whole(Vec<i64>),
    Real(Vec<Option<f64>>),
    Text(Vec<String>),
}

struct Column {
    name: &'static str,
    values: Values,
}

/// Writes the trials of these runs.
pub fn write_parquet(runs: &[RunReport<'_>], mut out: impl Write) -> io::Result<()> {
    let columns = columns(runs);
    let rows = runs.iter().map(|report| report.run.trials.len()).sum::<usize>();
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::with_capacity(columns.len());
    for column in &columns {
        let offset = file.len();
        let data = column.data(rows);
        file.extend(page_header(data.len(), rows));
        file.extend(data);
        chunks.push((offset, file.len() - offset));
    }
    let footer = footer(&columns, &chunks, rows);
    let length = u32::try_from(footer.len()).unwrap_or(u32::MAX);
    file.extend(footer);
    file.extend(length.to_le_bytes());
    file.extend(MAGIC);
    out.write_all(&file)?;
    out.flush()
}

fn columns(runs: &[RunReport<'_>]) -> Vec<Column> {
    let each = |of: &dyn Fn(&RunReport<'_>, &Trial) -> i64| {
        Values::Whole(runs.iter().flat_map(|f| f.run.trials.iter().map(|t| of(f, t))).collect())
    };
    let real = |of: &dyn Fn(&Trial) -> Option<f64>| {
        let trials = runs.iter().flat_map(|report| &report.run.trials);
        Values::Real(trials.map(|trial| of(trial).filter(|value| value.is_finite())).collect())
    };
    let text = |of: &dyn Fn(&RunReport<'_>, &Trial) -> String| {
        let cleaned = |f: &RunReport<'_>, t: &Trial| clean::plain(&of(f, t));
        Values::Text(runs.iter().flat_map(|f| f.run.trials.iter().map(|t| cleaned(f, t))).collect())
    };
    let quantile = |of: fn(&Trial) -> Option<Quantiles>, which: fn(&Quantiles) -> f64| {
        real(&|trial| of(trial).as_ref().map(which))
    };
    let column = |name, values| Column { name, values };
    vec![
        column("run", each(&|f, _| f.run.summary.id.0)),
        column("target", text(&|f, _| f.run.summary.target.clone())),
        column("trial", each(&|_, t| i64::from(t.order))),
        column("block", each(&|_, t| i64::from(t.block))),
        column("workload", text(&|_, t| t.workload.clone())),
        column("settings", text(&|_, t| t.settings.to_string())),
        column("read_ahead_kib", each(&|_, t| t.settings.read_ahead.get().cast_signed())),
        column("started_unix_s", real(&|t| Some(t.started_unix_s))),
        column("clean", each(&|_, t| i64::from(t.status == TrialStatus::Clean))),
        column("throughput_mib_s", real(&|t| Some(t.figures.throughput_mib_s))),
        column("amplification", real(&|t| t.figures.amplification)),
        column("device_requests", real(&|t| t.figures.device_requests.map(|n| n as f64))),
        column("latency_us_p50", quantile(|t| t.figures.latency_us, |q| q.p50)),
        column("latency_us_p99", quantile(|t| t.figures.latency_us, |q| q.p99)),
        column("random_latency_us_p50", quantile(|t| t.figures.random_latency_us, |q| q.p50)),
        column("random_latency_us_p99", quantile(|t| t.figures.random_latency_us, |q| q.p99)),
        column("measured_seconds", real(&|t| Some(t.figures.measured_seconds))),
        column("disturbances", text(&|_, t| t.disturbances.join("; "))),
    ]
}

impl Column {
    /// The numbers of `Type` and `ConvertedType` in `parquet.thrift`, and whether values are
    /// optional.
    fn kind(&self) -> (i64, Option<i64>, bool) {
        match self.values {
            Values::Whole(_) => (2, None, false),
            Values::Real(_) => (5, None, true),
            Values::Text(_) => (6, Some(0), false),
        }
    }

    /// The page's data: the definition levels, and the values in plain encoding.
    fn data(&self, rows: usize) -> Vec<u8> {
        match &self.values {
            Values::Whole(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Real(values) => {
                let mut data = levels(values, rows);
                data.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
                data
            }
            Values::Text(values) => {
                let mut data = Vec::new();
                for value in values {
                    let length = u32::try_from(value.len()).unwrap_or(0);
                    data.extend(length.to_le_bytes());
                    data.extend(&value.as_bytes()[..length as usize]);
                }
                data
            }
        }
    }
}

/// Definition levels of one bit each: a single bit-packed run of whole groups of eight.
fn levels(values: &[Option<f64>], rows: usize) -> Vec<u8> {
    let groups = rows.div_ceil(8);
    let mut run = Vec::new();
    varint(&mut run, ((groups as u64) << 1) | 1);
    let bits = |group: &[Option<f64>]| {
        group.iter().enumerate().fold(0u8, |byte, (at, v)| byte | (u8::from(v.is_some()) << at))
    };
    run.extend(values.chunks(8).map(bits));
    let mut data = u32::try_from(run.len()).unwrap_or(0).to_le_bytes().to_vec();
    data.extend(run);
    data
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a struct in Thrift's compact protocol.
#[derive(Default)]
struct Compact {
    bytes: Vec<u8>,
    last: u8,
}

const TYPE_I32: u8 = 5;
const TYPE_I64: u8 = 6;
const TYPE_BINARY: u8 = 8;
const TYPE_LIST: u8 = 9;
const TYPE_STRUCT: u8 = 12;

impl Compact {
    fn field(&mut self, id: u8, kind: u8) {
        // Ids differ by at most fifteen, so the short form suffices.
        self.bytes.push(((id - self.last) << 4) | kind);
        self.last = id;
    }

    fn number(mut self, id: u8, kind: u8, value: i64) -> Self {
        self.field(id, kind);
        self.zigzag(value);
        self
    }

    fn zigzag(&mut self, value: i64) {
        varint(&mut self.bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn text(mut self, id: u8, text: &str) -> Self {
        self.field(id, TYPE_BINARY);
        self.binary(text);
        self
    }

    fn binary(&mut self, text: &str) {
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn list(&mut self, id: u8, kind: u8, length: usize) {
        self.field(id, TYPE_LIST);
        if length < 15 {
            self.bytes.push(((length as u8) << 4) | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }

    fn structs(mut self, id: u8, items: Vec<Vec<u8>>) -> Self {
        self.list(id, TYPE_STRUCT, items.len());
        items.into_iter().for_each(|item| self.bytes.extend(item));
        self
    }

    fn child(mut self, id: u8, child: Vec<u8>) -> Self {
        self.field(id, TYPE_STRUCT);
        self.bytes.extend(child);
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// `PageHeader`: a data page in plain encoding (0), levels in runs (3).
fn page_header(length: usize, rows: usize) -> Vec<u8> {
    let data = Compact::default()
        .number(1, TYPE_I32, signed(rows))
        .number(2, TYPE_I32, 0)
        .number(3, TYPE_I32, 3)
        .number(4, TYPE_I32, 3)
        .end();
    Compact::default()
        .number(1, TYPE_I32, 0)
        .number(2, TYPE_I32, signed(length))
        .number(3, TYPE_I32, signed(length))
        .child(5, data)
        .end()
}

/// `FileMetaData`: the schema, and where each column is.
fn footer(columns: &[Column], chunks: &[(usize, usize)], rows: usize) -> Vec<u8> {
    let root =
        Compact::default().text(4, "trials").number(5, TYPE_I32, signed(columns.len())).end();
    let element = |column: &Column| {
        let (kind, converted, optional) = column.kind();
        let element = Compact::default()
            .number(1, TYPE_I32, kind)
            .number(3, TYPE_I32, i64::from(optional))
            .text(4, column.name);
        match converted {
            Some(converted) => element.number(6, TYPE_I32, converted).end(),
            None => element.end(),
        }
    };
    let schema = std::iter::once(root).chain(columns.iter().map(element)).collect();
    let chunk = |(column, (offset, length)): (&Column, &(usize, usize))| {
        let mut meta = Compact::default().number(1, TYPE_I32, column.kind().0);
        meta.list(2, TYPE_I32, 2);
        meta.zigzag(0);
        meta.zigzag(3);
        meta.list(3, TYPE_BINARY, 1);
        meta.binary(column.name);
        let meta = meta
            .number(4, TYPE_I32, 0)
            .number(5, TYPE_I64, signed(rows))
            .number(6, TYPE_I64, signed(*length))
            .number(7, TYPE_I64, signed(*length))
            .number(9, TYPE_I64, signed(*offset))
            .end();
        Compact::default().number(2, TYPE_I64, signed(*offset)).child(3, meta).end()
    };
    let bytes = chunks.iter().map(|(_, length)| signed(*length)).sum();
    let group = Compact::default()
        .structs(1, columns.iter().zip(chunks).map(chunk).collect())
        .number(2, TYPE_I64, bytes)
        .number(3, TYPE_I64, signed(rows))
        .end();
    Compact::default()
        .number(1, TYPE_I32, 1)
        .structs(2, schema)
        .number(3, TYPE_I64, signed(rows))
        .structs(4, vec![group])
        .text(6, concat!("foreread ", env!("CARGO_PKG_VERSION")))
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_thrift_has_them() {
        let mut bytes = Vec::new();
        varint(&mut bytes, 300);
        assert_eq!(bytes, [0xac, 0x02]);
        let compact =
            Compact::default().number(1, TYPE_I32, -1).number(3, TYPE_I64, 64).text(4, "ab").end();
        assert_eq!(compact, [0x15, 1, 0x26, 0x80, 1, 0x18, 2, b'a', b'b', 0]);
    }

    #[test]
    fn missing_values_are_bits_and_take_no_room() {
        let values: Vec<Option<f64>> = (0..9).map(|n| (n != 3).then_some(f64::from(n))).collect();
        let levels = levels(&values, 9);
        assert_eq!(levels, [3, 0, 0, 0, 0b101, 0b1111_0111, 0b1]);
        let column = Column { name: "x", values: Values::Real(values) };
        assert_eq!(column.data(9).len(), levels.len() + 8 * 8);
    }
}
