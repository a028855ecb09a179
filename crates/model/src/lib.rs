//! Service-time models of disks, flash, volumes and arrays, without a clock.
