//! The machine, read-only: block devices, bdis, mounts, limits.
