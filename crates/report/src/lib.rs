//! Formats for the results of a study: HTML, terminal table and plot, JSON, CSV, Markdown.
//!
//! All formats show the same [`RunReport`] and compute nothing: figures and verdicts come from
//! [`study::analyse`]. Values that were not measured are omitted, never shown as a number. Names
//! from outside (paths, workloads, errors) pass through [`clean`] before they reach a terminal, a
//! spreadsheet or a web page.

mod answer;
mod calibration;
mod check;
pub mod clean;
mod compare;
mod csv;
mod doctor;
mod engines;
mod factors;
mod html;
mod json;
mod limits;
mod markdown;
mod metrics;
mod names;
mod number;
mod parquet;
mod plot;
mod presets;
mod repro_command;
mod reproduction;
mod run_report;
mod runs;
pub mod serve;
mod shade;
mod table;
mod terminal;
mod terminal_plots;
mod terminal_text;
mod trace;
mod tradeoff;
mod trial_details;
mod unit;
mod verdict;
mod verdict_parts;
mod watch;

pub use self::doctor::{DoctorReport, doctor, doctor_json, storage_name};
pub use crate::csv::write_csv;
pub use answer::{answer, answer_json, answer_markdown};
pub use calibration::{CalibrationReport, calibration, calibration_json};
pub use check::{check_json, check_junit, check_text};
pub use compare::{Pairing, compare_csv, compare_json, compare_markdown, compare_terminal};
pub use html::{
    Heading, ReportInput, html, index_html, profile_html, section as section_html, served_html,
    table as table_html, tables_html,
};
pub use json::{Document, SCHEMA_VERSION, Versioned, json};
pub use markdown::markdown;
pub use metrics::{HostMetrics, MAX_HOST_SERIES, host_metrics};
pub use parquet::write_parquet;
pub use presets::{PresetsReport, presets_json, presets_text};
pub use reproduction::{
    reproduction, reproduction_markdown, reproductions_json, reproductions_summary,
};
pub use run_report::{Named, RunReport};
pub use runs::{RunList, runs_csv, runs_json, runs_markdown, runs_table, utc};
pub use terminal::{terminal, terminal_brief};
pub use terminal_plots::terminal_plots;
pub use terminal_text::{TermStyle, plain_grid, wrapped};
pub use trace::{trace_json, trace_verification_json};
pub use trial_details::TrialDetails;
pub use verdict::verdict;
pub use verdict_parts::VerdictLine;
pub use watch::{Cells, device_cells, stream_cells, watch_text};
