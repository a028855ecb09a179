//! Parses tables from CSV. The first line names the columns, one of which is read-ahead with its
//! unit. A column `filesystem` (or `label`) splits the file into one table for each of its values.

use std::collections::BTreeMap;

use serde_json::json;
use units::Kib;

use super::{ImportError, ImportTable, RateUnit, TableColumn, Tables, setting_unit};

const LABELS: [&str; 4] = ["filesystem", "fs", "label", "host"];

struct Line {
    kib: Kib,
    rates: Vec<Option<f64>>,
}

pub(super) fn tables(
    text: &str,
    name: &str,
    said: Option<RateUnit>,
) -> Result<Tables, ImportError> {
    let mut reader = ::csv::ReaderBuilder::new()
        .trim(::csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let bad = |error: ::csv::Error| ImportError::Format(error.to_string());
    let headings: Vec<String> = reader.headers().map_err(bad)?.iter().map(str::to_owned).collect();
    if headings.iter().all(String::is_empty) {
        return Err(ImportError::Empty);
    }
    let (setting, unit) = headings
        .iter()
        .enumerate()
        .find_map(|(at, heading)| Some((at, setting_unit(heading)?)))
        .ok_or_else(|| ImportError::Column {
            column: headings.join(", "),
            problem: "none of the columns is read-ahead with its unit: name one readahead_sectors \
                      or read_ahead_kib"
                .to_owned(),
        })?;
    let label = headings.iter().position(|h| LABELS.contains(&h.to_ascii_lowercase().as_str()));
    let rates: Vec<usize> =
        (0..headings.len()).filter(|at| *at != setting && Some(*at) != label).collect();
    let mut groups: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(bad)?;
        let number = |at: usize| number(&record, index + 1, at, &headings[at]);
        let Some(size) = number(setting)? else { continue };
        let kib = super::setting(size, unit).ok_or_else(|| ImportError::Setting {
            row: index + 1,
            column: headings[setting].clone(),
            text: record.get(setting).unwrap_or("").to_owned(),
        })?;
        let rates = rates.iter().map(|at| number(*at)).collect::<Result<_, _>>()?;
        let label = label.and_then(|at| record.get(at)).unwrap_or("").to_owned();
        groups.entry(label).or_default().push(Line { kib, rates });
    }
    let last = rates.last().and_then(|at| RateUnit::of_heading(&headings[*at]).0);
    let published = last.or(said).unwrap_or_default();
    let table = |(label, lines): (String, Vec<Line>)| {
        let columns = rates.iter().enumerate().map(|(place, at)| {
            let (own, heading) = RateUnit::of_heading(&headings[*at]);
            let mib = own.or(said).unwrap_or_default().mib_s();
            let values = lines.iter().map(|line| line.rates[place].map(|rate| rate * mib));
            TableColumn::new(heading, values.collect())
        });
        let title = if label.is_empty() { name.to_owned() } else { format!("{name}, {label}") };
        let rows = lines.iter().map(|line| line.kib).collect();
        let about = json!({ "file": name });
        let columns = columns.collect();
        let table = ImportTable { title, rows, columns, spread: None, published, about };
        (if label.is_empty() { name.to_owned() } else { label }, table)
    };
    if rates.is_empty() || groups.is_empty() {
        return Err(ImportError::Empty);
    }
    Ok(Tables { tables: groups.into_iter().map(table).collect(), skipped: Vec::new() })
}

/// Parses a number; `None` if the field is empty or a dash.
fn number(
    record: &::csv::StringRecord,
    row: usize,
    at: usize,
    column: &str,
) -> Result<Option<f64>, ImportError> {
    let text = record.get(at).unwrap_or("");
    if matches!(text, "" | "-" | "–" | "null") {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
        _ => {
            let (column, text) = (column.to_owned(), text.to_owned());
            Err(ImportError::Cell { row, column, text })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_filesystems_makes_a_table_of_each() {
        let text = "filesystem,readahead_sectors,8 readers,1 reader\n\
                    ext3,256,81,300\next3,1024,162,302\nxfs,256,88,\n";
        let found = tables(text, "perc6", None).unwrap().tables;
        let titles: Vec<&str> = found.iter().map(|(_, table)| table.title.as_str()).collect();
        assert_eq!(titles, ["perc6, ext3", "perc6, xfs"]);
        let (_, ext3) = &found[0];
        assert_eq!(ext3.rows, [Kib::new(128), Kib::new(512)]);
        assert_eq!(ext3.columns[0].workload, "seq-8");
        assert_eq!(ext3.columns[0].mib_s, [Some(81.0), Some(162.0)]);
        assert_eq!(found[1].1.columns[1].mib_s, [None]);
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let error = |text: &str| tables(text, "x", None).unwrap_err().to_string();
        assert!(error("read_ahead,seq-1\n128,5\n").contains("read-ahead with its unit"));
        assert!(error("read_ahead_kib,seq-1\n128,fast\n").contains("row 1, column \"seq-1\""));
        assert!(error("read_ahead_kib,seq-1\n128,-1\n").contains("0 or more"));
        let large = "99999999999999999999";
        for heading in ["read_ahead_kib", "readahead_sectors", "read_ahead_mib"] {
            let message = error(&format!("{heading},seq-1\n128,5\n{large},5\n"));
            assert!(message.contains("row 2") && message.contains(large), "{message}");
        }
    }
}
