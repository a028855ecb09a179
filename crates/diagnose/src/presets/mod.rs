//! What vendors have published about read-ahead, which of it is about what runs here, and where it
//! contradicts itself or the present value. Advice, never applied by itself.

mod advice;
mod choose;
mod data;
mod here;
mod survey;
mod version;

pub use advice::Advice;
pub use choose::{ChoiceError, Chosen, choose};
pub use data::{COLLECTED, Group, Preset, Sectors, all, groups, named};
pub use here::{Applies, Where, running};
pub use survey::{Comparison, Contradiction, Standing, compare, contradictions};
