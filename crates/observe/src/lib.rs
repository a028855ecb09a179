//! What the kernel does, seen from outside: open files with the window that each of them has.
//!
//! The programs in `bpf/` only read. They are compiled when foreread is built and are part of the
//! binary; where each field lies in the running kernel is looked up when they are loaded. A
//! foreread that was built without clang has none, and says so ([`ObserveError::NotBuilt`]).

#![allow(unsafe_code)]

mod error;
mod iterator;
mod object;
mod open_files;
mod record;

pub use error::ObserveError;
pub use open_files::{Census, FileKind, Holder, OpenFile, OpenFileFilter, OpenFileId, open_files};
