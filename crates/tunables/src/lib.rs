//! Tunables: read, check, write, verify, undo; the journal and its guard.
