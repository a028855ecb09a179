//! Recommendations that vendors publish. foreread never applies them automatically.

mod advice;
mod applies;
mod choose;
mod data;

pub use advice::VendorAdvice;
pub use applies::{Applies, AppliesTo};
pub use choose::{ChoiceError, ChosenPreset, choose};
pub use data::{COLLECTED, Group, Sectors, VendorPreset, all, groups, named};
