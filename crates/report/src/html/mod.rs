//! A study as one HTML file: opened from disk or mailed, without network, by whoever likes.
//!
//! What is to be read (sentences, tables, provenance) is HTML and needs no script. Charts are drawn
//! by the page's own script from the data inside the page ([`data`]), which come from the same
//! analysis as every other format.

mod assets;
mod compared;
mod data;
mod derived;
mod effects;
mod heat;
mod index;
mod page;
mod provenance;
mod sections;
mod top;

use study::{Analysis, Run};

use crate::closeup::Closeup;
use crate::findings::{Findings, Named};

/// A run with all that a page can show of it.
#[derive(Clone, Copy, Debug)]
pub struct Exhibit<'a> {
    /// The record.
    pub run: &'a Run,
    /// What it shows.
    pub analysis: &'a Analysis,
    /// What lies behind it, if there is more than figures.
    pub closeup: Option<&'a Closeup>,
    /// What it is to be called beside others, if whoever asks has a name for it.
    pub name: Option<&'a str>,
}

impl<'a> Exhibit<'a> {
    fn named(&self) -> Named<'a> {
        Named { findings: self.findings(), name: self.name }
    }

    pub(crate) fn findings(&self) -> Findings<'a> {
        Findings { run: self.run, analysis: self.analysis }
    }
}

pub use index::index_html;
pub use page::{html, served_html};
