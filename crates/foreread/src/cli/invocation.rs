//! Parses the command line, and determines where results go.

use std::ffi::OsString;
use std::path::PathBuf;

use anstream::ColorChoice;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, ValueEnum};

use super::Cli;
use super::build_info::LONG_VERSION;
use super::config::{self, ConfigFile, Values};
use super::verb_groups::help_template;
use crate::destination::Destination;
use crate::exit::Exit;
use crate::output;

/// When messages and results have colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR, CLICOLOR_FORCE or CLICOLOR say otherwise
    #[default]
    Auto,
    /// Even in a file or pipe
    Always,
    /// Nowhere
    Never,
}

impl From<ColorWhen> for ColorChoice {
    fn from(when: ColorWhen) -> Self {
        match when {
            ColorWhen::Auto => Self::Auto,
            ColorWhen::Always => Self::Always,
            ColorWhen::Never => Self::Never,
        }
    }
}

/// A file for results instead of stdout.
#[derive(Clone, Debug, Default, Args)]
pub struct ResultFile {
    /// Write the results to this file instead of stdout (`-`); a failed command leaves no partial
    /// file
    #[arg(id = "result_file", short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// A parsed command line.
pub struct Invocation {
    cli: Cli,
    results: Option<(PathBuf, bool)>,
    configuration: Vec<ConfigFile>,
}

/// Returns the whole command line as clap defines it.
pub fn command() -> Command {
    let command = Cli::command().long_version(LONG_VERSION.as_str());
    let template = help_template(&command);
    take_negative_numbers(command.help_template(template))
}

/// Lets options accept `-1` as a value, so that the option's own parser rejects it, and not clap as
/// an unknown option.
fn take_negative_numbers(command: Command) -> Command {
    let command =
        command.mut_args(|arg| match arg.get_action().takes_values() && !arg.is_positional() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        });
    command.mut_subcommands(take_negative_numbers)
}

/// Returns the command with the verbs among the words, as in `foreread runs show`.
pub fn verb_of(words: &[OsString]) -> String {
    let top = command();
    let (mut verb, mut path) = (&top, vec!["foreread"]);
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(below) = word.to_str().and_then(|word| verb.find_subcommand(word)) {
            path.push(below.get_name());
            verb = below;
        }
    }
    path.join(" ")
}

/// Sets colour and character set from the words before they are parsed.
pub fn set_up_early(words: &[OsString]) {
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    let (mut when, mut ascii) = (ColorWhen::Auto, false);
    while let Some(word) = words.next() {
        let value = match word.split_once('=') {
            _ if word == "--" => break,
            _ if word == "--ascii" => {
                ascii = true;
                continue;
            }
            Some(("--color" | "--colour", value)) => Some(value.into()),
            None if word == "--color" || word == "--colour" => words.next(),
            _ => continue,
        };
        let value = value.and_then(|value| ColorWhen::from_str(&value, false).ok());
        when = value.unwrap_or(when);
    }
    output::set_up(when.into(), ascii);
}

impl Invocation {
    /// Parses the words, with the configuration as defaults.
    pub fn read(words: Vec<OsString>) -> anyhow::Result<Self> {
        let first = command().try_get_matches_from(&words);
        let asks = |error: &clap::Error| {
            !error.use_stderr()
                || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        };
        let (matches, configuration) = match first {
            Err(error) if asks(&error) => return Err(error.into()),
            Ok(matches) if !config::applies_to(&matches) => (matches, Vec::new()),
            first => configured(&words, first)?,
        };
        let cli = Cli::from_arg_matches(&matches)?;
        output::set_up(cli.global.color.into(), cli.global.ascii);
        Ok(Self { cli, results: result_file(&matches), configuration })
    }

    /// Returns whether only results and errors are printed.
    pub fn is_quiet(&self) -> bool {
        self.cli.global.quiet
    }

    /// Runs the verb.
    pub fn run(self) -> anyhow::Result<Exit> {
        let quiet = self.is_quiet();
        let check = |(path, force): (PathBuf, bool)| Destination::check("--output", &path, force);
        let destination = self.results.map(check).transpose()?;
        let destination = destination.filter(|destination| destination.path().is_some());
        if destination.is_some() {
            output::keep_results();
        }
        let exit = self.cli.run(self.configuration)?;
        let results = output::take_results();
        if let Some(destination) = destination.filter(|_| !results.is_empty()) {
            destination.write(&results)?;
            if let (Some(path), false) = (destination.path(), quiet) {
                output::note(&format!(
                    "wrote {}",
                    report::clean::plain(&path.display().to_string())
                ));
            }
        }
        Ok(exit)
    }
}

/// Parses the words again, with the values of configuration files as defaults.
fn configured(
    words: &[OsString],
    first: Result<ArgMatches, clap::Error>,
) -> anyhow::Result<(ArgMatches, Vec<ConfigFile>)> {
    let mut built = command();
    built.build();
    let mut files = config::files(words, |name| std::env::var_os(name));
    let mut values = match (config::read(&built, &mut files), &first) {
        (Ok(values), _) => values,
        // `info` reports the problem itself.
        (Err(_), Ok(matches)) if matches.subcommand_name() == Some("info") => Values::default(),
        (Err(error), _) => return Err(error),
    };
    let says_colour = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"].into_iter().any(says_colour) {
        values.forget("color");
    }
    if let Ok(matches) = &first {
        values.yield_to(&built, matches);
    }
    Ok((values.apply(command()).try_get_matches_from(words)?, files))
}

/// Returns the file for the verb's results, and whether it may be overwritten.
fn result_file(matches: &ArgMatches) -> Option<(PathBuf, bool)> {
    let mut verb = matches;
    while let Some((_, below)) = verb.subcommand() {
        verb = below;
    }
    let file = verb.try_get_one::<PathBuf>("result_file").ok().flatten()?;
    let force = verb.try_get_one::<bool>("force").ok().flatten().copied().unwrap_or(false);
    Some((file.clone(), force))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn old_spellings_are_understood_and_not_shown() {
        for line in [
            "foreread blocks /dev/sdb",
            "foreread pg /srv",
            "foreread experiment request-size /dev/sdb",
            "foreread experiment pg /srv",
            "foreread tune /srv --for streaming",
            "foreread persist read_ahead=1M --take-over",
            "foreread import x.csv --at 1M --now 128K",
            "foreread auto /srv --advise --for 1s --try 10s --leave",
            "foreread run --advise -- true",
        ] {
            let matches = command().try_get_matches_from(line.split(' '));
            assert!(matches.is_ok(), "{line}: {}", matches.unwrap_err());
        }
        let shown = |verb: &str| {
            let words = ["foreread", verb, "--help"].map(OsString::from);
            let help = command().try_get_matches_from(words).unwrap_err();
            help.render().to_string()
        };
        for (verb, old) in [
            ("experiment", vec!["request-size"]),
            ("tune", vec!["--for "]),
            ("persist", vec!["--take-over"]),
            ("import", vec!["--at ", "--now "]),
            ("auto", vec!["--advise", "--for ", "--try ", "--leave"]),
            ("run", vec!["--advise", "--leave"]),
        ] {
            let help = shown(verb);
            for word in old {
                assert!(!help.contains(word), "{verb} --help shows {word}");
            }
        }
    }
}
