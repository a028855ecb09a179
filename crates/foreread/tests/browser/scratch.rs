//! A scratch directory with runs in it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::program::{foreread_in, printed};

/// A directory, and the program that runs in it.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Returns the program, to be run in this directory.
    pub fn command(&self) -> Command {
        let mut command = foreread_in(self.0.path());
        command.current_dir(self.0.path());
        command
    }

    /// Runs the program and returns its output.
    #[track_caller]
    pub fn foreread(&self, words: &[&str]) -> String {
        printed(&self.command().args(words).output().unwrap())
    }

    /// Creates run 1: a hundred trials of a simulated disk.
    pub fn hundred_trials(&self) {
        let vary = "read_ahead=4K,128K,512K,2M,8M";
        let study = "sweep sim:hdd-2008 --repeats 5 --seed 1 -q --vary";
        let words: Vec<&str> = study.split(' ').chain([vary]).collect();
        self.foreread(&words);
    }

    /// Copies the trials of run 1 until there are `copies` of each, in blocks of their own.
    pub fn multiply(&self, copies: u32) {
        let store = rusqlite::Connection::open(self.path("state").join("runs.sqlite")).unwrap();
        let count = |what: &str| -> u32 {
            let sql = format!("SELECT max({what}) + 1 FROM trial WHERE run = 1");
            store.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        let (trials, blocks) = (count("number"), count("block"));
        let sql = "INSERT INTO trial SELECT run, number + ?1, block + ?2, workload, settings, \
                   started_unix_s + ?1, status, disturbances, record FROM trial \
                   WHERE run = 1 AND number < ?3";
        store.execute_batch("BEGIN").unwrap();
        for copy in 1..copies {
            store.execute(sql, [copy * trials, copy * blocks, trials]).unwrap();
        }
        store.execute_batch("COMMIT").unwrap();
    }

    /// Writes a report of the tables published in 2008: ext3 and XFS in one chart.
    pub fn published_report(&self) -> PathBuf {
        self.file("published.json", super::PUBLISHED);
        let tables = "carey-perc6-ext3-full,carey-perc6-xfs-front10";
        self.foreread(&["import", "published.json", "--current", "256s", "--table", tables]);
        let runs = self.foreread(&["runs", "--json"]);
        let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
        let last = runs["runs"][0]["run"].as_i64().unwrap();
        let (ext3, xfs) = (format!("{}=ext3", last - 1), format!("{last}=XFS"));
        self.foreread(&["report", &ext3, &xfs, "-o", "published.html"]);
        self.path("published.html")
    }

    /// Writes a report of a small simulated study, with its JSON next to it. The study runs once
    /// for all tests; each test gets copies of the files, so that no directory outlives its test.
    pub fn simulated_report(&self) -> PathBuf {
        static REPORT: OnceLock<[String; 2]> = OnceLock::new();
        let [html, json] = REPORT.get_or_init(|| {
            let scratch = Self::new();
            let vary = "read_ahead=4K,128K,512K,2M,8M";
            let study = "sweep sim:hdd-2008 --repeats 3 --seed 1 -q --vary";
            let words: Vec<&str> = study.split(' ').chain([vary]).collect();
            scratch.foreread(&words);
            scratch.foreread(&["report", "1", "-o", "report.html"]);
            let html = std::fs::read_to_string(scratch.path("report.html")).unwrap();
            [html, scratch.foreread(&["runs", "show", "1", "--json"])]
        });
        self.file("report.html", html);
        self.file("report.json", json);
        self.path("report.html")
    }
}
