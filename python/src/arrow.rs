//! Traces and results as Arrow.

use std::sync::Arc;
use std::vec::IntoIter;

use arrow_array::builder::{BooleanBuilder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use batch::{LoadedTrace, TraceContent};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use trace::{Trace, TraceBuilder, TraceError, TraceLocation, TraceRecord, TraceRecordKind};
use units::{Bytes, Nanos};
use workload::AccessMethod;

fn trace_schema() -> SchemaRef {
    let dictionary = DataType::Dictionary(DataType::UInt32.into(), DataType::Utf8.into());
    Arc::new(Schema::new(vec![
        Field::new("time_ns", DataType::UInt64, false),
        Field::new("process", DataType::UInt64, false),
        Field::new("open_file", DataType::UInt32, false),
        Field::new("file", dictionary, false),
        Field::new("mapped", DataType::Boolean, false),
        Field::new("write", DataType::Boolean, false),
        Field::new("offset_bytes", DataType::UInt64, false),
        Field::new("length_bytes", DataType::UInt64, false),
    ]))
}

/// Records of a trace as a batch.
fn trace_batch(trace: &TraceContent, records: &[TraceRecord]) -> Result<RecordBatch, ArrowError> {
    let rows = records.len();
    let number = || UInt64Builder::with_capacity(rows);
    let (mut time, mut process, mut offset, mut length) = (number(), number(), number(), number());
    let mut open_file = UInt32Builder::with_capacity(rows);
    let mut file = StringDictionaryBuilder::<UInt32Type>::new();
    let (mut mapped, mut write) =
        (BooleanBuilder::with_capacity(rows), BooleanBuilder::with_capacity(rows));
    for record in records {
        let open = &trace.open_files()[record.open_file as usize];
        time.append_value(record.time.get());
        process.append_value(trace.thread(record.process));
        open_file.append_value(record.open_file);
        file.append_value(&trace.files()[open.file as usize].name);
        mapped.append_value(open.access == AccessMethod::Mmap);
        write.append_value(record.kind == TraceRecordKind::Write);
        offset.append_value(record.offset.get());
        length.append_value(record.length.get());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(time.finish()),
        Arc::new(process.finish()),
        Arc::new(open_file.finish()),
        Arc::new(file.finish()),
        Arc::new(mapped.finish()),
        Arc::new(write.finish()),
        Arc::new(offset.finish()),
        Arc::new(length.finish()),
    ];
    RecordBatch::try_new(trace_schema(), columns)
}

/// The batches of a trace, made as they are consumed.
pub struct TraceBatches {
    trace: Arc<LoadedTrace>,
    next: usize,
}

impl TraceBatches {
    pub fn new(trace: Arc<LoadedTrace>) -> Self {
        Self { trace, next: 0 }
    }
}

impl Iterator for TraceBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let content = self.trace.content();
        loop {
            let chunk = content.chunk(self.next).transpose()?;
            self.next += 1;
            match chunk {
                Ok(records) if records.is_empty() => (),
                Ok(records) => return Some(trace_batch(content, &records)),
                Err(problem) => {
                    return Some(Err(ArrowError::IoError(
                        problem.clone(),
                        std::io::Error::other(problem),
                    )));
                }
            }
        }
    }
}

impl RecordBatchReader for TraceBatches {
    fn schema(&self) -> SchemaRef {
        trace_schema()
    }
}

/// The columns of one batch of a table that is read as a trace.
struct TraceColumns {
    offset: UInt64Array,
    length: UInt64Array,
    time: Option<UInt64Array>,
    process: Option<UInt64Array>,
    open_file: Option<UInt64Array>,
    file: Option<StringArray>,
    mapped: Option<BooleanArray>,
    write: Option<BooleanArray>,
}

fn column(batch: &RecordBatch, name: &str, kind: &DataType) -> Result<Option<ArrayRef>, String> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    // A value that does not fit is an error, not a null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let column = cast_with_options(column, kind, &options);
    let column = column.map_err(|error| format!("column {name}: {error}"))?;
    match column.null_count() {
        0 => Ok(Some(column)),
        count => Err(format!("column {name}: {count} values are missing")),
    }
}

impl TraceColumns {
    fn new(batch: &RecordBatch) -> Result<Self, String> {
        let number = |name| -> Result<Option<UInt64Array>, String> {
            let column = column(batch, name, &DataType::UInt64)?;
            Ok(column.map(|column| column.as_primitive::<UInt64Type>().clone()))
        };
        let flag = |name| -> Result<Option<BooleanArray>, String> {
            let column = column(batch, name, &DataType::Boolean)?;
            Ok(column.map(|column| column.as_boolean().clone()))
        };
        let needed = |name: &str| {
            format!("column {name} is missing; a trace needs offset_bytes and length_bytes")
        };
        Ok(Self {
            offset: number("offset_bytes")?.ok_or_else(|| needed("offset_bytes"))?,
            length: number("length_bytes")?.ok_or_else(|| needed("length_bytes"))?,
            time: number("time_ns")?,
            process: number("process")?,
            open_file: number("open_file")?,
            file: column(batch, "file", &DataType::Utf8)?.map(|it| it.as_string().clone()),
            mapped: flag("mapped")?,
            write: flag("write")?,
        })
    }
}

/// A trace from record batches. Only `offset_bytes` and `length_bytes` are needed.
pub fn read_trace(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    timed: bool,
) -> Result<Trace, String> {
    let mut builder = TraceBuilder::new(timed);
    let mut opens = std::collections::HashMap::new();
    let mut row = 0;
    for batch in batches {
        let batch = batch.map_err(|error| error.to_string())?;
        let columns = TraceColumns::new(&batch)?;
        for at in 0..batch.num_rows() {
            row += 1;
            let name = columns.file.as_ref().map_or("data", |file| file.value(at));
            let file = builder.file(name);
            let mapped = columns.mapped.as_ref().is_some_and(|mapped| mapped.value(at));
            let number = columns.open_file.as_ref().map_or(0, |open| open.value(at));
            let method = if mapped { AccessMethod::Mmap } else { AccessMethod::Read };
            let open_file =
                *opens.entry((file, number, mapped)).or_insert_with(|| builder.open(file, method));
            let process = columns.process.as_ref().map_or(0, |process| process.value(at));
            let process = builder.process(process);
            let write = columns.write.as_ref().is_some_and(|write| write.value(at));
            let record = TraceRecord {
                time: Nanos::new(columns.time.as_ref().map_or(0, |time| time.value(at))),
                open_file,
                process,
                kind: if write { TraceRecordKind::Write } else { TraceRecordKind::Read },
                offset: Bytes::new(columns.offset.value(at)),
                length: Bytes::new(columns.length.value(at)),
                took: Nanos::ZERO,
            };
            let place = TraceLocation::TraceRecord(row);
            builder.push(place, record).map_err(|error: TraceError| error.to_string())?;
        }
    }
    builder.finish().map_err(|error| error.to_string())
}

/// Result files one after another, as one stream.
pub struct ChainedReader {
    schema: SchemaRef,
    readers: IntoIter<ParquetRecordBatchReader>,
    current: Option<ParquetRecordBatchReader>,
}

impl ChainedReader {
    /// `None` if there are none.
    pub fn new(readers: Vec<ParquetRecordBatchReader>) -> Option<Self> {
        let schema = readers.first()?.schema();
        let mut readers = readers.into_iter();
        let current = readers.next();
        Some(Self { schema, readers, current })
    }
}

impl Iterator for ChainedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut()?.next() {
                return Some(batch);
            }
            self.current = self.readers.next();
        }
    }
}

impl RecordBatchReader for ChainedReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
