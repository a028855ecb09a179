//! Imports hosts in batches.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::database::{Database, ImportSummary};
use crate::error::FleetError;
use crate::record::{self, DatabaseRow};
use crate::source::{self, Source};

/// Maximum size of a batch, which is one transaction and one text in memory.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// The result of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    pub summary: ImportSummary,
    /// Errors of hosts that were not imported; all others were.
    pub errors: Vec<FleetError>,
}

/// Imports every host below these paths. Reports invalid input and imports the rest.
///
/// # Errors
///
/// If a path contains no host, or if the database fails. Committed batches remain; a second import
/// does not repeat them.
pub fn import(database: &Database, paths: &[PathBuf]) -> Result<ImportReport, FleetError> {
    let sources = source::find(paths)?;
    let mut report = ImportReport::default();
    let mut names = BTreeMap::new();
    let (mut lines, mut bytes) = (String::new(), 0);
    for source in &sources {
        match rows(source, &mut names) {
            Ok(rows) => {
                for (kind, document) in rows {
                    lines.push_str(&line(kind, &document.to_string()));
                }
                bytes = lines.len();
            }
            Err(error) => report.errors.push(error),
        }
        if bytes > MAX_BATCH_BYTES {
            report.summary.add(&database.merge(&std::mem::take(&mut lines))?);
            bytes = 0;
        }
    }
    report.summary.add(&database.merge(&lines)?);
    Ok(report)
}

fn rows(
    source: &Source,
    names: &mut BTreeMap<String, String>,
) -> Result<Vec<DatabaseRow>, FleetError> {
    let (survey, record) = source.read()?;
    let (id, name) = (survey.host.id.clone(), survey.host.name.clone());
    let first = names.entry(id.clone()).or_insert_with(|| name.clone());
    if *first != name {
        let (path, first) = (source.path().to_owned(), first.clone());
        return Err(FleetError::SameIdentity { path, first, second: name });
    }
    let document = serde_json::to_value(&survey)
        .map_err(|error| FleetError::Answer(format!("a survey that cannot be written: {error}")))?;
    let mut rows = vec![("survey", document)];
    if source.has_record() {
        rows.extend(record::rows(&record, &id)?);
    }
    Ok(rows)
}

/// Returns a line for COPY in text format. PostgreSQL's jsonb has no NUL, nor has any Linux name.
fn line(kind: &str, json: &str) -> String {
    let text = json.replace("\\u0000", "\\ufffd").replace('\\', "\\\\");
    format!("{kind}\t{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_escapes_and_has_no_nul() {
        assert_eq!(
            line("run", r#"{"a":"b\"c\u0000\n"}"#),
            "run\t{\"a\":\"b\\\\\"c\\\\ufffd\\\\n\"}\n"
        );
    }
}
