//! All verbs and options, as the program reports them.

use serde::Deserialize;

/// A positional argument or an option.
#[derive(Clone, Debug, Deserialize)]
pub struct Argument {
    pub id: String,
    pub long: Option<String>,
    pub short: Option<char>,
    pub index: Option<usize>,
    pub required: bool,
    pub passed_on: bool,
    pub repeatable: bool,
    pub takes_value: bool,
    pub value_name: Option<String>,
    pub kind: Option<String>,
    pub words: Vec<String>,
    pub default: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Verb {
    name: String,
    hidden: bool,
    arguments: Vec<Argument>,
    verbs: Vec<Verb>,
}

#[derive(Debug, Deserialize)]
struct Document {
    command: Verb,
}

/// A verb that can be run: all its words, options and positional arguments.
#[derive(Debug)]
pub struct Leaf {
    pub words: Vec<String>,
    /// Whether it is hidden, or needs another verb after it.
    pub hidden: bool,
    pub options: Vec<Argument>,
    pub positionals: Vec<Argument>,
}

#[derive(Debug)]
pub struct Grammar {
    pub leaves: Vec<Leaf>,
}

impl Grammar {
    /// Reads what `foreread complete --grammar` printed.
    pub fn read(text: &str) -> Self {
        let document: Document = serde_json::from_str(text).unwrap();
        let mut leaves = Vec::new();
        for verb in document.command.verbs {
            collect(verb, &[], false, &mut leaves);
        }
        assert!(leaves.len() > 30, "{} verbs", leaves.len());
        Self { leaves }
    }
}

fn collect(verb: Verb, before: &[String], hidden: bool, leaves: &mut Vec<Leaf>) {
    let words = [before, std::slice::from_ref(&verb.name)].concat();
    let hidden = hidden || verb.hidden;
    let rare = hidden || !verb.verbs.is_empty();
    for below in verb.verbs {
        collect(below, &words, hidden, leaves);
    }
    let (mut positionals, options): (Vec<_>, Vec<_>) =
        verb.arguments.into_iter().partition(|argument| argument.index.is_some());
    positionals.sort_by_key(|argument| argument.index);
    leaves.push(Leaf { words, hidden: rare, options, positionals });
}
