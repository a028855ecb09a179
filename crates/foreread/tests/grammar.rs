//! Random command lines from the grammar of all verbs and options, valid and invalid, in a sandbox
//! of namespaces that protects the machine. docs/testing.md explains how to run more of them.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test prints skips, and may panic

mod drawn;
mod program;

use drawn::sandbox::Place;

#[test]
fn drawn_command_lines_end_as_documented() {
    drawn::run("drawn_command_lines_end_as_documented", &Place::nowhere());
}
