//! Errors as exceptions, with the words of the binary.

use std::error::Error;

use pyo3::prelude::*;
use units::{Classified, ErrorKind};

/// The message and its causes in one line, as the binary prints them.
fn message(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// The exception of the class that is for this kind of error.
pub fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py.import("foreread_sim._errors").and_then(|module| module.getattr(class));
    match made.and_then(|class| class.call1((message,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

pub fn raised(py: Python<'_>, error: &impl Classified) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Usage => "UsageError",
        ErrorKind::NotPermitted => "NotPermittedError",
        _ => "ForereadError",
    };
    exception(py, class, message(error))
}

pub fn usage(py: Python<'_>, message: impl ToString) -> PyErr {
    exception(py, "UsageError", message.to_string())
}
