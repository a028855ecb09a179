//! A study as one HTML file, which can be opened from disk or mailed and needs no network.
//!
//! Text, tables and provenance are HTML and need no script. Charts are drawn by the page's own
//! script from data in the page ([`data`]), which comes from the same analysis as every other
//! format.

mod assets;
mod compared;
mod data;
mod derived;
mod effects;
mod heat;
mod index;
mod page;
mod profile_data;
mod profile_page;
mod provenance;
mod sections;
mod top;

use study::{Analysis, Run};

use crate::run_report::{Named, RunReport};
use crate::trial_details::TrialDetails;

/// A run, with everything that a page can show of it.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    pub run: &'a Run,
    pub analysis: &'a Analysis,
    /// The details of its trials, if there are any.
    pub trial_details: Option<&'a TrialDetails>,
    /// Its name among several runs, if it has one.
    pub name: Option<&'a str>,
}

impl<'a> ReportInput<'a> {
    fn named(&self) -> Named<'a> {
        Named { report: self.report(), name: self.name }
    }

    pub(crate) fn report(&self) -> RunReport<'a> {
        RunReport { run: self.run, analysis: self.analysis }
    }
}

pub use index::index_html;
pub use page::{html, served_html, tables_html};
pub use profile_page::profile_html;
