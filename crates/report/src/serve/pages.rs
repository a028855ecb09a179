//! The pages of a record.

use std::path::PathBuf;

use crate::{ReportInput, RunReport, TrialDetails};
use serde_json::json;
use study::{Analysis, Run, RunId, RunStatus, Store, StoreError};

use super::{PageAddress, Response, Site};

/// The pages of the runs in a record, which is opened read-only.
#[derive(Debug)]
pub struct RunPages {
    pub store: PathBuf,
}

enum Missing {
    Page,
    Record(StoreError),
}

impl From<StoreError> for Missing {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoRun { .. } => Self::Page,
            other => Self::Record(other),
        }
    }
}

impl Site for RunPages {
    fn page(&self, address: &PageAddress) -> Response {
        match self.find(&address.parts()) {
            Ok(response) => response,
            Err(Missing::Page) => Response::not_found(),
            Err(Missing::Record(error)) => Response::unavailable(&error.to_string()),
        }
    }
}

impl RunPages {
    fn find(&self, parts: &[&str]) -> Result<Response, Missing> {
        match parts {
            [] => self.index(),
            ["run", word] => self.run(word),
            ["run", word, "state"] => self.state(word),
            ["compare", words] => self.compare(words),
            _ => Err(Missing::Page),
        }
    }

    fn open(&self) -> Result<Option<Store>, Missing> {
        Ok(Store::open_read_only(&self.store)?)
    }

    fn index(&self) -> Result<Response, Missing> {
        let runs = self.open()?.map_or_else(|| Ok(Vec::new()), |store| store.runs())?;
        Ok(Response::html(crate::index_html(&runs)))
    }

    fn load(&self, word: &str) -> Result<(Run, Analysis, TrialDetails), Missing> {
        let store = self.open()?.ok_or(Missing::Page)?;
        let id = named(word, &store)?;
        let mut trial_details = TrialDetails::default();
        let run = store.load_with(id, |trial, record| trial_details.add(trial, record))?;
        let analysis = study::analyse(&run);
        Ok((run, analysis, trial_details))
    }

    /// Returns a run as a page, JSON or CSV, depending on the suffix of its name.
    fn run(&self, word: &str) -> Result<Response, Missing> {
        let (number, kind) = word.split_once('.').unwrap_or((word, "html"));
        let (run, analysis, trial_details) = self.load(number)?;
        let report = RunReport { run: &run, analysis: &analysis };
        match kind {
            "html" => {
                let exhibit = ReportInput {
                    run: &run,
                    analysis: &analysis,
                    trial_details: Some(&trial_details),
                    name: None,
                };
                let live = (run.summary.status == RunStatus::Running)
                    .then(|| format!("/run/{}/state", run.summary.id));
                Ok(Response::html(crate::served_html(&[exhibit], live.as_deref())))
            }
            "json" => {
                let text = serde_json::to_string_pretty(&crate::json(&report));
                Ok(Response::json(text.unwrap_or_default()))
            }
            "csv" => {
                let mut text = Vec::new();
                // Writing to memory cannot fail.
                let _ = crate::write_csv(&report, &mut text);
                Ok(Response::csv(text))
            }
            _ => Err(Missing::Page),
        }
    }

    /// Returns the progress of a run, which a live page polls.
    fn state(&self, word: &str) -> Result<Response, Missing> {
        let store = self.open()?.ok_or(Missing::Page)?;
        let id = named(word, &store)?;
        let runs = store.runs()?;
        let run = runs.iter().find(|run| run.id == id).ok_or(Missing::Page)?;
        let state = json!({ "run": id, "status": run.status, "trials": run.trials });
        Ok(Response::json(state.to_string()))
    }

    fn compare(&self, words: &str) -> Result<Response, Missing> {
        let loaded =
            words.split(',').map(|word| self.load(word)).collect::<Result<Vec<_>, Missing>>()?;
        if !(2..=16).contains(&loaded.len()) {
            return Err(Missing::Page);
        }
        let exhibits: Vec<ReportInput<'_>> = loaded
            .iter()
            .map(|(run, analysis, trial_details)| ReportInput {
                run,
                analysis,
                trial_details: Some(trial_details),
                name: None,
            })
            .collect();
        Ok(Response::html(crate::served_html(&exhibits, None)))
    }
}

/// Returns the run for a word: a number, or `last`, as on the command line.
fn named(word: &str, store: &Store) -> Result<RunId, Missing> {
    if word == "last" {
        return store.runs()?.first().map(|run| run.id).ok_or(Missing::Page);
    }
    word.parse().map(RunId).map_err(|_| Missing::Page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "read_ahead_kib,seq-1\n4,10\n128,20\n1024,30\n";

    fn pages() -> (tempfile::TempDir, RunPages) {
        let dir = tempfile::tempdir().expect("a directory");
        let store = dir.path().join("runs.sqlite");
        let mut open = Store::open(&store).expect("a record");
        let (_, table) = study::tables(TABLE, "disk", None).expect("a table").tables.remove(0);
        study::import(&mut open, &table, None).expect("a run");
        study::import(&mut open, &table, None).expect("another");
        (dir, RunPages { store })
    }

    fn get(pages: &RunPages, path: &str) -> (u16, String) {
        let response = pages.page(&PageAddress::new(path));
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    }

    #[test]
    fn every_page_is_there_and_nothing_else() {
        let (_dir, pages) = pages();
        for (path, holds) in [
            ("/", "/run/2"),
            ("/run/1", "disk"),
            ("/run/1.json", "\"schema_version\""),
            ("/run/1.csv", "throughput_mib_s_median"),
            ("/run/1/state", "\"trials\":3"),
            ("/compare/1,2", "One picture"),
            ("/run/last", "disk"),
            ("/run/last.json", "\"run\": 2"),
            ("/run/last/state", "\"run\":2"),
            ("/compare/1,last", "One picture"),
        ] {
            let (status, body) = get(&pages, path);
            assert_eq!(status, 200, "{path}: {body}");
            assert!(body.contains(holds), "{path}");
        }
        for path in ["/run/9", "/run/x", "/run/1.exe", "/compare/1", "/../etc/passwd", "/run"] {
            assert_eq!(get(&pages, path).0, 404, "{path}");
        }
    }

    #[test]
    fn reading_changes_nothing() {
        let (dir, pages) = pages();
        let bytes = || std::fs::read(dir.path().join("runs.sqlite")).expect("the record");
        let before = bytes();
        for path in ["/", "/run/1", "/run/1/state", "/compare/1,2"] {
            get(&pages, path);
        }
        assert_eq!(bytes(), before);
    }

    #[test]
    fn a_record_that_is_not_there_yet_has_no_runs() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = dir.path().join("none.sqlite");
        let pages = RunPages { store: store.clone() };
        assert_eq!(get(&pages, "/").0, 200);
        assert!(!store.exists(), "looking makes nothing");
    }
}
