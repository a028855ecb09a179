//! `foreread complete`: prints the candidates at the cursor. The scripts of `foreread completions`
//! call it, so they always offer the current models, workloads and runs, as well as the options.

mod grammar;
mod kinds;

use clap::{Arg, ArgAction, Args, Command};

use self::kinds::Kind;
use super::Context;
use super::invocation::command;
use crate::exit::Exit;
use crate::output;

/// Print the candidates for the last of these words, one per line with a description; `:files` if a
/// path is possible, too
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// Print all verbs and options as JSON instead
    #[arg(long, conflicts_with = "words")]
    grammar: bool,
    /// The words after `foreread`, the last one possibly incomplete
    #[arg(last = true)]
    words: Vec<String>,
}

/// A candidate and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionCandidate {
    pub word: String,
    pub about: String,
}

impl CompletionCandidate {
    pub fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// The candidates at the cursor.
#[derive(Debug, Default)]
pub struct Offer {
    pub candidates: Vec<CompletionCandidate>,
    /// Whether a path is possible.
    pub files: bool,
}

impl CompleteArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut built = command();
        built.build();
        if self.grammar {
            output::print_json(&grammar::document(&built, context))?;
            return Ok(Exit::Fine);
        }
        let (before, word) = match self.words.split_last() {
            Some((word, before)) => (before, word.as_str()),
            None => (&[][..], ""),
        };
        let offer = offer(&built, before, word, context);
        let mut text = String::new();
        for candidate in offer.candidates.iter().filter(|one| one.word.starts_with(word)) {
            let about = candidate.about.lines().next().unwrap_or_default();
            text.push_str(&format!("{}\t{about}\n", candidate.word));
        }
        if offer.files {
            text.push_str(":files\n");
        }
        output::print_document(&text)?;
        Ok(Exit::Fine)
    }
}

/// The verb that the words select, and the kind of the next word.
struct Cursor<'a> {
    verb: &'a Command,
    /// Option whose value is the next word.
    option: Option<&'a Arg>,
    positional: usize,
    /// Whether the cursor is after `--`.
    passed_on: bool,
}

fn cursor<'a>(top: &'a Command, before: &[String]) -> Cursor<'a> {
    let mut cursor = Cursor { verb: top, option: None, positional: 0, passed_on: false };
    for word in before {
        if cursor.option.take().is_some() || cursor.passed_on {
            continue;
        }
        if word == "--" {
            cursor.passed_on = true;
        } else if let Some(name) = word.strip_prefix("--") {
            cursor.option = named(cursor.verb, name).filter(|arg| waits(arg));
        } else if word.len() > 1 && word.starts_with('-') {
            let last = word.chars().last();
            let arg = cursor.verb.get_arguments().find(|arg| arg.get_short() == last);
            cursor.option = arg.filter(|arg| waits(arg));
        } else if let Some(verb) = cursor.verb.find_subcommand(word) {
            (cursor.verb, cursor.positional) = (verb, 0);
        } else {
            cursor.positional += 1;
        }
    }
    cursor
}

fn named<'a>(verb: &'a Command, name: &str) -> Option<&'a Arg> {
    verb.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

/// Returns whether the next word is the option's value.
fn waits(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

fn offer(top: &Command, before: &[String], word: &str, context: &Context) -> Offer {
    let cursor = cursor(top, before);
    if let Some(option) = cursor.option {
        return Kind::from_arg(option).offer(word, context);
    }
    if cursor.passed_on {
        return Offer { candidates: Vec::new(), files: true };
    }
    if let Some((name, value)) = word.strip_prefix("--").and_then(|word| word.split_once('=')) {
        let Some(option) = named(cursor.verb, name) else { return Offer::default() };
        let mut offer = Kind::from_arg(option).offer(value, context);
        for candidate in &mut offer.candidates {
            candidate.word = format!("--{name}={}", candidate.word);
        }
        return offer;
    }
    if word.starts_with('-') {
        return Offer { candidates: options(cursor.verb), files: false };
    }
    let mut offer = positional(&cursor)
        .map_or_else(Offer::default, |arg| Kind::from_arg(arg).offer(word, context));
    if cursor.positional == 0 {
        let verbs = cursor.verb.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs =
            verbs.map(|verb| CompletionCandidate::new(verb.get_name(), about(verb.get_about())));
        offer.candidates.splice(0..0, verbs);
    }
    offer
}

/// Returns the argument at this position; the last one may be repeated.
fn positional<'a>(cursor: &Cursor<'a>) -> Option<&'a Arg> {
    let mut all: Vec<&Arg> =
        cursor.verb.get_positionals().filter(|arg| !arg.is_last_set()).collect();
    all.sort_by_key(|arg| arg.get_index());
    let repeats = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Append);
    all.get(cursor.positional).copied().or_else(|| all.last().copied().filter(repeats))
}

fn options(verb: &Command) -> Vec<CompletionCandidate> {
    let shown = verb.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
    let named = shown.filter_map(|arg| {
        Some(CompletionCandidate::new(format!("--{}", arg.get_long()?), about(arg.get_help())))
    });
    named.collect()
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}
