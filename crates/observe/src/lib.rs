//! Observes the kernel: open files with their windows ([`Census`]), read-ahead ([`Probes`]), every
//! access to selected files ([`Probes::sample`]), and misses while their readers wait ([`Misses`]).
//!
//! The programs in `bpf/` only read. They are compiled when foreread is built and are part of the
//! binary; the offset of each field in the running kernel is determined at load time. A foreread
//! that was built without clang has no programs, and reports this ([`ObserveError::NotBuilt`]).

#![allow(unsafe_code)]

mod error;
mod event;
mod iterator;
mod kernel_types;
mod misses;
mod object;
mod open_files;
mod probes;
mod profile;
mod profile_event;
mod profile_record;
mod record;
mod samples;
mod self_test;
mod signal;

pub use error::ObserveError;
pub use event::ProbeEvent;
pub use misses::{Miss, Misses};
pub use object::{KernelTypes, built_in};
pub use open_files::{Census, FileKind, Handle, Holder, OpenFile, OpenFileFilter, open_files};
pub use policy::{AccessEvent, EventKind, OpenFileId, Window};
pub use probes::Probes;
pub use profile::{ProfileLosses, ProfileProbes, ProfileScope};
pub use profile_event::{
    AdviceCall, AdviceCallKind, BlockedWait, DeviceRequest, EvictedPages, FileName, InodeId,
    PageEvent, PageEventKind, ProfileEvent, ProfileEventKind, ProfileItem, ProfileStack,
    ReturnedRead, ThreadId, ThreadTime, UringReads, WaitReason,
};
pub use samples::{MAX_SAMPLED_FILES, SAMPLES_PER_FILE};
pub use self_test::{SelfTest, self_test};
pub use signal::{Rung, Signal};
