//! The process that serves a virtual disk.

use std::ffi::OsString;

use crate::error::VdiskError;

/// The body of the hidden verb `foreread vdisk serve`: serves one disk until it is unmounted or
/// its creator is gone. `args` are those that follow [`ServerCommand::args`].
///
/// [`ServerCommand::args`]: crate::ServerCommand
pub fn serve_main(args: impl IntoIterator<Item = OsString>) -> Result<(), VdiskError> {
    todo!()
}
