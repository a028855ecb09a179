//! A random command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::grammar::{Argument, Grammar, Leaf};
use super::values::{command, fitting, one, slip};

/// Options that make a command short, with their values; used if the verb has them.
const SHORT: &[(&str, &str)] = &[
    ("duration", "50ms"),
    ("repeats", "1"),
    ("budget", "0.05"),
    ("size", "16M"),
    ("limit", "100ms"),
    ("places", "3"),
    ("seeds", "1"),
];

/// A command line, and its standard input.
#[derive(Clone, Debug)]
pub struct Line {
    /// The verb's words, separated by blanks.
    pub verb: String,
    pub words: Vec<OsString>,
    pub stdin: &'static str,
    /// Whether an ordinary user runs the command.
    pub unprivileged: bool,
    /// Required exit code; `None` if several are possible.
    pub must: Option<i32>,
    /// Whether foreread runs a command, whose exit code it returns.
    pub runs_command: bool,
}

impl Line {
    /// Formats the line as it would be typed in bash.
    pub fn shown(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        let user = if self.unprivileged { " (as an ordinary user)" } else { "" };
        let stdin = if self.stdin.is_empty() { "< /dev/null" } else { "< stdin" };
        format!("foreread {} {stdin}{user}", words.join(" "))
    }
}

fn quoted(word: &OsStr) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=,./:+%@".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return word.to_string_lossy().into_owned();
    }
    match word.to_str().filter(|text| !text.chars().any(|one| one.is_control())) {
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => {
            let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("$'{escaped}'")
        }
    }
}

/// Draws random command lines.
pub struct Drawer<'a> {
    pub grammar: &'a Grammar,
    /// Targets of this tier, in addition to the usual ones.
    pub targets: Vec<String>,
}

impl Drawer<'_> {
    /// Returns the command line of this seed.
    pub fn draw(&self, seed: u64) -> Line {
        let rng = &mut Pcg64Mcg::seed_from_u64(seed);
        let leaf = self.leaf(rng);
        let mut line = Line {
            verb: leaf.words.join(" "),
            words: leaf.words.iter().map(OsString::from).collect(),
            stdin: one(&["", "", "x,y\n1,2\n", "offset,length\n0,4096\n", "\u{0}\u{1}"], rng),
            unprivileged: rng.random_bool(0.3),
            must: None,
            runs_command: false,
        };
        let mut parts = self.positionals(leaf, rng);
        parts.extend(self.options(leaf, rng));
        for at in (1..parts.len()).rev() {
            parts.swap(at, rng.random_range(0..=at));
        }
        line.words.extend(parts.concat());
        self.passed_on(leaf, &mut line, rng);
        self.mistake(leaf, &mut line, rng);
        line
    }

    fn leaf(&self, rng: &mut Pcg64Mcg) -> &Leaf {
        let leaves = &self.grammar.leaves;
        let leaf = &leaves[rng.random_range(0..leaves.len())];
        // Hidden verbs are drawn less often.
        if leaf.hidden { &leaves[rng.random_range(0..leaves.len())] } else { leaf }
    }

    fn value(&self, argument: &Argument, rng: &mut Pcg64Mcg) -> OsString {
        match rng.random_bool(0.88) {
            true => fitting(argument, &self.targets, rng),
            false => slip(rng),
        }
    }

    fn positionals(&self, leaf: &Leaf, rng: &mut Pcg64Mcg) -> Vec<Vec<OsString>> {
        let mut words = Vec::new();
        for argument in leaf.positionals.iter().filter(|argument| !argument.passed_on) {
            let there = rng.random_bool(if argument.required { 0.97 } else { 0.7 });
            if !there {
                break;
            }
            let count = if argument.repeatable { rng.random_range(1..=3) } else { 1 };
            words.extend((0..count).map(|_| self.value(argument, rng)));
        }
        // Their order matters, so they stay together.
        if words.is_empty() { Vec::new() } else { vec![words] }
    }

    fn options(&self, leaf: &Leaf, rng: &mut Pcg64Mcg) -> Vec<Vec<OsString>> {
        let (mut parts, mut drawn) = (Vec::new(), Vec::new());
        for argument in &leaf.options {
            let long = argument.long.as_deref().unwrap_or_default();
            let short = SHORT.iter().find(|(name, _)| *name == long);
            let required = argument.required && rng.random_bool(0.95);
            match short.filter(|_| rng.random_bool(0.9)) {
                Some((_, value)) => parts.push(vec![format!("--{long}={value}").into()]),
                None if required => parts.push(self.option(argument, rng)),
                None => continue,
            }
            drawn.push(argument.id.clone());
        }
        if leaf.options.is_empty() {
            return parts;
        }
        for _ in 0..rng.random_range(0..4) {
            let argument = &leaf.options[rng.random_range(0..leaf.options.len())];
            if !drawn.contains(&argument.id) || argument.repeatable || rng.random_bool(0.1) {
                drawn.push(argument.id.clone());
                parts.push(self.option(argument, rng));
            }
        }
        parts
    }

    fn option(&self, argument: &Argument, rng: &mut Pcg64Mcg) -> Vec<OsString> {
        let long = argument.long.as_ref().map(|long| format!("--{long}"));
        let short = argument.short.map(|short| format!("-{short}"));
        let name = match (long, short) {
            (Some(_), Some(short)) if rng.random_bool(0.3) => short,
            (Some(long), _) => long,
            (None, short) => short.unwrap_or_default(),
        };
        if !argument.takes_value || rng.random_bool(0.02) {
            return vec![name.into()];
        }
        let value = self.value(argument, rng);
        if name.starts_with("--") && rng.random_bool(0.5) {
            let mut word = OsString::from(name + "=");
            word.push(value);
            return vec![word];
        }
        vec![name.into(), value]
    }

    /// Adds the words after `--`.
    fn passed_on(&self, leaf: &Leaf, line: &mut Line, rng: &mut Pcg64Mcg) {
        let takes = leaf.positionals.iter().any(|argument| argument.passed_on);
        if !takes || rng.random_bool(0.05) {
            return;
        }
        line.words.push("--".into());
        line.words.extend(command(rng));
        line.runs_command = matches!(line.verb.as_str(), "run" | "profile" | "trace record");
    }

    /// Makes about one line in ten wrong as a whole.
    fn mistake(&self, leaf: &Leaf, line: &mut Line, rng: &mut Pcg64Mcg) {
        let behind = leaf.words.len();
        let asks = |word: &OsString| {
            let bytes = word.as_bytes();
            bytes == b"help"
                || bytes.starts_with(b"-h")
                || bytes.starts_with(b"-V")
                || bytes.starts_with(b"--he")
                || bytes.starts_with(b"--vers")
        };
        let asks = line.words.iter().any(asks);
        match rng.random_range(0..60) {
            0 | 1 if !leaf.hidden => {
                line.words.insert(behind, "--nosuch-option".into());
                line.must = (!asks).then_some(2);
            }
            2 => {
                line.words[0] = one(&["swep", "doktor", "", "help", "--", "\u{1f600}"], rng).into();
            }
            3 => line.words.insert(behind, one(&["--help", "-h", "--version", "-V"], rng).into()),
            4 => {
                let other = self.leaf(rng);
                if !other.options.is_empty() {
                    let option = &other.options[rng.random_range(0..other.options.len())];
                    let words = self.option(option, rng);
                    line.words.splice(behind..behind, words);
                }
            }
            5 => {
                let at = rng.random_range(0..line.words.len());
                let again = line.words[at].clone();
                line.words.insert(at, again);
            }
            6 => line.words.insert(behind, slip(rng)),
            _ => {}
        }
    }
}
