//! What a study looks like: HTML, terminal table and plot, JSON, CSV, Markdown.
//!
//! All formats show the same [`Findings`], and none of them works anything out: figures and
//! verdicts come from [`study::analyse`]. What was not measured is left out, never shown as a
//! number. Names that come from outside (paths, workloads, errors) pass through [`clean`] on
//! their way into a terminal, a spreadsheet or a web page.

mod again;
mod answer;
mod calibration;
mod check;
pub mod clean;
mod closeup;
mod compare;
mod csv;
mod doctor;
mod engines;
mod factors;
mod findings;
mod gallery;
mod html;
mod json;
mod limits;
mod markdown;
mod names;
mod number;
mod parquet;
mod plot;
mod presets;
mod reproduction;
mod runs;
mod shade;
mod table;
mod terminal;
mod trace;
mod tradeoff;
mod unit;
mod verdict;
mod watch;

pub use crate::csv::write_csv;
pub use answer::{answer, answer_json, answer_markdown};
pub use calibration::{Calibration, CalibrationDocument, calibration, calibration_json};
pub use check::{CheckDocument, check_json, check_junit, check_text};
pub use closeup::Closeup;
pub use compare::{
    ComparedDocument, Pairing, compare_csv, compare_json, compare_markdown, compare_terminal,
};
pub use doctor::{Doctor, DoctorDocument, doctor, doctor_json, storage_name};
pub use findings::{Findings, Named};
pub use gallery::gallery;
pub use html::{Exhibit, html, index_html, served_html};
pub use json::{Document, SCHEMA_VERSION, json};
pub use markdown::markdown;
pub use parquet::write_parquet;
pub use presets::{NameOf, Presets, PresetsDocument, presets_json, presets_text};
pub use reproduction::{
    Reproductions, reproduction, reproduction_markdown, reproductions_json, reproductions_summary,
};
pub use runs::{RunList, runs_csv, runs_json, runs_markdown, runs_table};
pub use terminal::{Look, terminal};
pub use trace::trace_json;
pub use verdict::{Line, verdict};
pub use watch::{Cells, device_cells, stream_cells, watch_text};
