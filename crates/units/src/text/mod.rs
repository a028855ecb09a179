//! Text that people type: amounts with units, misspelt names, positions of errors; and text that
//! people or monitoring read.

mod amount;
mod counted;
mod exposition;
mod location;
mod plain;
mod serde_message;
mod settings;
mod suggest;

pub use amount::ParseUnitError;
pub(crate) use amount::split_number;
pub use counted::counted;
pub use exposition::{Exposition, MetricKind, MetricSeries};
pub use location::SourceLocation;
pub use plain::plain;
pub use serde_message::explain_serde_message;
pub use settings::{NamedSettings, SettingError, parse_amount, parse_choice, parse_number};
pub use suggest::{hint, nearest};
