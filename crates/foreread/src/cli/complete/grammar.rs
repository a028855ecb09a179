//! `foreread complete --grammar`: prints all verbs and options as JSON, for tests and documentation
//! generators. The source is clap's definition of the command line.

use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};

use super::super::Context;
use super::kinds::Kind;

pub fn document(top: &Command, context: &Context) -> Value {
    json!({
        "schema_version": report::SCHEMA_VERSION,
        "command": verb(top, context),
    })
}

fn verb(command: &Command, context: &Context) -> Value {
    let of_all = |arg: &&Arg| arg.get_id() == "help" || arg.get_id() == "version";
    let arguments =
        command.get_arguments().filter(|arg| !of_all(arg)).map(|arg| argument(arg, context));
    // `help` would list all verbs again.
    let below = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    json!({
        "name": command.get_name(),
        "hidden": command.is_hide_set(),
        "arguments": arguments.collect::<Vec<_>>(),
        "verbs": below.map(|below| verb(below, context)).collect::<Vec<_>>(),
    })
}

fn argument(arg: &Arg, context: &Context) -> Value {
    let kind = Kind::from_arg(arg);
    let takes_value = arg.get_action().takes_values();
    let offer = kind.offer("", context);
    let words = offer.candidates.into_iter().map(|candidate| candidate.word);
    let aliases = arg.get_all_aliases().unwrap_or_default();
    json!({
        "id": arg.get_id().as_str(),
        "long": arg.get_long(),
        "short": arg.get_short(),
        "aliases": aliases,
        "index": arg.get_index(),
        "required": arg.is_required_set(),
        "passed_on": arg.is_last_set(),
        "repeatable": matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        "takes_value": takes_value,
        "value_name": takes_value.then(|| value_name(arg)),
        "kind": takes_value.then(|| kind.name()),
        "words": if takes_value { words.collect() } else { Vec::<String>::new() },
        "default": defaults(arg),
    })
}

fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or_else(|| arg.get_id().to_string(), ToString::to_string)
}

fn defaults(arg: &Arg) -> Vec<String> {
    let values = arg.get_default_values().iter();
    values.map(|value| value.to_string_lossy().into_owned()).collect()
}
