//! `MODEL[,key=value…]` taken apart.

use std::path::Path;

use super::SpecError;

/// What people write of a device: a model, and what is to be different of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// The name of a preset, the path of a TOML file, or `-` for standard input.
    pub model: &'a str,
    /// Keys and values in the order in which they stand; no key stands there twice.
    pub settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    /// Takes `MODEL[,key=value…]` apart.
    ///
    /// # Errors
    ///
    /// If the model or a setting is missing, or a key is there twice.
    pub fn parse(text: &'a str) -> Result<Self, SpecError> {
        let mut words = text.split(',').map(str::trim);
        let model = words.next().filter(|word| !word.is_empty()).ok_or(SpecError::NoModel)?;
        let (mut settings, mut before) = (Vec::new(), model);
        for word in words {
            let (key, value) = setting(word, before)?;
            if settings.iter().any(|(known, _)| *known == key) {
                return Err(SpecError::Twice { key: key.to_owned() });
            }
            settings.push((key, value));
            before = word;
        }
        Ok(Self { model, settings })
    }

    /// The path of the file, if the model is none of the presets; its `/` or `.toml` tells it.
    pub fn file(&self) -> Option<&'a Path> {
        let is_file =
            self.model.contains('/') || self.model.ends_with(".toml") || self.model == "-";
        is_file.then(|| Path::new(self.model))
    }
}

/// Key and value of a word that stands behind another.
fn setting<'a>(word: &'a str, before: &str) -> Result<(&'a str, &'a str), SpecError> {
    if word.is_empty() {
        return Err(SpecError::EmptySetting { before: before.to_owned() });
    }
    let pair = word.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    pair.filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| SpecError::NoSetting { word: word.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_apart() {
        let words = Words::parse("hdd-2008, cache = 1G,rpm=5400").unwrap();
        assert_eq!(words.model, "hdd-2008");
        assert_eq!(words.settings, [("cache", "1G"), ("rpm", "5400")]);
        assert_eq!(words.file(), None);
        for path in ["./mine", "mine.toml", "/a/b.toml"] {
            assert_eq!(Words::parse(path).unwrap().file(), Some(Path::new(path)));
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_place() {
        let error = |text: &str| Words::parse(text).expect_err(text).to_string();
        for text in ["", " ", ",rpm=5400"] {
            assert!(error(text).contains("`foreread models`"), "{}", error(text));
        }
        assert!(error("nvme,").contains("after \"nvme,\""), "{}", error("nvme,"));
        assert!(error("nvme,,dies=4").contains("after \"nvme,\""));
        assert!(error("nvme,dies=4,,qd=3").contains("after \"dies=4,\""));
        assert!(error("nvme,dies").contains("\"dies\" is no setting: write key=value"));
        assert!(error("nvme,=4").contains("\"=4\" is no setting"));
        assert!(error("nvme,dies=4,dies=8").contains("dies is given twice"));
    }
}
