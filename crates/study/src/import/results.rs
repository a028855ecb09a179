//! Converts benchmark reports of other programs to tables: a row for each report, a column for each
//! throughput. The table's description keeps all other figures.

use bench::parse::{ParsedReport, ResultError};
use serde_json::{Value as Json, json};
use units::Kib;

use super::{ImportError, ImportTable, RateUnit, TableColumn};

/// Parses the output of a known benchmark; `None` if the format is unknown.
pub fn reports(text: &str) -> Option<Result<Vec<ParsedReport>, ResultError>> {
    bench::parse::detect(text).map(|form| form.read(text))
}

/// Returns the table of reports, each measured under the given setting.
pub fn table_of(reports: &[(Kib, ParsedReport)], title: &str) -> Result<ImportTable, ImportError> {
    let mut names: Vec<&str> = Vec::new();
    for figure in reports.iter().flat_map(|(_, report)| &report.figures) {
        if figure.mib_s().is_some() && !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    if names.is_empty() {
        return Err(ImportError::Empty);
    }
    let column = |name: &&str| {
        let rate = |report: &ParsedReport| {
            // A rate and its share of processor time may have the same name.
            report.figures.iter().filter(|figure| figure.name == **name).find_map(|f| f.mib_s())
        };
        let values = reports.iter().map(|(_, report)| rate(report));
        TableColumn::new(&name.replace('_', "-"), values.collect())
    };
    let all: Vec<Json> = reports
        .iter()
        .map(
            |(setting, report)| json!({ "read_ahead_kib": setting.get(), "report": report.json() }),
        )
        .collect();
    Ok(ImportTable {
        title: title.to_owned(),
        rows: reports.iter().map(|(setting, _)| *setting).collect(),
        columns: names.iter().map(column).collect(),
        spread: None,
        published: RateUnit::default(),
        about: json!({ "reports": all }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("../../tests/data/bonnie-2010.txt");

    #[test]
    fn the_runs_of_2010_become_a_table() {
        let reports = reports(RUN).unwrap().unwrap();
        let settings = [512, 2048, 4096].map(Kib::new);
        let rows: Vec<(Kib, ParsedReport)> = settings.into_iter().zip(reports).collect();
        let table = table_of(&rows, "ufs").unwrap();
        let input = table.columns.iter().find(|column| column.workload == "block-input").unwrap();
        let kib: Vec<f64> = input.mib_s.iter().map(|rate| rate.unwrap() * 1024.0).collect();
        assert_eq!(kib, [80352.0, 140_117.0, 141_587.0]);
        assert_eq!(table.columns.len(), 5, "seeks a second are no throughput");
        let first = &table.about["reports"][0]["report"]["figures"];
        assert_eq!(first["random_seeks_per_s"], 331.2);
    }

    #[test]
    fn a_text_of_nobody_s_is_none() {
        assert!(reports("hello").is_none());
        assert!(matches!(table_of(&[], "x"), Err(ImportError::Empty)));
    }
}
