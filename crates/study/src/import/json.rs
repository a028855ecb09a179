//! Parses tables from JSON: `{"tables": [{"id", "title", "columns": ["readahead_sectors",
//! "rate_8_readers", …], "rows": [[49152, 311], …], "conditions": {…}}, …]}`.

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::{ImportError, ImportTable, RateUnit, TableColumn, Tables, setting_unit};

#[derive(Deserialize)]
struct File {
    tables: Vec<Entry>,
    #[serde(default)]
    sources: Map<String, Json>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<Json>>,
    #[serde(flatten)]
    about: Map<String, Json>,
}

pub(super) fn tables(text: &str, unit: Option<RateUnit>) -> Result<Tables, ImportError> {
    let file: File =
        serde_json::from_str(text).map_err(|error| ImportError::Format(error.to_string()))?;
    let mut found = Tables::default();
    for mut entry in file.tables {
        if let Some(source) = file.sources.get(&entry.source) {
            entry.about.insert("source".to_owned(), source.clone());
        }
        match entry.table(unit) {
            Ok(table) => found.tables.push((entry.id, table)),
            Err(error) => found.skipped.push(format!("{}: {error}", entry.id)),
        }
    }
    Ok(found)
}

impl Entry {
    fn table(&self, unit: Option<RateUnit>) -> Result<ImportTable, ImportError> {
        let first = self.columns.first().ok_or(ImportError::Empty)?;
        let kib = setting_unit(first).ok_or_else(|| ImportError::Column {
            column: first.clone(),
            problem: "the first column has to be read-ahead with its unit, as in \
                      readahead_sectors or read_ahead_kib"
                .to_owned(),
        })?;
        let number = |row: usize, column: usize| -> Result<Option<f64>, ImportError> {
            let value = self.rows[row].get(column).unwrap_or(&Json::Null);
            match (value, value.as_f64().filter(|n| n.is_finite() && *n >= 0.0)) {
                (Json::Null, _) => Ok(None),
                (_, Some(number)) => Ok(Some(number)),
                (other, None) => Err(ImportError::Cell {
                    row: row + 1,
                    column: self.columns.get(column).cloned().unwrap_or_default(),
                    text: other.to_string(),
                }),
            }
        };
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in 0..self.rows.len() {
            let size = number(row, 0)?.unwrap_or(0.0);
            let setting = super::setting(size, kib).ok_or_else(|| ImportError::Setting {
                row: row + 1,
                column: self.columns.first().cloned().unwrap_or_default(),
                text: size.to_string(),
            })?;
            rows.push(setting);
        }
        let named = |heading: &String| {
            heading.starts_with("rate_") || RateUnit::of_heading(heading).0.is_some()
        };
        // If no heading is marked as a rate, all columns are rates, as in CSV.
        let all = !self.columns.iter().skip(1).any(named);
        let rate = |heading: &String| all || named(heading);
        let said = unit.or_else(|| self.unit_in_words()).unwrap_or_default();
        let mut published = said;
        let mut columns = Vec::new();
        for (at, heading) in self.columns.iter().enumerate().skip(1).filter(|(_, h)| rate(h)) {
            let (own, name) = RateUnit::of_heading(heading);
            published = own.unwrap_or(said);
            let mib = published.mib_s();
            let values: Result<Vec<Option<f64>>, _> =
                (0..rows.len()).map(|row| Ok(number(row, at)?.map(|rate| rate * mib))).collect();
            columns.push(TableColumn::new(name, values?));
        }
        if columns.is_empty() || rows.is_empty() {
            return Err(ImportError::Empty);
        }
        let title = if self.title.is_empty() { self.id.clone() } else { self.title.clone() };
        let (spread, about) = (self.spread(), Json::Object(self.about.clone()));
        Ok(ImportTable { title, rows, columns, spread, published, about })
    }

    /// Returns the unit of the rates that the table states.
    fn unit_in_words(&self) -> Option<RateUnit> {
        let text = |value: Option<&Json>| value.and_then(Json::as_str).map(str::to_owned);
        let printed = text(self.about.get("units").and_then(|units| units.get("rate")));
        let warning = text(self.about.get("unit_warning"));
        RateUnit::in_words(printed.as_deref(), warning.as_deref())
    }

    /// Returns the relative spread that the author states, as in `about +-2 %`.
    fn spread(&self) -> Option<f64> {
        let said = self.about.get("conditions")?.get("repeatability")?.as_str()?;
        let (_, after) = said.split_once("+-").or_else(|| said.split_once('±'))?;
        let (number, _) = after.split_once('%')?;
        let percent: f64 = number.trim().parse().ok()?;
        (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
    }
}
