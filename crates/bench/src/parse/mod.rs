//! What other people's benchmarks print, read into figures with units: bonnie++, iozone, ioping,
//! sysbench fileio, elbencho and fio.
//!
//! [`detect`] says which of them a text comes from, [`Form::read`] reads it. Text that was pasted
//! into a page may have anything around it. A figure keeps the unit that its tool gives it, and
//! what a tool could not measure is no number: `+++++` of bonnie++ is
//! [`FigureValue::TooFast`], never zero.

mod bonnie;
mod elbencho;
mod fio;
mod forms;
mod ioping;
mod iozone;
mod report;
mod sysbench;

pub use forms::{FORMS, Form, detect, form};
pub use report::{FigureValue, ParsedReport, ResultError, ToolFigure, Unit};
