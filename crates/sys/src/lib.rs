//! Every raw system call and ioctl that foreread makes, behind safe functions.

#![allow(unsafe_code)]

pub mod loopdev;
pub mod mounts;
pub mod realtime;
pub mod sparse;
