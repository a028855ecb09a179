//! Checks a configuration file against the existing options.

use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Values;

/// A line number and the problem there.
type Problem = (usize, String);

/// Options that are not allowed in a file.
const NOT_HERE: [&str; 3] = ["config", "help", "version"];

pub fn into(command: &Command, text: &str, values: &mut Values) -> Result<(), Problem> {
    let reader = Reader { text, top: command };
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| reader.line(span.start));
        (line, error.message().replace('\n', "; "))
    })?;
    reader.table(command, &[], table.get_ref(), values)
}

struct Reader<'a> {
    text: &'a str,
    top: &'a Command,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn table(
        &self,
        command: &Command,
        path: &[String],
        table: &DeTable<'_>,
        values: &mut Values,
    ) -> Result<(), Problem> {
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), self.line(key.span().start));
            if let DeValue::Table(below) = value.get_ref() {
                let verb =
                    verb(command, name).ok_or_else(|| (line, no_verb(command, path, name)))?;
                let path: Vec<String> =
                    path.iter().cloned().chain([verb.get_name().to_owned()]).collect();
                self.table(verb, &path, below, values)?;
                continue;
            }
            let arg = option(command, name).filter(|_| !NOT_HERE.contains(&name));
            let arg = arg.ok_or_else(|| (line, self.no_option(command, path, name)))?;
            let taken = taken(arg, name, value.get_ref()).map_err(|why| (line, why))?;
            values.set(path, arg.get_id().as_str(), taken);
        }
        Ok(())
    }

    /// Returns the message for a key that is not an option.
    fn no_option(&self, command: &Command, path: &[String], name: &str) -> String {
        let place = match path {
            [] => "foreread".to_owned(),
            path => format!("foreread {}", path.join(" ")),
        };
        if NOT_HERE.contains(&name) {
            return format!("{name} is allowed only on the command line");
        }
        let known: Vec<&str> =
            options(command).filter_map(Arg::get_long).filter(|n| !NOT_HERE.contains(n)).collect();
        if let Some(near) = units::text::nearest(name, known.iter().copied()) {
            return format!("{place} has no option {name:?}: did you mean {near:?}?");
        }
        let verbs = verbs(self.top).filter(|verb| option(verb, name).is_some());
        let verbs: Vec<String> = verbs.map(|verb| format!("[{}]", verb.get_name())).collect();
        if !verbs.is_empty() && path.is_empty() {
            return format!(
                "{name:?} is not an option of every verb: write it in {}",
                verbs.join(", ")
            );
        }
        match option(self.top, name) {
            Some(_) => {
                format!("{name:?} is an option of every verb: write it before the first table")
            }
            None => format!("{place} has no option {name:?}: there are {}", known.join(", ")),
        }
    }
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

fn verb<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
    verbs(command).find(|verb| verb.get_name() == name)
}

fn no_verb(command: &Command, path: &[String], name: &str) -> String {
    let known: Vec<&str> = verbs(command).map(Command::get_name).collect();
    let full = path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
    if option(command, name).is_some() {
        return format!("{name:?} is an option and takes a value, not a table");
    }
    match known.as_slice() {
        [] => format!("[{full}]: {} has no verbs below it", path.join(" ")),
        known => format!("there is no verb [{full}]: {}", units::text::hint(name, known)),
    }
}

/// Returns the options of this verb alone; global options belong to the top level.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let own = move |arg: &&Arg| !arg.is_global_set() || command.get_name() == "foreread";
    command.get_arguments().filter(|arg| !arg.is_positional()).filter(own)
}

fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    options(command).find(|arg| {
        arg.get_long() == Some(name)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

/// Returns the equivalent words of the command line, checked as those are.
fn taken(arg: &Arg, name: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => match value {
            DeValue::Boolean(on) => Ok(vec![on.to_string()]),
            _ => Err(format!("{name} must be true or false")),
        },
        ArgAction::Count => match word(value) {
            Some(count) if count.parse::<u8>().is_ok() => Ok(vec![count]),
            _ => Err(format!("{name} must be a number: how often the option is given")),
        },
        action => {
            let many = matches!(action, ArgAction::Append);
            let wrong = || match many {
                true => format!("{name} must be a text, a number or a list of them"),
                false => format!("{name} must be a text or a number"),
            };
            let words: Option<Vec<String>> = match value {
                DeValue::Array(all) if many => {
                    all.iter().map(|one: &Spanned<DeValue<'_>>| word(one.get_ref())).collect()
                }
                one => word(one).map(|word| vec![word]),
            };
            let words = words.ok_or_else(wrong)?;
            words.iter().try_for_each(|word| check(arg, name, word))?;
            Ok(words)
        }
    }
}

/// Returns a text or a number as it would be typed.
fn word(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// Checks the word with the option's own parser.
fn check(arg: &Arg, name: &str, word: &str) -> Result<(), String> {
    let mut alone = Arg::new("value").long("value").num_args(1).allow_hyphen_values(true);
    alone = alone.value_parser(arg.get_value_parser().clone()).action(ArgAction::Append);
    if let Some(delimiter) = arg.get_value_delimiter() {
        alone = alone.value_delimiter(delimiter);
    }
    let command = Command::new("foreread").no_binary_name(true).arg(alone);
    let Err(error) = command.try_get_matches_from([format!("--value={word}")]) else {
        return Ok(());
    };
    let why = std::error::Error::source(&error).map(ToString::to_string);
    let possible: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let why = why.unwrap_or_else(|| match possible.as_slice() {
        [] => "invalid value".to_owned(),
        some => format!("give one of {}", some.join(", ")),
    });
    Err(format!("{name} = {word:?}: {why}"))
}
