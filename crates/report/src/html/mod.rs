//! A study as one HTML file, which can be opened from disk or mailed and needs no network.
//!
//! Text, tables and provenance are HTML and need no script. The page's own script draws charts from
//! data in the page ([`data`]), which comes from the same analysis as every other format.

mod assets;
mod compared;
mod data;
mod derived;
mod effects;
mod heat;
mod index;
mod page;
mod parts;
mod profile_data;
mod profile_page;
mod provenance;
mod sections;
mod top;

use study::{Analysis, Run};

use crate::run_report::{Named, RunReport};
use crate::trial_details::TrialDetails;

/// A run, with all data that a page can show.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    pub run: &'a Run,
    pub analysis: &'a Analysis,
    /// Details of the trials, if available.
    pub trial_details: Option<&'a TrialDetails>,
    /// Name among several runs; `None` to derive it from the target.
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
pub use parts::{Heading, section, table};
pub use profile_page::profile_html;
