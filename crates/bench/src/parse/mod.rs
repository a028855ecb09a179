//! Parses the output of benchmarks into figures with units: bonnie++, iozone, ioping, sysbench
//! fileio, elbencho and fio.
//!
//! [`detect`] identifies the program. [`Form::read`] parses the text, which may be surrounded by
//! other text. A figure keeps its program's unit. A figure that the program could not measure is
//! not a number: `+++++` of bonnie++ is [`FigureValue::TooFast`], never zero.

mod bonnie;
mod elbencho;
mod fio;
mod forms;
mod ioping;
mod iozone;
mod report;
mod sysbench;

pub use forms::{FORMS, Form, detect, form};
pub(crate) use report::first_json;
pub use report::{FigureValue, ParsedReport, ResultError, ToolFigure, Unit};
