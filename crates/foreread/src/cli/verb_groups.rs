//! Lists the verbs of `foreread --help` under headings, which clap does not support.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

/// Headings in the order of the help, each with its verbs.
const GROUPS: &[(&str, &[&str])] = &[
    ("Look", &["doctor", "check", "presets", "fleet"]),
    (
        "Measure",
        &["tune", "sweep", "experiment", "runs", "report", "compare", "serve", "import", "export"],
    ),
    ("Set", &["apply", "persist", "verify", "rollback"]),
    ("Live", &["watch", "profile", "auto", "run"]),
    ("Simulate", &["sim", "models", "vdisk", "calibrate", "trace", "workloads", "reproduce"]),
    ("More", &["demo", "info", "completions", "help"]),
];

/// Returns the help of the whole program, as a template for clap.
pub fn help_template(command: &Command) -> StyledStr {
    let style = command.get_styles();
    let (header, verb) = (style.get_header(), style.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        let _ = write!(text, "\n{header}{heading}:{header:#}\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {verb}{name:<11}{verb:#}  {about}");
        }
    }
    let _ = write!(text, "\n{header}Options of every verb:{header:#}\n{{options}}{{after-help}}");
    text.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Arg;

    use super::super::invocation::command;
    use super::*;

    #[test]
    fn each_verb_has_one_heading_and_one_line() {
        let command = command();
        let mut listed = BTreeSet::new();
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(listed.insert(*name), "{name} is listed twice");
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.expect("a verb with a description").to_string();
            assert!(about.chars().count() <= 67 && !about.contains('\n'), "{name}: {about}");
        }
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(listed.contains(verb.get_name()), "{} has no heading", verb.get_name());
        }
    }

    #[test]
    fn n_is_the_dry_run_of_every_verb_that_has_it() {
        fn check(command: &Command) {
            let is_n =
                |arg: &&Arg| arg.get_short() == Some('n') || arg.get_long() == Some("dry-run");
            for arg in command.get_arguments().filter(is_n) {
                assert_eq!((arg.get_short(), arg.get_long()), (Some('n'), Some("dry-run")));
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let start = "Change nothing; print what would be ";
                assert!(help.starts_with(start), "{}: {help}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }
}
