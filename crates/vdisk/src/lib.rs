//! A virtual disk: a FUSE file served by a device model, under a loop device and a filesystem.
