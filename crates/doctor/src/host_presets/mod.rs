//! Published recommendations that apply to a host, and contradictions between them.

mod applying;
mod comparison;
mod version;

pub use applying::running;
pub use comparison::{Comparison, Contradiction, Position, compare, contradictions};
