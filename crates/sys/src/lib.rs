//! Safe wrappers of all raw system calls and ioctls.

#![allow(unsafe_code)]

pub mod advice_filter;
pub mod cachestat;
pub mod child;
pub mod extents;
pub mod file_handle;
pub mod hold;
pub mod input;
pub mod lock;
pub mod loopdev;
pub mod mapping;
pub mod mounts;
mod page;
pub mod process;
pub mod program;
pub mod readahead;
pub mod realtime;
pub mod replace;
mod sigbus;
pub mod sparse;
pub mod thread_usage;

pub use page::page_size;
