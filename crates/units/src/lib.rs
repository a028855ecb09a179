//! Units as types that do not mix: [`Bytes`], [`Sectors`], [`Pages`], [`Kib`], [`Nanos`] and
//! [`BytesPerSecond`].
//!
//! Read-ahead is given in KiB by sysfs, in 512-byte sectors by `blockdev`, in pages by the kernel
//! and in bytes by NFS; mistaking one for another is the most common error. Therefore a size
//! that crosses a function boundary has a type, the name of a conversion says how it rounds, and
//! text without a unit is refused. [`text`] helps with other text that people type.

mod amount;
mod error_kind;
mod rate;
mod size;
pub mod text;
mod time;
mod window;

pub use error_kind::{Classified, ErrorKind};
pub use rate::BytesPerSecond;
pub use size::{Bytes, Kib, PageSize, Pages, Rounded, SECTOR_BYTES, Sectors};
pub use text::ParseUnitError;
pub use time::Nanos;
pub use window::{WINDOWS_PER_STREAM, largest_window, read_ahead_memory};
