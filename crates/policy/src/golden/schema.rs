//! The JSON schema of a recording.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use units::{Bytes, Kib, Pages};

use super::decision::{Decision, ReplayResult};
use super::{Difference, GoldenError, Verdict};
use crate::cache::{MAX_FILE, MAX_ORDER, PAGE};

#[derive(Deserialize)]
pub(super) struct GoldenRecording {
    /// Free text that contains the two numbers that a replay needs.
    device: String,
    pub(super) patterns: BTreeMap<String, GoldenPattern>,
    pub(super) results: BTreeMap<String, BTreeMap<String, Recorded>>,
}

#[derive(Deserialize)]
pub(super) struct GoldenPattern {
    pub(super) ops: Vec<Value>,
}

#[derive(Deserialize)]
pub(super) struct Recorded {
    pub(super) decisions: Vec<Decision>,
    cached_pages_after: u64,
}

/// The device and the file of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GoldenDevice {
    pub(super) file: Bytes,
    pub(super) max_request: Pages,
}

/// A configuration, parsed from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) folio_limit: Option<u8>,
    pub(super) read_ahead: Pages,
}

impl GoldenRecording {
    pub(super) fn device(&self) -> Result<GoldenDevice, GoldenError> {
        let fail = |wanted| GoldenError::Device { device: self.device.clone(), wanted };
        let kib = number_after(&self.device, "max_sectors_kb=")
            .ok_or_else(|| fail("it should have max_sectors_kb=N"))?;
        let pages = number_before(&self.device, " pages")
            .ok_or_else(|| fail("it should say how many pages the file has: N pages"))?;
        if pages > MAX_FILE.get() || kib > u64::from(u32::MAX) {
            return Err(fail("these numbers are too large"));
        }
        let max_request = Kib::new(kib).to_bytes().to_pages_floor(PAGE);
        Ok(GoldenDevice { file: Pages::new(pages).to_bytes(PAGE), max_request })
    }
}

/// Returns the number that follows `key` in free text.
fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = &text[text.find(key)? + key.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns the first number in free text that is followed by `unit`.
fn number_before(text: &str, unit: &str) -> Option<u64> {
    text.match_indices(unit).find_map(|(at, _)| {
        let number = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?;
        number.parse().ok()
    })
}

impl Config {
    /// Parses names such as `large_folio/ra128k` and `order0/ra1024k`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (kind, setting) = name.split_once('/')?;
        let folio_limit = match kind {
            "large_folio" => Some(MAX_ORDER),
            "order0" => None,
            _ => return None,
        };
        let kib: u32 = setting.strip_prefix("ra")?.strip_suffix('k')?.parse().ok()?;
        let read_ahead = Kib::new(u64::from(kib)).to_bytes().to_pages_floor(PAGE);
        Some(Self { folio_limit, read_ahead })
    }
}

impl Recorded {
    pub(super) fn compare(&self, made: &ReplayResult) -> Verdict {
        let count = self.decisions.len().max(made.decisions.len());
        let pair = |nth| (self.decisions.get(nth), made.decisions.get(nth));
        if let Some(nth) = (0..count).find(|&nth| pair(nth).0 != pair(nth).1) {
            let (recorded, made) = pair(nth);
            return Verdict::Differs(Difference::Decision {
                nth,
                recorded: recorded.cloned(),
                made: made.cloned(),
            });
        }
        let (recorded, made) = (self.cached_pages_after, made.cached.get());
        if recorded == made {
            Verdict::Same
        } else {
            Verdict::Differs(Difference::Cached { recorded, made })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_parsed_from_their_names() {
        let config =
            |limit, pages| Some(Config { folio_limit: limit, read_ahead: Pages::new(pages) });
        assert_eq!(Config::parse("large_folio/ra128k"), config(Some(MAX_ORDER), 32));
        assert_eq!(Config::parse("order0/ra1024k"), config(None, 256));
        // sysfs rounds down to whole pages.
        assert_eq!(Config::parse("order0/ra3k"), config(None, 0));
        for name in ["", "large_folio", "order1/ra128k", "order0/128", "order0/ra-4k"] {
            assert_eq!(Config::parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_device_is_parsed_from_free_text() {
        let prose = "loop device, max_sectors_kb=1280, so io_pages=320; the file is 49152 pages";
        assert_eq!(number_after(prose, "max_sectors_kb="), Some(1280));
        assert_eq!(number_before(prose, " pages"), Some(49152));
        assert_eq!(number_before("some pages, then 7 pages", " pages"), Some(7));
        assert_eq!(number_after(prose, "nothing"), None);
        assert_eq!(number_before("io_pages of no pages", " pages"), None);
    }
}
