//! Parses sections: comments, `[names]`, `include`, `${VARIABLES}`.
//!
//! fio's syntax extends INI: a comment may follow a value after `;` or `#`, a section whose name
//! starts with `global` is global, names may be repeated, and included files are options of the
//! including section. No INI library supports this.

use super::error::{FioError, FioLocation};

/// Maximum nesting of included files.
const DEPTH_MAX: usize = 8;
/// Maximum total size of included files.
const BYTES_MAX: usize = 16 << 20;
/// Maximum number of options and sections, included files together.
const LINES_MAX: usize = 100_000;

/// Access to variables and included files.
pub struct FioEnvironment<'a> {
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads an included file by its name in the job file, or in the including file given second.
    /// The error says why the file cannot be read.
    pub include: &'a Include<'a>,
}

pub type Include<'a> = dyn Fn(&str, Option<&str>) -> Result<Included, String> + 'a;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// Path of the file, which identifies it.
    pub file: String,
    pub text: String,
}

impl FioEnvironment<'_> {
    pub fn none() -> Self {
        Self {
            variable: &|_| None,
            include: &|_, _| Err("nothing can be included here".to_owned()),
        }
    }
}

/// An option as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawOption {
    pub(crate) place: FioLocation,
    pub(crate) name: String,
    /// `None` without `=`.
    pub(crate) value: Option<String>,
}

/// A section as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IniSection {
    pub(crate) place: FioLocation,
    pub(crate) name: String,
    pub(crate) options: Vec<RawOption>,
}

impl IniSection {
    /// Returns whether the name starts with `global`, as in fio.
    pub(crate) fn is_global(&self) -> bool {
        self.name.as_bytes().starts_with(b"global")
    }
}

/// Returns the sections of a file, in order.
pub(crate) fn sections(
    text: &str,
    around: &FioEnvironment<'_>,
) -> Result<Vec<IniSection>, FioError> {
    let mut reader = Reader { around, sections: Vec::new(), lines: 0, bytes: 0, open: Vec::new() };
    reader.read(text)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    around: &'a FioEnvironment<'a>,
    sections: Vec<IniSection>,
    lines: usize,
    bytes: usize,
    /// The included files being read, from the outermost to the innermost.
    open: Vec<Opened>,
}

/// State of an included file that is being read.
struct Opened {
    file: String,
    /// Whether it is part of the job file: it is included before the first section, and may have
    /// sections.
    top: bool,
}

impl Reader<'_> {
    fn read(&mut self, text: &str) -> Result<(), FioError> {
        for (line, written) in (1..).zip(text.split('\n')) {
            let place = FioLocation { file: self.open.last().map(|open| open.file.clone()), line };
            let text = content(written);
            if text.is_empty() {
                continue;
            }
            self.lines += 1;
            let problem =
                |problem| FioError::Syntax { place: place.clone(), text: shortened(text), problem };
            if self.lines > LINES_MAX {
                return Err(problem("more lines than any job file has"));
            }
            if let Some(name) = text.strip_prefix('[') {
                let name = name.strip_suffix(']').ok_or_else(|| problem("no ] at its end"))?;
                if self.open.last().is_some_and(|open| !open.top) {
                    return Err(problem(
                        "a file that is included within a section must not contain sections",
                    ));
                }
                let (name, options) = (name.to_owned(), Vec::new());
                self.sections.push(IniSection { place, name, options });
                continue;
            }
            match text.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
                Some(name) => self.include(name.trim(), &place)?,
                None if self.sections.is_empty() => {
                    return Err(problem("an option before the first [section]"));
                }
                None => self.option(text, place)?,
            }
        }
        Ok(())
    }

    fn include(&mut self, name: &str, place: &FioLocation) -> Result<(), FioError> {
        let failed = |problem: String| FioError::Include {
            place: place.clone(),
            file: name.to_owned(),
            problem,
        };
        if self.open.len() >= DEPTH_MAX {
            return Err(failed(format!("files are included more than {DEPTH_MAX} deep")));
        }
        let from = self.open.last().map(|open| open.file.as_str());
        let Included { file, text } = (self.around.include)(name, from).map_err(failed)?;
        if self.open.iter().any(|open| open.file == file) {
            return Err(failed("the file includes itself".to_owned()));
        }
        self.bytes += text.len();
        if self.bytes > BYTES_MAX {
            let most = BYTES_MAX >> 20;
            return Err(failed(format!("all included files together are larger than {most} MiB")));
        }
        let top = self.sections.is_empty() && self.open.iter().all(|open| open.top);
        self.open.push(Opened { file, top });
        self.read(text.strip_prefix('\u{feff}').unwrap_or(&text))?;
        self.open.pop();
        Ok(())
    }

    fn option(&mut self, text: &str, place: FioLocation) -> Result<(), FioError> {
        let text = self.substituted(text, &place)?;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (text.trim(), None),
        };
        let name = name.to_owned();
        if let Some(section) = self.sections.last_mut() {
            section.options.push(RawOption { place, name, value });
        }
        Ok(())
    }

    /// Substitutes variables. An unset variable is an error: fio would substitute an empty string.
    fn substituted(&self, text: &str, place: &FioLocation) -> Result<String, FioError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            let value = (self.around.variable)(name).ok_or_else(|| FioError::Variable {
                place: place.clone(),
                variable: shortened(name),
            })?;
            if value.contains(['#', ';', '\n', '$']) || value.chars().any(char::is_control) {
                let problem = "the value of a variable contains # ; $ or a line break";
                return Err(FioError::Syntax {
                    place: place.clone(),
                    text: shortened(text),
                    problem,
                });
            }
            done.push_str(before);
            done.push_str(&value);
            rest = behind;
        }
        done.push_str(rest);
        Ok(done)
    }
}

/// Returns a line without its comment and surrounding spaces.
fn content(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// Shortens a text for a message.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> FioEnvironment<'static> {
        FioEnvironment {
            variable: &|name| (name == "SIZE").then(|| "64g".to_owned()),
            include: &|name, from| {
                let text = match name {
                    "more.fio" => "bs=8k\n; nothing\ndirect=1\n".to_owned(),
                    "itself" | "back" => "include back".to_owned(),
                    "bad" => "[job]".to_owned(),
                    "defaults" => "include defaults.d\n[job]\nthread\n".to_owned(),
                    "defaults.d" => "[global]\nbs=8k\n".to_owned(),
                    "large" => "#".repeat(9 << 20),
                    _ => match name.strip_prefix("deep") {
                        Some(depth) => format!("include deep{depth}x"),
                        None => return Err(format!("no such file, from {from:?}")),
                    },
                };
                Ok(Included { file: name.to_owned(), text })
            },
        }
    }

    fn read(text: &str) -> Result<Vec<IniSection>, FioError> {
        sections(text, &around())
    }

    #[test]
    fn sections_options_comments_and_variables() {
        let text = "\u{feff}# head\n[global]\n  rw = randread ; why\nthread\n\n[one] # first\r\n\
                    size=${SIZE}\r\ninclude more.fio\n[one]\n";
        let text = text.trim_start_matches('\u{feff}');
        let found = read(text).unwrap();
        let names: Vec<&str> = found.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["global", "one", "one"]);
        assert!(found[0].is_global() && !found[1].is_global());
        assert_eq!(found[0].options[0].name, "rw");
        assert_eq!(found[0].options[0].value.as_deref(), Some("randread"));
        assert_eq!(found[0].options[1].value, None);
        assert_eq!(found[1].options[0].value.as_deref(), Some("64g"));
        let direct = &found[1].options[2];
        assert_eq!((direct.name.as_str(), direct.place.line), ("direct", 3));
        assert_eq!(direct.place.to_string(), "line 3 of \"more.fio\"");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            message("rw=read\n"),
            "line 1: \"rw=read\": an option before the first [section]"
        );
        assert_eq!(message("\n[job\n"), "line 2: \"[job\": no ] at its end");
        assert!(message("[j]\nsize=${NOPE}\n").starts_with("line 2: ${NOPE} is not set"));
        assert!(message("[j]\ninclude x\n").contains("line 2: include \"x\": no such file"));
        assert!(message("[j]\ninclude itself\n").ends_with("\"back\": the file includes itself"));
        assert!(message("[j]\ninclude deep\n").ends_with("more than 8 deep"));
        assert!(message("include large\ninclude large\n").starts_with("line 2: include \"large\""));
        assert!(message("[j]\ninclude bad\n").contains("must not contain sections"));
    }

    #[test]
    fn what_is_included_at_the_top_stands_in_its_place() {
        let found = read("include defaults\nrw=read\n[two]\ninclude more.fio\n").unwrap();
        let names: Vec<&str> = found.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["global", "job", "two"]);
        let options: Vec<&str> =
            found[1].options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(options, ["thread", "rw"]);
        let message = read("include more.fio\n[j]\n").unwrap_err().to_string();
        assert!(
            message.starts_with("line 1 of \"more.fio\": \"bs=8k\": an option before"),
            "{message}"
        );
        assert!(read("[one]\ninclude defaults\n").is_err(), "not within a section");
    }
}
