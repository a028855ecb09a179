//! Every raw system call and ioctl that foreread makes, behind safe functions.

#![allow(unsafe_code)]

pub mod cachestat;
pub mod extents;
pub mod hold;
pub mod input;
pub mod lock;
pub mod loopdev;
pub mod mapping;
pub mod mounts;
pub mod process;
pub mod readahead;
pub mod realtime;
mod sigbus;
pub mod sparse;
pub mod thread_usage;
