//! Builds the manual page of a verb from its clap definition.

use clap::{Arg, ArgAction, Command};

use super::block::{Block, Section};
use super::tables;

/// A manual page, independent of the output format.
pub struct ManualPage {
    /// Name, as in `foreread-tune`.
    pub name: String,
    /// Number of words in the name; 2 for a verb.
    #[cfg(test)]
    pub depth: usize,
    pub sections: Vec<Section>,
}

impl ManualPage {
    pub fn new(names: &[&str], verb: &Command) -> Self {
        let mut sections = Vec::new();
        let mut add = |title: &str, blocks: Vec<Block>| {
            if !blocks.is_empty() {
                sections.push(Section { title: title.to_owned(), blocks });
            }
        };
        let name = names.join("-");
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        add("NAME", vec![Block::Text(format!("{name} - {about}"))]);
        add("SYNOPSIS", synopsis(verb, names));
        let long = verb.get_long_about().map(ToString::to_string).unwrap_or_else(|| about.clone());
        let (description, mut examples) = split_examples(blocks(&long));
        let after = verb.get_after_long_help().or_else(|| verb.get_after_help());
        let after = after.map(ToString::to_string).unwrap_or_default();
        let (notes, more) = split_examples(blocks(&after));
        examples.extend(more);
        let description: Vec<Block> = description.into_iter().chain(notes).collect();
        add("DESCRIPTION", without_name_line(&about, description));
        add("VERBS", verbs(verb));
        for (heading, items) in options(verb) {
            add(&heading.to_uppercase(), items);
        }
        add("EXAMPLES", examples);
        add("FILES", tables::files());
        add("ENVIRONMENT", tables::environment());
        add("EXIT STATUS", tables::exit_codes());
        add("SEE ALSO", vec![Block::Text(see_also(names))]);
        #[cfg(test)]
        let depth = names.len();
        Self {
            name,
            #[cfg(test)]
            depth,
            sections,
        }
    }
}

#[cfg(test)]
impl ManualPage {
    pub fn verbatim(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Verbatim(lines) => Some(lines.as_str()),
            _ => None,
        })
    }

    pub fn has_example(&self) -> bool {
        self.verbatim().any(|lines| lines.lines().any(|line| line.contains("foreread ")))
    }

    pub fn has_head(&self, line: &str) -> bool {
        let mut blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.any(|block| matches!(block, Block::Item(head, _) if head == line))
    }
}

fn synopsis(verb: &Command, names: &[&str]) -> Vec<Block> {
    let usage = verb.clone().bin_name(names.join(" ")).render_usage().to_string();
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage);
    let lines = usage.lines().map(str::trim).filter(|line| !line.is_empty());
    vec![Block::Verbatim(lines.collect::<Vec<_>>().join("\n"))]
}

/// Splits a help text into paragraphs and verbatim blocks. Indented lines are verbatim.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut ended = true;
    for line in text.lines() {
        let verbatim = line.starts_with("  ");
        match blocks.last_mut() {
            _ if line.trim().is_empty() => ended = true,
            Some(Block::Text(text)) if !ended && !verbatim => {
                text.push(' ');
                text.push_str(line);
            }
            Some(Block::Verbatim(text)) if !ended && verbatim => {
                text.push('\n');
                text.push_str(&line[2..]);
            }
            _ if verbatim => {
                blocks.push(Block::Verbatim(line.trim_start().to_owned()));
                ended = false;
            }
            _ => {
                blocks.push(Block::Text(line.to_owned()));
                ended = false;
            }
        }
    }
    blocks
}

/// Removes the first paragraph if it repeats the line of NAME and is not the only one.
fn without_name_line(about: &str, mut blocks: Vec<Block>) -> Vec<Block> {
    let repeats = matches!(blocks.first(), Some(Block::Text(text)) if text == about);
    if repeats && blocks.len() > 1 {
        blocks.remove(0);
    }
    blocks
}

/// Separates the examples from the rest. A verbatim block after a sentence that ends with a colon
/// stays with that sentence. Exit codes are left out, because they have a section.
fn split_examples(blocks: Vec<Block>) -> (Vec<Block>, Vec<Block>) {
    let (mut rest, mut examples) = (Vec::new(), Vec::new());
    let mut introduced = false;
    for block in blocks {
        match block {
            Block::Text(text) if text == "Examples:" || text.starts_with("Exit codes:") => {
                introduced = false;
            }
            Block::Verbatim(_) if !introduced => examples.push(block),
            Block::Text(ref text) => {
                introduced = text.ends_with(':');
                rest.push(block);
            }
            other => rest.push(other),
        }
    }
    (rest, examples)
}

fn verbs(verb: &Command) -> Vec<Block> {
    let below = verb.get_subcommands().filter(|verb| !verb.is_hide_set());
    let items = below.map(|verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        Block::Item(verb.get_name().to_owned(), vec![about])
    });
    items.collect()
}

/// Groups arguments by heading, in the order of their definition.
fn options(verb: &Command) -> Vec<(String, Vec<Block>)> {
    let mut groups: Vec<(String, Vec<Block>)> = Vec::new();
    let of_all = |arg: &&Arg| arg.get_id() == "help" || arg.get_id() == "version";
    for arg in verb.get_arguments().filter(|arg| !arg.is_hide_set() && !of_all(arg)) {
        let heading = match arg.get_help_heading() {
            _ if arg.is_positional() => "Arguments",
            Some(heading) => heading,
            None => "Options",
        };
        let item = Block::Item(head(arg), body(arg));
        match groups.iter_mut().find(|(other, _)| other == heading) {
            Some((_, items)) => items.push(item),
            None => groups.push((heading.to_owned(), vec![item])),
        }
    }
    let order = |heading: &str| match heading {
        "Arguments" => 0,
        "Options of every verb" => 2,
        _ => 1,
    };
    groups.sort_by_key(|(heading, _)| order(heading));
    groups
}

fn head(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {arg}"),
        _ => arg.to_string(),
    }
}

fn body(arg: &Arg) -> Vec<String> {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut body: Vec<String> = help
        .split("\n\n")
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    if !arg.is_hide_possible_values_set() && takes_words(arg) {
        for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
            let about = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
            body.push(format!("{}{about}", value.get_name()));
        }
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_words(arg) && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        body.push(format!("Default: {}", defaults.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        body.push(format!("Environment: {}", variable.to_string_lossy()));
    }
    body.retain(|part| !part.is_empty());
    body
}

fn takes_words(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn see_also(names: &[&str]) -> String {
    let above = match names {
        [.., _] if names.len() > 1 => format!("{}(1), ", names[..names.len() - 1].join("-")),
        _ => String::new(),
    };
    format!("{above}blockdev(8), posix_fadvise(2), readahead(2), udev(7), sysctl.d(5)")
}
