//! The supported report formats.

use super::report::{ParsedReport, ResultError};
use super::{bonnie, elbencho, fio, ioping, iozone, sysbench};

/// A program whose reports can be parsed, in any of its formats.
pub struct Form {
    pub name: &'static str,
    pub about: &'static str,
    looks: fn(&str) -> bool,
    read: fn(&str) -> Result<Vec<ParsedReport>, ResultError>,
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Form {
    /// Parses all reports in a text, in order.
    pub fn read(&self, text: &str) -> Result<Vec<ParsedReport>, ResultError> {
        (self.read)(text)
    }
}

pub static FORMS: &[Form] = &[
    Form {
        name: "bonnie++",
        about: "text of 1.9x and 2.x, pasted or not, and CSV",
        looks: bonnie::looks,
        read: bonnie::read,
    },
    Form {
        name: "iozone",
        about: "the table of sizes and record lengths, and the Excel report",
        looks: iozone::looks,
        read: iozone::read,
    },
    Form {
        name: "ioping",
        about: "statistics, and the line of numbers that -B prints",
        looks: ioping::looks,
        read: ioping::read,
    },
    Form {
        name: "sysbench",
        about: "fileio, versions 0.4 to 1.0",
        looks: sysbench::looks,
        read: sysbench::read,
    },
    Form {
        name: "elbencho",
        about: "CSV (--csvfile)",
        looks: elbencho::looks,
        read: elbencho::read,
    },
    Form { name: "fio", about: "JSON (--output-format=json)", looks: fio::looks, read: fio::read },
];

pub fn detect(text: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| (form.looks)(text))
}

pub fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}
