//! Values of configuration files, as defaults of options.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Option values by verb and option; those of a later file replace those of an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>);

impl Values {
    pub fn set(&mut self, verb: &[String], option: &str, words: Vec<String>) {
        self.0.entry(verb.to_vec()).or_default().insert(option.to_owned(), words);
    }

    /// Removes a global option, because the environment sets it.
    pub fn forget(&mut self, option: &str) {
        if let Some(top) = self.0.get_mut([].as_slice()) {
            top.remove(option);
        }
    }

    /// Removes values that conflict with the command line: `--csv` there replaces `json = true`
    /// here.
    pub fn yield_to(&mut self, command: &Command, matches: &ArgMatches) {
        let (mut command, mut matches, mut path) = (command, matches, Vec::new());
        loop {
            if let Some(options) = self.0.get_mut(&path) {
                options.retain(|option, _| !is_displaced(command, matches, option));
            }
            let Some((name, below)) = matches.subcommand() else { return };
            let Some(verb) = command.find_subcommand(name) else { return };
            (command, matches) = (verb, below);
            path.push(name.to_owned());
        }
    }

    /// Returns the command with these values as defaults.
    pub fn apply(&self, mut command: Command) -> Command {
        for (verb, options) in &self.0 {
            command = defaults(command, verb, options);
        }
        command
    }
}

fn defaults(command: Command, verb: &[String], options: &BTreeMap<String, Vec<String>>) -> Command {
    match verb.split_first() {
        Some((first, rest)) => {
            command.mut_subcommand(first, |below| defaults(below, rest, options))
        }
        None => options.iter().fold(command, |command, (option, words)| {
            let words = words.clone();
            command.mut_arg(option, |arg| arg.required(false).default_values(words))
        }),
    }
}

/// Returns whether the command line or the environment sets a conflicting option.
fn is_displaced(command: &Command, matches: &ArgMatches, option: &str) -> bool {
    let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == option) else {
        return false;
    };
    let said = |other: &Arg| {
        let source = matches
            .try_contains_id(other.get_id().as_str())
            .is_ok()
            .then(|| matches.value_source(other.get_id().as_str()));
        matches!(source.flatten(), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    command.get_arguments().filter(|other| other.get_id() != option && said(other)).any(|other| {
        let excludes = |one: &Arg, two: &Arg| {
            command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == two.get_id())
        };
        excludes(arg, other) || excludes(other, arg)
    })
}
