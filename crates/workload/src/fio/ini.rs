//! From text to sections: comments, `[names]`, `include`, `${VARIABLES}`.
//!
//! fio's form is INI with habits of its own: a comment may follow a value after `;` or `#`, a
//! section whose name begins with `global` is global, names may be there twice, and included files
//! are options of the section that includes them. No library of INI files has these.

use super::error::{FioError, Place};

/// How deep included files may include others.
const DEPTH_MAX: u32 = 8;
/// How many options and sections a file may have, all included files together.
const LINES_MAX: usize = 100_000;

/// What a job file asks for outside itself.
pub struct Surroundings<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of an included file, or why it cannot be read.
    pub include: &'a dyn Fn(&str) -> Result<String, String>,
}

impl Surroundings<'_> {
    /// No variables, no files.
    pub fn none() -> Self {
        Self { variable: &|_| None, include: &|_| Err("nothing can be included here".to_owned()) }
    }
}

/// An option as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawOption {
    pub(super) place: Place,
    pub(super) name: String,
    /// Nothing where there is no `=`.
    pub(super) value: Option<String>,
}

/// A section as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) options: Vec<RawOption>,
}

impl Section {
    /// By the first six letters, as fio tells it.
    pub(super) fn is_global(&self) -> bool {
        self.name.as_bytes().starts_with(b"global")
    }
}

/// The sections of a file, in its order.
pub(super) fn sections(text: &str, around: &Surroundings<'_>) -> Result<Vec<Section>, FioError> {
    let mut reader = Reader { around, sections: Vec::new(), lines: 0 };
    reader.read(text, None, 0)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    around: &'a Surroundings<'a>,
    sections: Vec<Section>,
    lines: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, file: Option<&str>, depth: u32) -> Result<(), FioError> {
        for (line, written) in (1..).zip(text.split('\n')) {
            let place = Place { file: file.map(str::to_owned), line };
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
                if file.is_some() {
                    return Err(problem("an included file has no sections"));
                }
                let (name, options) = (name.to_owned(), Vec::new());
                self.sections.push(Section { place, name, options });
                continue;
            }
            if self.sections.is_empty() {
                return Err(problem("an option before the first [section]"));
            }
            match text.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
                Some(name) => self.include(name.trim(), &place, depth)?,
                None => self.option(text, place)?,
            }
        }
        Ok(())
    }

    fn include(&mut self, name: &str, place: &Place, depth: u32) -> Result<(), FioError> {
        let failed = |problem: String| FioError::Include {
            place: place.clone(),
            file: name.to_owned(),
            problem,
        };
        if depth >= DEPTH_MAX {
            return Err(failed("included files include one another too deep".to_owned()));
        }
        let text = (self.around.include)(name).map_err(failed)?;
        self.read(&text, Some(name), depth + 1)
    }

    fn option(&mut self, text: &str, place: Place) -> Result<(), FioError> {
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

    /// With the values of variables in their places. fio takes nothing for one that is not set,
    /// which is never what was meant.
    fn substituted(&self, text: &str, place: &Place) -> Result<String, FioError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            let value = (self.around.variable)(name).ok_or_else(|| FioError::Variable {
                place: place.clone(),
                variable: shortened(name),
            })?;
            if value.contains(['#', ';', '\n', '$']) || value.chars().any(char::is_control) {
                let problem = "the value of a variable has # ; $ or a line break in it";
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

/// A line without its comment and the blanks around it.
fn content(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// As much of a text as a message has room for.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings<'static> {
        Surroundings {
            variable: &|name| (name == "SIZE").then(|| "64g".to_owned()),
            include: &|name| match name {
                "more.fio" => Ok("bs=8k\n; nothing\ndirect=1\n".to_owned()),
                "itself" => Ok("include itself".to_owned()),
                "bad" => Ok("[job]".to_owned()),
                _ => Err("no such file".to_owned()),
            },
        }
    }

    fn read(text: &str) -> Result<Vec<Section>, FioError> {
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
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(told("rw=read\n"), "line 1: \"rw=read\": an option before the first [section]");
        assert_eq!(told("\n[job\n"), "line 2: \"[job\": no ] at its end");
        assert!(told("[j]\nsize=${NOPE}\n").starts_with("line 2: ${NOPE} is not set"));
        assert!(told("[j]\ninclude x\n").contains("line 2: include \"x\": no such file"));
        assert!(told("[j]\ninclude itself\n").contains("too deep"));
        assert!(told("[j]\ninclude bad\n").contains("no sections"));
    }
}
