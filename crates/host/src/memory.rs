//! Memory statistics: reclaimed pages and pressure.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::path::{Path, PathBuf};

use units::{Bytes, Nanos};

use crate::{HostError, Root};

/// Counters of `/proc/vmstat` that reveal a disturbed trial, or the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// Number of writes of 1 or 3 to `drop_caches`.
    pub drop_pagecache: u64,
    /// Pages scanned by processes in direct reclaim.
    pub pgscan_direct: u64,
}

impl VmStat {
    /// Reads `/proc/vmstat`; a missing counter is 0.
    pub fn read(root: &Root) -> Result<Self, HostError> {
        Ok(Self::parse(&root.read("/proc/vmstat")?))
    }

    /// Parses `/proc/vmstat`.
    pub fn parse(text: &str) -> Self {
        let mut stat = Self::default();
        for (name, count) in text.lines().filter_map(|line| line.split_once(' ')) {
            let Ok(count) = count.trim().parse() else { continue };
            match name {
                "drop_pagecache" => stat.drop_pagecache = count,
                "pgscan_direct" => stat.pgscan_direct = count,
                _ => {}
            }
        }
        stat
    }
}

impl Sub for VmStat {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            drop_pagecache: self.drop_pagecache.saturating_sub(earlier.drop_pagecache),
            pgscan_direct: self.pgscan_direct.saturating_sub(earlier.pgscan_direct),
        }
    }
}

/// One line of `/proc/pressure/memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureLine {
    /// Percentage of the last 10 s in which tasks were stalled.
    pub avg10: f64,
    /// Total stall time since boot.
    pub total: Nanos,
}

impl PressureLine {
    /// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`; the total is in microseconds.
    fn parse(line: &str, kind: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        if words.next()? != kind {
            return None;
        }
        let mut parsed = Self::default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            match name {
                "avg10" => parsed.avg10 = percent(value)?,
                "total" => {
                    parsed.total = Nanos::new(value.parse::<u64>().ok()?.saturating_mul(1000))
                }
                _ => {}
            }
        }
        Some(parsed)
    }
}

fn percent(text: &str) -> Option<f64> {
    text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0)
}

/// Memory pressure (PSI).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// The `some` line: at least one task was stalled.
    pub some: PressureLine,
}

impl Pressure {
    /// Reads `/proc/pressure/memory`; `None` if PSI is missing or disabled.
    pub fn memory(root: &Root) -> Result<Option<Self>, HostError> {
        let text = root.read_if_present("/proc/pressure/memory")?;
        Ok(text.and_then(|text| Self::parse(&text)))
    }

    /// Parses a pressure file; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let some = text.lines().find_map(|line| PressureLine::parse(line, "some"))?;
        Some(Self { some })
    }
}

/// Parses the lines of `/proc/meminfo` that are in kB (which means KiB).
pub fn parse_meminfo(text: &str) -> BTreeMap<String, Bytes> {
    text.lines()
        .filter_map(|line| {
            let (name, amount) = line.split_once(':')?;
            let kib: u64 = amount.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some((name.to_owned(), Bytes::new(kib.checked_mul(1024)?)))
        })
        .collect()
}

/// Returns the path that enables idle reclaim, or `None`: DAMON with the action `pageout`, through
/// its sysfs or `damon_reclaim`. Idle data is then reclaimed although memory is free.
pub fn idle_reclaim(root: &Root) -> Option<PathBuf> {
    const MODULE: &str = "/sys/module/damon_reclaim/parameters/enabled";
    const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds";
    let says = |path: &Path, word: &str| root.read(path).is_ok_and(|text| text == word);
    if says(Path::new(MODULE), "Y") {
        return Some(MODULE.into());
    }
    let below = |dir: &Path, what: &str| {
        let dir = dir.join(what);
        root.names(&dir).into_iter().map(move |name| dir.join(name)).collect::<Vec<_>>()
    };
    let at_work = root.names(ADMIN).into_iter().map(|name| Path::new(ADMIN).join(name));
    let at_work = at_work.filter(|kdamond| says(&kdamond.join("state"), "on"));
    let contexts = at_work.flat_map(|kdamond| below(&kdamond, "contexts"));
    let mut schemes = contexts.flat_map(|context| below(&context, "schemes"));
    schemes.find(|scheme| says(&scheme.join("action"), "pageout"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "nr_free_pages 5\ndrop_pagecache 3\npgscan_direct x\n";
        let stat = VmStat::parse(text);
        assert_eq!((stat.drop_pagecache, stat.pgscan_direct), (3, 0));
        let later = VmStat { drop_pagecache: 4, ..stat };
        assert_eq!((later - stat).drop_pagecache, 1);
        assert_eq!((stat - later).drop_pagecache, 0);
    }

    #[test]
    fn the_line_of_some_tasks_is_read() {
        let text = "full avg10=0.50 avg60=0.00 avg300=0.00 total=2\n\
                    some avg10=1.50 avg60=0.25 avg300=0.00 total=17";
        let some = Pressure::parse(text).expect("two lines").some;
        assert_eq!((some.avg10, some.total), (1.5, Nanos::from_micros(17)));
        assert_eq!(Pressure::parse("some avg10=NaN total=1"), None);
        assert_eq!(Pressure::parse(""), None);
    }

    #[test]
    fn memory_is_in_kib() {
        let memory = parse_meminfo("MemTotal:  16 kB\nHugePages_Total: 3\nMemAvailable: 4 kB");
        assert_eq!(memory.get("MemTotal"), Some(&Bytes::from_kib(16)));
        assert_eq!(memory.len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            VmStat::parse(&text);
            Pressure::parse(&text);
            parse_meminfo(&text);
        }

        #[test]
        fn text_near_the_formats_is_read_without_panic(
            text in "((some|full) ((avg10|avg60|total)=[0-9.e-]{0,22} ){0,4}\n){0,3}"
        ) {
            Pressure::parse(&text);
        }
    }

    #[test]
    fn who_reclaims_cache_that_rests_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Root::at(dir.path());
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        };
        assert_eq!(idle_reclaim(&root), None);
        let kdamond = "sys/kernel/mm/damon/admin/kdamonds/0";
        put(&format!("{kdamond}/state"), "on\n");
        put(&format!("{kdamond}/contexts/0/schemes/nr_schemes"), "2\n");
        put(&format!("{kdamond}/contexts/0/schemes/0/action"), "stat\n");
        assert_eq!(idle_reclaim(&root), None, "it only looks");
        let scheme = format!("{kdamond}/contexts/0/schemes/1");
        put(&format!("{scheme}/action"), "pageout\n");
        assert_eq!(idle_reclaim(&root), Some(Path::new("/").join(&scheme)));
        put(&format!("{kdamond}/state"), "off\n");
        assert_eq!(idle_reclaim(&root), None, "it rests");
    }
}
