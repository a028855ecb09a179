//! The operations of a pattern.

use serde::Deserialize;
use serde_json::Value;

/// An operation on the file of a pattern. Labels identify open files. The label of a mapping is `m`
/// followed by the label of its open file.
#[derive(Debug, PartialEq)]
pub(super) enum Operation {
    Open(String),
    Close(String),
    Fadvise { file: String, advice: String, offset: u64, length: u64 },
    Readahead { file: String, offset: u64, length: u64 },
    Mmap(String),
    Madvise { file: String, advice: String, offset: u64, length: Option<u64> },
    Run { times: u64, accesses: Vec<PatternAccess> },
    BeginObserve,
}

/// A read call, or an access to one byte of a mapping, repeated with an offset that grows by
/// `step`.
#[derive(Debug, PartialEq)]
pub(super) struct PatternAccess {
    pub(super) target: String,
    pub(super) offset: i64,
    pub(super) length: u64,
    pub(super) step: i64,
}

impl PatternAccess {
    /// Returns the offset of repetition `nth`; `None` if it is before the start of the file.
    pub(super) fn offset_of(&self, nth: u64) -> Option<u64> {
        let moved = self.step.checked_mul(i64::try_from(nth).ok()?)?;
        u64::try_from(self.offset.checked_add(moved)?).ok()
    }
}

impl Operation {
    /// Parses one operation.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let fail = || format!("cannot read the operation {value}");
        let words = value.as_array().ok_or_else(fail)?;
        let name = words.first().and_then(Value::as_str).ok_or_else(fail)?;
        read(name, &words[1..]).ok_or_else(fail)
    }
}

fn read(name: &str, words: &[Value]) -> Option<Operation> {
    let text = |nth: usize| words.get(nth).and_then(label);
    let number = |nth: usize| words.get(nth).and_then(Value::as_u64);
    Some(match name {
        "open" => Operation::Open(text(0)?),
        "close" => Operation::Close(text(0)?),
        "fadvise" => Operation::Fadvise {
            file: text(0)?,
            advice: text(1)?,
            offset: number(2)?,
            length: number(3)?,
        },
        "readahead" => {
            Operation::Readahead { file: text(0)?, offset: number(1)?, length: number(2)? }
        }
        "mmap" => Operation::Mmap(text(0)?),
        "madvise" => Operation::Madvise {
            file: text(0)?,
            advice: text(1)?,
            offset: number(2).unwrap_or(0),
            length: number(3),
        },
        "run" => Operation::Run { times: number(0)?, accesses: accesses(words.get(1)?)? },
        "list" => Operation::Run { times: 1, accesses: accesses(words.first()?)? },
        "begin_observe" => Operation::BeginObserve,
        _ => return None,
    })
}

/// Returns a label, which may be written as a number.
fn label(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn accesses(value: &Value) -> Option<Vec<PatternAccess>> {
    value.as_array()?.iter().map(access).collect()
}

fn access(value: &Value) -> Option<PatternAccess> {
    let (target, offset, length) = match value.as_array()?.len() {
        3 => <(Value, i64, u64)>::deserialize(value).ok()?,
        _ => {
            let (target, offset, length, step) =
                <(Value, i64, u64, i64)>::deserialize(value).ok()?;
            return Some(PatternAccess { target: label(&target)?, offset, length, step });
        }
    };
    Some(PatternAccess { target: label(&target)?, offset, length, step: 0 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_of_every_kind_are_parsed() {
        let open = Operation::parse(&json!(["open", 0]));
        assert_eq!(open, Ok(Operation::Open("0".to_owned())));
        let all = [
            json!(["close", "a"]),
            json!(["fadvise", 0, "WILLNEED", 0, 4096]),
            json!(["readahead", 0, 0, 4096]),
            json!(["mmap", 0]),
            json!(["madvise", 0, "RANDOM"]),
            json!(["madvise", 0, "RANDOM", 4096, 8192]),
            json!(["list", [["m0", 4096, 1]]]),
            json!(["begin_observe"]),
        ];
        for operation in all {
            assert!(Operation::parse(&operation).is_ok(), "{operation}");
        }
    }

    #[test]
    fn repeated_accesses_move_by_their_step_and_stop_at_the_start_of_the_file() {
        let run = Operation::parse(&json!(["run", 3, [[0, 8192, 4096, -4096]]]));
        let Ok(Operation::Run { times: 3, accesses }) = run else { panic!("{run:?}") };
        let at: Vec<_> = (0..4).map(|nth| accesses[0].offset_of(nth)).collect();
        assert_eq!(at, [Some(8192), Some(4096), Some(0), None]);
        assert_eq!(accesses[0].offset_of(u64::MAX), None);
    }

    #[test]
    fn an_invalid_operation_is_named() {
        for broken in [json!(["dance", 0]), json!(["open"]), json!({}), json!(["run", -1, []])] {
            assert!(Operation::parse(&broken).is_err_and(|why| why.contains("cannot read")));
        }
    }
}
