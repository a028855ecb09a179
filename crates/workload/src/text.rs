//! Workloads as TOML: a flat table of keys. Printing and parsing are inverse.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::VariantNames;
use units::{Bytes, Nanos, ParseUnitError};

use crate::replay::TraceReplay;
use crate::{Outside, Pattern, Workload, WorkloadError};

/// A declaration as written: sizes and times as text. Keys that may be missing are `None`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: String,
    pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    theta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_block: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_open_file: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact: Option<bool>,
    block: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_min: Option<String>,
    readers: Option<u32>,
    sharing: Option<String>,
    files_per_reader: Option<u32>,
    think: Option<String>,
    access: Option<String>,
    hint: Option<String>,
    layout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    // The only table, so it is last.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<Outside>,
}

fn word<T: FromStr + VariantNames>(key: &'static str, text: &str) -> Result<T, WorkloadError> {
    text.parse().map_err(|_| unknown_word(key, text, T::VARIANTS))
}

fn unknown_word(key: &'static str, value: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::UnknownWord { key, value: value.to_owned(), known: known.join(", ") }
}

fn print_word(value: impl Into<&'static str>) -> String {
    value.into().to_owned()
}

fn unit<T: FromStr<Err = ParseUnitError>>(
    key: &'static str,
    text: &str,
) -> Result<T, WorkloadError> {
    text.parse().map_err(|source| WorkloadError::Unit { key, source })
}

/// Returns the shortest text for this amount: `64K`, not `65536B`.
fn print_bytes(bytes: Bytes) -> String {
    let exact = |shift: u32| bytes.get() >> shift << shift == bytes.get();
    match bytes.get() {
        0 => "0".to_owned(),
        n if exact(40) => format!("{}T", n >> 40),
        n if exact(30) => format!("{}G", n >> 30),
        n if exact(20) => format!("{}M", n >> 20),
        n if exact(10) => format!("{}K", n >> 10),
        n => format!("{n}B"),
    }
}

/// Formats a time in the largest unit that divides it; [`Nanos`] itself prints rounded.
fn print_time(time: Nanos) -> String {
    match time.get() {
        0 => "0".to_owned(),
        n if n.is_multiple_of(1_000_000_000) => format!("{}s", n / 1_000_000_000),
        n if n.is_multiple_of(1_000_000) => format!("{}ms", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    }
}

impl Declaration {
    /// Returns the pattern with its keys. Rejects a key that does not apply, because its author
    /// expected an effect.
    fn pattern(&self) -> Result<Pattern, WorkloadError> {
        let name = Pattern::VARIANTS.iter().find(|name| **name == self.pattern);
        let name =
            *name.ok_or_else(|| unknown_word("pattern", &self.pattern, Pattern::VARIANTS))?;
        let (pattern, own): (Pattern, &[&str]) = match name {
            "uniform" => (Pattern::Uniform, &[]),
            "zipf" => {
                let theta = self.need(self.theta, name, "theta", "theta = 0.99")?;
                (Pattern::Zipf { theta }, &["theta"])
            }
            "stride" => {
                let step = self.need(self.step.as_deref(), name, "step", "step = \"256K\"")?;
                (Pattern::Stride { step: unit("step", step)? }, &["step"])
            }
            "backward" => (Pattern::Backward, &[]),
            "write" => (Pattern::Write, &[]),
            "rewrite" => (Pattern::Rewrite, &[]),
            "seek-and-read" => {
                let blocks = self.need(self.blocks, name, "blocks", "blocks = 16")?;
                (Pattern::SeekAndRead { blocks }, &["blocks"])
            }
            "interleaved" => {
                let streams = self.need(self.streams, name, "streams", "streams = 4")?;
                (Pattern::Interleaved { streams }, &["streams"])
            }
            "mixed" => (self.mixed()?, &["random_fraction", "random_block", "same_open_file"]),
            "disorder" => {
                let span = self.need(self.span, name, "span", "span = 4")?;
                (Pattern::Disorder { span }, &["span"])
            }
            "trace" => (Pattern::Trace, &["trace", "trace_digest", "pace", "compact"]),
            "outside" => (Pattern::Outside, &[]),
            _ => (Pattern::Sequential, &[]),
        };
        match self.pattern_keys().find(|key| !own.contains(key)) {
            Some(key) => Err(WorkloadError::ForeignKey { key, pattern: name }),
            None => Ok(pattern),
        }
    }

    fn mixed(&self) -> Result<Pattern, WorkloadError> {
        let example = "random_fraction = 0.1";
        let random_fraction =
            self.need(self.random_fraction, "mixed", "random_fraction", example)?;
        let random_block = self.random_block.as_deref().unwrap_or(&self.block);
        Ok(Pattern::Mixed {
            random_fraction,
            random_block: unit("random_block", random_block)?,
            same_open_file: self.same_open_file.unwrap_or(false),
        })
    }

    fn replay(&self) -> Result<Option<TraceReplay>, WorkloadError> {
        let Some(trace) = &self.trace else { return Ok(None) };
        let digest = self.trace_digest.as_deref().unwrap_or("0");
        let digest = u64::from_str_radix(digest, 16).map_err(|_| {
            WorkloadError::out_of_range("trace_digest", digest, "hexadecimal".to_owned())
        })?;
        let pace = word("pace", self.pace.as_deref().unwrap_or("asap"))?;
        let compact = self.compact.unwrap_or(false);
        Ok(Some(TraceReplay::declared(trace.clone(), digest, pace, compact)))
    }

    fn set_replay(&mut self, replay: &TraceReplay) {
        self.trace = Some(replay.trace.clone());
        self.trace_digest = Some(format!("{:016x}", replay.digest));
        self.pace = Some(print_word(replay.pace));
        self.compact = replay.compact.then_some(true);
    }

    fn need<T>(
        &self,
        value: Option<T>,
        pattern: &'static str,
        key: &'static str,
        example: &'static str,
    ) -> Result<T, WorkloadError> {
        value.ok_or(WorkloadError::MissingKey { key, pattern, example })
    }

    /// Returns the given keys that belong to single patterns.
    fn pattern_keys(&self) -> impl Iterator<Item = &'static str> {
        [
            ("theta", self.theta.is_some()),
            ("step", self.step.is_some()),
            ("blocks", self.blocks.is_some()),
            ("streams", self.streams.is_some()),
            ("random_fraction", self.random_fraction.is_some()),
            ("random_block", self.random_block.is_some()),
            ("same_open_file", self.same_open_file.is_some()),
            ("span", self.span.is_some()),
            ("trace", self.trace.is_some()),
            ("trace_digest", self.trace_digest.is_some()),
            ("pace", self.pace.is_some()),
            ("compact", self.compact.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }

    fn set_pattern(&mut self, pattern: Pattern) {
        match pattern {
            Pattern::Sequential
            | Pattern::Uniform
            | Pattern::Backward
            | Pattern::Write
            | Pattern::Rewrite
            | Pattern::Trace
            | Pattern::Outside => {}
            Pattern::Zipf { theta } => self.theta = Some(theta),
            Pattern::Stride { step } => self.step = Some(print_bytes(step)),
            Pattern::SeekAndRead { blocks } => self.blocks = Some(blocks),
            Pattern::Interleaved { streams } => self.streams = Some(streams),
            Pattern::Mixed { random_fraction, random_block, same_open_file } => {
                self.random_fraction = Some(random_fraction);
                self.random_block = Some(print_bytes(random_block));
                self.same_open_file = Some(same_open_file);
            }
            Pattern::Disorder { span } => self.span = Some(span),
        }
    }
}

impl TryFrom<Declaration> for Workload {
    type Error = WorkloadError;

    fn try_from(text: Declaration) -> Result<Self, WorkloadError> {
        let pattern = text.pattern()?;
        let workload = Self {
            pattern,
            replay: text.replay()?,
            block: unit("block", &text.block)?,
            block_min: text.block_min.as_deref().map(|size| unit("block_min", size)).transpose()?,
            readers: text.readers.unwrap_or(1),
            sharing: word("sharing", text.sharing.as_deref().unwrap_or("own-file"))?,
            files_per_reader: text.files_per_reader.unwrap_or(1),
            think: unit("think", text.think.as_deref().unwrap_or("0"))?,
            access: word("access", text.access.as_deref().unwrap_or("read"))?,
            hint: word("hint", text.hint.as_deref().unwrap_or("none"))?,
            layout: word("layout", text.layout.as_deref().unwrap_or("contiguous"))?,
            file_size: text.file_size.as_deref().map(|size| unit("file_size", size)).transpose()?,
            zone: text.zone.as_deref().map(|zone| word("zone", zone)).transpose()?,
            requests: text.requests,
            outside: text.outside,
            name: text.name,
        };
        workload.validate()?;
        Ok(workload)
    }
}

impl From<&Workload> for Declaration {
    fn from(workload: &Workload) -> Self {
        let mut text = Self {
            name: workload.name.clone(),
            pattern: print_word(workload.pattern),
            block: print_bytes(workload.block),
            block_min: workload.block_min.map(print_bytes),
            readers: Some(workload.readers),
            sharing: Some(print_word(workload.sharing)),
            files_per_reader: Some(workload.files_per_reader),
            think: Some(print_time(workload.think)),
            access: Some(print_word(workload.access)),
            hint: Some(print_word(workload.hint)),
            layout: Some(print_word(workload.layout)),
            file_size: workload.file_size.map(print_bytes),
            zone: workload.zone.map(print_word),
            requests: workload.requests,
            outside: workload.outside.clone(),
            ..Self::default()
        };
        text.set_pattern(workload.pattern);
        if let Some(replay) = &workload.replay {
            text.set_replay(replay);
        }
        text
    }
}

impl Workload {
    /// Parses and checks a declaration.
    pub fn from_toml(text: &str) -> Result<Self, WorkloadError> {
        let declaration: Declaration = toml::from_str(text).map_err(|error| {
            let place = units::text::SourceLocation::from_offset(
                text,
                error.span().map_or(0, |span| span.start),
            );
            let problem =
                format!("{place}: {}", units::text::explain_serde_message(error.message()));
            WorkloadError::Syntax { problem }
        })?;
        declaration.try_into()
    }

    /// Formats the declaration, defaults included; [`Workload::from_toml`] restores the same
    /// workload.
    pub fn to_toml(&self) -> String {
        toml::to_string(&Declaration::from(self)).expect("a flat table of words and numbers")
    }
}

/// Serializes the declaration of the workload, which is checked when it is parsed.
impl Serialize for Workload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Declaration::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Declaration::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
    }
}
