//! Published recommendations that apply to a host, and their contradictions.

mod applying;
mod comparison;
mod version;

pub use applying::running;
pub use comparison::{Comparison, Contradiction, Position, compare, contradictions};
