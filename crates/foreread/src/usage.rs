//! Prints clap's messages in the form of all other messages: help and version to stdout, an error
//! in one line with a hint below it to stderr.

use clap::error::ErrorKind;
use report::clean;

use crate::exit::Exit;
use crate::output;

/// Prints the message and returns the exit code. `verb` is `foreread` with the verbs given.
pub fn explain(error: &clap::Error, verb: &str) -> Exit {
    let text = error.render();
    if !error.use_stderr() {
        // A closed stdout is not an error.
        let _ = output::print(&text.ansi().to_string());
        return Exit::Fine;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::note(text.ansi().to_string().trim_end());
        return Exit::Usage;
    }
    let (message, hints) = parts(&text.to_string(), verb);
    output::error_line(&clean::plain(&message));
    for hint in hints {
        output::note(&format!("hint: {}", clean::plain(&hint)));
    }
    Exit::Usage
}

/// Splits clap's text into the message, in one line, and the hints.
fn parts(text: &str, verb: &str) -> (String, Vec<String>) {
    let mut paragraphs = text.split("\n\n");
    let message = paragraphs.next().unwrap_or_default();
    let message = one_line(message.strip_prefix("error: ").unwrap_or(message));
    let mut hints = Vec::new();
    for paragraph in paragraphs.filter(|paragraph| !paragraph.starts_with("Usage: ")) {
        let tips = paragraph.split("tip: ").skip(1).map(one_line);
        hints.extend(tips.filter(|tip| !passes_on(tip)));
    }
    if hints.is_empty() {
        hints.push(format!("'{verb} --help' explains the options"));
    }
    (message, hints)
}

/// Returns whether a tip suggests passing a mistyped word, or a negative number, after `--`, which
/// is never right here.
fn passes_on(tip: &str) -> bool {
    tip.starts_with("to pass '")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_hints() {
        let text = "error: the following required arguments were not provided:\n  <TARGET>\n\n\
                    Usage: foreread tune <TARGET>\n\nFor more information, try '--help'.\n";
        let (message, hints) = parts(text, "foreread tune");
        assert_eq!(message, "the following required arguments were not provided: <TARGET>");
        assert_eq!(hints, ["'foreread tune --help' explains the options"]);
    }

    #[test]
    fn nothing_is_to_be_passed_on() {
        let text = "error: unexpected argument '-4' found\n\n  tip: to pass '-4' as a value, use \
                    '-- -4'\n\nUsage: foreread runs [OPTIONS]\n\nFor more information, try \
                    '--help'.\n";
        assert_eq!(parts(text, "foreread runs").1, ["'foreread runs --help' explains the options"]);
        let text = text.replace("to pass '-4' as a value", "a similar argument exists: '--size'");
        let text = text.replace(", use '-- -4'", "");
        assert_eq!(parts(&text, "foreread runs").1, ["a similar argument exists: '--size'"]);
    }
}
