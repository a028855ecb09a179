//! Command lines drawn from the grammar of all verbs and options, valid and invalid, in a sandbox
//! of namespaces that keeps them from the machine. docs/testing.md says how to ask for more.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a skipped test says so, others may panic

mod drawn;
mod program;

use drawn::sandbox::Place;

#[test]
fn drawn_command_lines_end_as_documented() {
    drawn::run("drawn_command_lines_end_as_documented", &Place::nowhere());
}
