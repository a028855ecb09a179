//! Writes Parquet, for data analysis: one row per trial.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use study::{Quantiles, Trial, TrialStatus};

use crate::clean;
use crate::run_report::RunReport;

/// The values of one column. Only real numbers can be missing.
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
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write_parquet(runs: &[RunReport<'_>], mut out: impl Write) -> io::Result<()> {
    // In memory first: the writer of the parquet crate needs an output that is `Send`.
    let file = encode(&columns(runs)).map_err(io::Error::other)?;
    out.write_all(&file)?;
    out.flush()
}

fn encode(columns: &[Column]) -> ParquetResult<Vec<u8>> {
    let fields: String = columns.iter().map(Column::field).collect();
    let schema = parse_message_type(&format!("message trials {{ {fields} }}"))?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("foreread ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        column.write(writer.untyped())?;
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
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
    /// Returns the column in Parquet's schema language.
    fn field(&self) -> String {
        let name = self.name;
        match self.values {
            Values::Whole(_) => format!("required int64 {name};"),
            Values::Real(_) => format!("optional double {name};"),
            Values::Text(_) => format!("required binary {name} (STRING);"),
        }
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> ParquetResult<()> {
        match (&self.values, writer) {
            (Values::Whole(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, None, None)
            }
            (Values::Real(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                let levels: Vec<i16> =
                    values.iter().map(|value| i16::from(value.is_some())).collect();
                writer.write_batch(&present, Some(&levels), None)
            }
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let texts: Vec<ByteArray> =
                    values.iter().map(|text| ByteArray::from(text.as_str())).collect();
                writer.write_batch(&texts, None, None)
            }
            _ => Err(ParquetError::General(format!("{}: unexpected type", self.name))),
        }
        .map(drop)
    }
}
