//! `foreread help`: the manual page of a verb, as text or for man(1).

mod block;
mod page;
mod roff;
mod tables;
mod text;

use clap::{Args, Command};

use self::page::ManualPage;
use super::ResultFile;
use super::invocation::command;
use crate::exit::{Exit, Usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread help tune
  foreread help experiment blocks
  foreread help --man tune | man -l -";

/// Show the manual page of a verb: options, examples, exit codes
///
/// Without a verb, it prints the same list of verbs as `foreread --help`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct HelpArgs {
    /// The verb, and the verb below it if there is one
    #[arg(value_name = "VERB")]
    verbs: Vec<String>,
    /// Print the page in the format of man(1)
    #[arg(long)]
    man: bool,
    #[command(flatten)]
    file: ResultFile,
}

impl HelpArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut top = command();
        if self.verbs.is_empty() && !self.man {
            output::print(&top.render_long_help().ansi().to_string())?;
            return Ok(Exit::Fine);
        }
        top.build();
        let (names, verb) = find(&top, &self.verbs)?;
        let page = ManualPage::new(&names, verb);
        match self.man {
            true => output::print_document(&roff::render(&page))?,
            false => output::print(&text::render(&page, output::look().width.min(100)))?,
        }
        Ok(Exit::Fine)
    }
}

/// Finds a verb; returns the words of its full name, starting with the program's name.
fn find<'a>(top: &'a Command, words: &[String]) -> anyhow::Result<(Vec<&'a str>, &'a Command)> {
    let (mut names, mut verb) = (vec![top.get_name()], top);
    for word in words {
        let found = verb.find_subcommand(word);
        verb = found.ok_or_else(|| Usage(format!("'{}' has no verb '{word}'", names.join(" "))))?;
        names.push(verb.get_name());
    }
    Ok((names, verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages<'a>(names: &[&'a str], verb: &'a Command, found: &mut Vec<ManualPage>) {
        found.push(ManualPage::new(names, verb));
        for below in verb.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            if below.get_name() != "help" {
                pages(&[names, &[below.get_name()]].concat(), below, found);
            }
        }
    }

    fn all() -> Vec<ManualPage> {
        let (mut top, mut found) = (command(), Vec::new());
        top.build();
        pages(&["foreread"], &top, &mut found);
        found
    }

    #[test]
    fn each_page_has_the_sections_that_readers_look_for() {
        for page in all() {
            let titles: Vec<&str> = page.sections.iter().map(|s| s.title.as_str()).collect();
            for wanted in ["NAME", "SYNOPSIS", "FILES", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"] {
                assert!(titles.contains(&wanted), "{}: no {wanted} in {titles:?}", page.name);
            }
        }
    }

    #[test]
    fn a_description_does_not_repeat_the_name() {
        let pages = all();
        let tune = pages.iter().find(|page| page.name == "foreread-tune").expect("a page");
        let text = anstream::adapter::strip_str(&text::render(tune, 80)).to_string();
        assert_eq!(text.matches("Find the best read-ahead for a target").count(), 1, "{text}");
    }

    #[test]
    fn each_verb_has_an_example() {
        for page in all().iter().filter(|page| page.depth == 2) {
            assert!(page.has_example(), "{} has no example: add it to after_help", page.name);
        }
    }

    #[test]
    fn text_and_manual_page_have_the_same_words() {
        for page in all() {
            let words = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            let plain = roff::plain(&roff::render(&page));
            let text = anstream::adapter::strip_str(&text::render(&page, 80)).to_string();
            assert_eq!(words(&plain), words(&text), "{}", page.name);
        }
    }

    #[test]
    fn no_line_of_the_text_is_wider_than_the_terminal_unless_it_is_verbatim() {
        for page in all() {
            let text = anstream::adapter::strip_str(&text::render(&page, 60)).to_string();
            let verbatim: Vec<&str> = page.verbatim().flat_map(str::lines).map(str::trim).collect();
            for line in text.lines().filter(|line| line.chars().count() > 60) {
                let one_word = line.split_whitespace().count() == 1;
                let whole = verbatim.contains(&line.trim()) || page.has_head(line.trim());
                assert!(one_word || whole, "{}: {line}", page.name);
            }
        }
    }
}
