//! Every raw system call and ioctl that foreread makes, behind safe functions.
