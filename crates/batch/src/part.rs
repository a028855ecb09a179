//! Result files: one Parquet file for each shard, with one row for each cell.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::parser::parse_message_type;

use crate::error::BatchError;
use crate::identity::{SIMULATOR_VERSION, sha256};
use crate::row::{CellFigures, CellRow};

/// Type of a column, and the function that computes its value from a row.
enum ColumnValue {
    Text(fn(&CellRow) -> String),
    /// Null in rows without an error.
    Error(fn(&CellRow) -> Option<&str>),
    Flag(fn(&CellRow) -> bool),
    Signed(fn(&CellRow) -> u64),
    Unsigned(fn(&CellRow) -> u64),
    /// A number from the simulation; null in rows with an error.
    Figure,
    Histogram(fn(&CellFigures) -> Vec<u8>),
}

use ColumnValue::{Error, Figure, Flag, Histogram, Signed, Text, Unsigned};

/// A column of the result files.
pub struct PartColumn {
    pub name: &'static str,
    value: ColumnValue,
}

const fn column(name: &'static str, value: ColumnValue) -> PartColumn {
    PartColumn { name, value }
}

/// The columns, in file order. Later versions only append columns.
pub const COLUMNS: &[PartColumn] = &[
    column("cell_id", Text(|row| row.cell_id.clone())),
    column("trace", Text(|row| row.trace.clone())),
    column("trace_digest", Text(|row| row.trace_digest.clone())),
    column("policy", Text(|row| row.cell.policy.clone())),
    column("device", Text(|row| row.cell.device.clone())),
    column("filesystem", Text(|row| row.cell.filesystem.clone())),
    column("simulator_version", Text(|_| SIMULATOR_VERSION.to_owned())),
    column("status", Text(|row| row.status.name().to_owned())),
    column("error", Error(|row| row.status.error())),
    column("pace", Text(|row| row.cell.pace.clone())),
    column("compact", Flag(|row| row.cell.compact)),
    column("settings", Text(|row| settings(&row.cell.settings))),
    column("seed", Unsigned(|row| row.cell.seed)),
    column("cache_bytes", Signed(|row| row.cell.cache_bytes)),
    column("read_ahead_kib", Signed(|row| row.cell.read_ahead_kib)),
    column("elapsed_ns", Figure),
    column("useful_bytes", Figure),
    column("device_bytes", Figure),
    column("device_requests", Figure),
    column("device_busy_ns", Figure),
    column("stalls", Figure),
    column("stalled_ns", Figure),
    column("referenced_pages", Figure),
    column("hit_pages", Figure),
    column("late_pages", Figure),
    column("missed_pages", Figure),
    column("read_pages", Figure),
    column("used_pages", Figure),
    column("thrashed_pages", Figure),
    column("latency_p50_ns", Figure),
    column("latency_p99_ns", Figure),
    column("latency_histogram", Histogram(CellFigures::encoded_latency)),
];

/// Index of `status` in `COLUMNS`.
const STATUS_COLUMN: usize = 7;

fn settings(settings: &BTreeMap<String, String>) -> String {
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(",")
}

/// A published result file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartSummary {
    pub path: PathBuf,
    pub bytes: u64,
}

fn schema() -> String {
    let field = |column: &PartColumn| {
        let name = column.name;
        match column.value {
            Text(_) => format!("required binary {name} (STRING);"),
            Error(_) => format!("optional binary {name} (STRING);"),
            Flag(_) => format!("required boolean {name};"),
            Signed(_) => format!("required int64 {name};"),
            Unsigned(_) => format!("required int64 {name} (INTEGER(64,false));"),
            Figure => format!("optional int64 {name};"),
            Histogram(_) => format!("optional binary {name};"),
        }
    };
    format!("message cells {{ {} }}", COLUMNS.iter().map(field).collect::<String>())
}

/// Encodes rows as a Parquet file. Equal rows give equal bytes.
pub(crate) fn encode(rows: &[CellRow]) -> ParquetResult<Vec<u8>> {
    let schema = Arc::new(parse_message_type(&schema())?);
    let properties = WriterProperties::builder()
        .set_created_by(format!("foreread {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        let Some(mut writer) = group.next_column()? else { break };
        write_column(column, rows, writer.untyped())?;
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn write_column(
    column: &PartColumn,
    rows: &[CellRow],
    writer: &mut ColumnWriter<'_>,
) -> ParquetResult<()> {
    fn present<T>(values: Vec<Option<T>>) -> (Vec<i16>, Vec<T>) {
        let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
        (levels, values.into_iter().flatten().collect())
    }
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    let whole = |value: u64| value.cast_signed();
    let figures = |row: &CellRow| row.figures.clone();
    match (&column.value, writer) {
        (Text(get), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let values: Vec<ByteArray> = rows.iter().map(|row| text(&get(row))).collect();
            writer.write_batch(&values, None, None)?;
        }
        (Error(get), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let (levels, values) = present(rows.iter().map(|row| get(row).map(text)).collect());
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (Histogram(get), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let value = |row| figures(row).map(|it| ByteArray::from(get(&it)));
            let (levels, values) = present(rows.iter().map(value).collect());
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (Flag(get), ColumnWriter::BoolColumnWriter(writer)) => {
            let values: Vec<bool> = rows.iter().map(get).collect();
            writer.write_batch(&values, None, None)?;
        }
        (Signed(get) | Unsigned(get), ColumnWriter::Int64ColumnWriter(writer)) => {
            let values: Vec<i64> = rows.iter().map(|row| whole(get(row))).collect();
            writer.write_batch(&values, None, None)?;
        }
        (Figure, ColumnWriter::Int64ColumnWriter(writer)) => {
            let named = |it: &CellFigures| it.numbers().into_iter().find(|at| at.0 == column.name);
            let value = |row: &CellRow| row.figures.as_ref().and_then(named)?.1.map(whole);
            let (levels, values) = present(rows.iter().map(value).collect());
            writer.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(ParquetError::General(format!("{}: unexpected type", column.name))),
    }
    Ok(())
}

/// Returns the path of a shard's result file.
pub(crate) fn part_path(out: &Path, shard: &str) -> PathBuf {
    out.join(format!("part-{shard}.parquet"))
}

/// Publishes a file atomically: it exists as a whole or not at all, even after a power loss.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> Result<(), BatchError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |source| BatchError::Write { path: path.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Returns the result files of a directory, sorted by name; none if there is no such directory.
fn parts(out: &Path) -> Result<Vec<PathBuf>, BatchError> {
    let failed = |source| BatchError::Read { path: out.to_owned(), source };
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("part-") && name.ends_with(".parquet") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, BatchError> {
    let file = File::open(path);
    let file = file.map_err(|source| BatchError::Read { path: path.to_owned(), source })?;
    SerializedFileReader::new(file)
        .map_err(|source| BatchError::Part { path: path.to_owned(), source })
}

fn cell_ids(reader: &SerializedFileReader<File>) -> ParquetResult<Vec<String>> {
    let mut ids = Vec::new();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(0)? else {
            return Err(ParquetError::General("the first column is not cell_id".to_owned()));
        };
        let mut values: Vec<ByteArray> = Vec::new();
        while values.len() < rows {
            let (records, ..) =
                column.read_records(rows - values.len(), None, None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General("the column cell_id is cut short".to_owned()));
            }
        }
        for value in values {
            ids.push(value.as_utf8()?.to_owned());
        }
    }
    Ok(ids)
}

/// Reads one file. The Parquet library panics on some damaged files: a panic becomes an error.
fn read_part<T>(
    path: &Path,
    read: impl Fn(&SerializedFileReader<File>) -> ParquetResult<Vec<T>>,
) -> Result<Vec<T>, BatchError> {
    let failed = |source| BatchError::Part { path: path.to_owned(), source };
    let reading = AssertUnwindSafe(|| read(&open(path)?).map_err(failed));
    catch_unwind(reading)
        .unwrap_or_else(|_| Err(failed(ParquetError::General("damage".to_owned()))))
}

/// Reads every file of a directory with `read`, on all processors.
fn each_part<T: Send>(
    out: &Path,
    read: impl Fn(&SerializedFileReader<File>) -> ParquetResult<Vec<T>> + Sync,
) -> Result<Vec<T>, BatchError> {
    let paths = parts(out)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(threads).max(1);
    let read = &read;
    thread::scope(|scope| {
        let readers: Vec<_> = paths
            .chunks(share)
            .map(|paths| {
                scope.spawn(move || {
                    let mut found = Vec::new();
                    for path in paths {
                        found.extend(read_part(path, read)?);
                    }
                    Ok(found)
                })
            })
            .collect();
        let mut all = Vec::new();
        for reader in readers {
            let found: Result<Vec<T>, BatchError> =
                reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.extend(found?);
        }
        Ok(all)
    })
}

/// Returns the IDs of the cells that have results in a directory.
///
/// # Errors
///
/// If the directory or a result file cannot be read.
pub fn finished_cells(out: &Path) -> Result<HashSet<String>, BatchError> {
    Ok(each_part(out, cell_ids)?.into_iter().collect())
}

/// The results of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSet {
    /// Result files, sorted by name.
    pub paths: Vec<PathBuf>,
    /// SHA-256 of all distinct rows in the order of their cell IDs. It does not depend on which
    /// processes simulated the cells, or in which order.
    pub digest: String,
    /// Number of cells by status.
    pub cells: BTreeMap<String, u64>,
}

/// Reads all results of a directory.
///
/// # Errors
///
/// If the directory or a result file cannot be read.
pub fn read_result_set(out: &Path) -> Result<ResultSet, BatchError> {
    let mut rows = each_part(out, |reader| {
        let mut rows = Vec::new();
        for row in reader.get_row_iter(None)? {
            let row = row?;
            rows.push((row.get_string(0)?.clone(), row.get_string(STATUS_COLUMN)?.clone(), row));
        }
        Ok(rows.into_iter().map(|(id, status, row)| (id, status, row.to_string())).collect())
    })?;
    rows.sort();
    rows.dedup();
    let mut cells = BTreeMap::new();
    for (_, status, _) in &rows {
        *cells.entry(status.clone()).or_default() += 1;
    }
    let digest = sha256(rows.iter().map(|(.., row)| row.as_bytes()));
    Ok(ResultSet { paths: parts(out)?, digest, cells })
}
