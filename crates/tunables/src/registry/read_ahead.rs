//! `read_ahead`: the window that an open file gets when it is opened.

use std::path::PathBuf;

use units::PageSize;

use crate::{Checked, Site, Tunable, TunableError, Value};

/// Read-ahead, at `/sys/class/bdi/<bdi>/read_ahead_kb` in KiB.
pub(super) struct ReadAhead;

impl Tunable for ReadAhead {
    fn name(&self) -> &'static str {
        "read_ahead"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["read_ahead_kb", "read_ahead_kib", "readahead", "read-ahead", "ra"]
    }

    fn json_key(&self) -> &'static str {
        "read_ahead_kib"
    }

    fn summary(&self) -> &'static str {
        "the most that the kernel reads ahead of a stream, for files opened from now on"
    }

    fn order(&self) -> u8 {
        // Last: writing max_sectors_kb, rotational or the scheduler may change it.
        200
    }

    fn parse(&self, _name: &str, _text: &str) -> Result<Value, TunableError> {
        todo!()
    }

    fn show(&self, _value: &Value) -> String {
        todo!()
    }

    fn to_json(&self, _value: &Value) -> serde_json::Value {
        todo!()
    }

    fn from_json(&self, _json: &serde_json::Value) -> Result<Value, TunableError> {
        todo!()
    }

    fn validate(&self, _value: &Value, _page: PageSize) -> Result<Checked, TunableError> {
        todo!()
    }

    fn file(&self, site: &Site) -> PathBuf {
        site.bdi.dir().join("read_ahead_kb")
    }

    fn encode(&self, _value: &Value) -> Result<String, TunableError> {
        todo!()
    }

    fn decode(&self, _text: &str) -> Option<Value> {
        todo!()
    }
}
