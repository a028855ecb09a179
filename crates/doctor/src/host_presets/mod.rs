//! Which published advice is about what runs on a host, and where it contradicts itself or the
//! present value.

mod applying;
mod comparison;
mod version;

pub use applying::running;
pub use comparison::{Comparison, Contradiction, Position, compare, contradictions};
