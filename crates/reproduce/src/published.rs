//! The transcribed tables: `data/published-tables.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::ReproduceError;

/// The transcription; every cell was checked against its source.
const TEXT: &str = include_str!("../data/published-tables.json");

static TABLES: LazyLock<Result<Published, String>> =
    LazyLock::new(|| serde_json::from_str(TEXT).map_err(|error| error.to_string()));

#[derive(Debug, Deserialize)]
pub struct Published {
    /// Sources, by the key that tables refer to.
    pub sources: BTreeMap<String, String>,
    pub tables: Vec<PublishedTable>,
}

#[derive(Debug, Deserialize)]
pub struct PublishedTable {
    /// Name in the transcription.
    pub id: String,
    pub source: String,
    pub title: String,
    #[serde(default)]
    pub columns: Vec<String>,
    /// Rows; a cell is a number, a text or empty.
    #[serde(default)]
    pub rows: Vec<Vec<Value>>,
}

impl Published {
    /// Returns all tables.
    ///
    /// # Errors
    ///
    /// If the embedded file is invalid, which a test excludes.
    pub fn all() -> Result<&'static Self, ReproduceError> {
        TABLES.as_ref().map_err(|problem| ReproduceError::Data { problem: problem.clone() })
    }

    /// Returns the table with this name in the transcription, and its source.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn table(id: &str) -> Result<(&'static PublishedTable, &'static str), ReproduceError> {
        let all = Self::all()?;
        let table = all.tables.iter().find(|table| table.id == id);
        let table = table.ok_or_else(|| ReproduceError::Data { problem: format!("no {id}") })?;
        let source = all.sources.get(&table.source).map_or("", String::as_str);
        Ok((table, source))
    }
}

impl PublishedTable {
    /// Returns pairs of setting and figure, in the order of the page, for rows with both.
    ///
    /// # Errors
    ///
    /// If there is no such column.
    pub fn pairs(&self, setting: &str, figure: &str) -> Result<Vec<(f64, f64)>, ReproduceError> {
        let (setting, figure) = (self.column(setting)?, self.column(figure)?);
        let pair =
            |row: &Vec<Value>| Some((row.get(setting)?.as_f64()?, row.get(figure)?.as_f64()?));
        Ok(self.rows.iter().filter_map(pair).collect())
    }

    /// Returns the figure of a column in a row, counted from 0.
    ///
    /// # Errors
    ///
    /// If the cell has no number.
    pub fn figure(&self, row: usize, column: &str) -> Result<f64, ReproduceError> {
        let place = self.column(column)?;
        let figure = self.rows.get(row).and_then(|row| row.get(place)).and_then(Value::as_f64);
        figure.ok_or_else(|| self.lacks(&format!("a number in row {row} of {column:?}")))
    }

    fn column(&self, name: &str) -> Result<usize, ReproduceError> {
        let place = self.columns.iter().position(|column| column == name);
        place.ok_or_else(|| self.lacks(&format!("the column {name:?}")))
    }

    fn lacks(&self, what: &str) -> ReproduceError {
        ReproduceError::Data { problem: format!("{} has not {what}", self.id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transcription_can_be_read_and_names_its_sources() {
        let all = Published::all().unwrap();
        assert_eq!(all.tables.len(), 15);
        for table in &all.tables {
            assert!(all.sources.contains_key(&table.source), "{}", table.id);
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}", table.id);
            }
        }
    }

    #[test]
    fn cells_without_a_figure_are_left_out() {
        let (table, source) = Published::table("carey-perc6-ext3-full").unwrap();
        assert!(source.contains("2008"));
        let one = table.pairs("readahead_sectors", "rate_1_reader").unwrap();
        assert_eq!(one.len(), 5);
        assert_eq!(table.figure(0, "rate_8_readers").unwrap(), 311.0);
        assert!(table.pairs("readahead_sectors", "rate_9_readers").is_err());
        assert!(table.figure(3, "rate_1_reader").is_err());
        assert!(Published::table("carey-zfs").is_err());
    }
}
