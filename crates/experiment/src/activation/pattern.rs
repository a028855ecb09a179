//! The access patterns that the experiment examines.

use units::Pages;

/// The page where patterns in the middle of the file start: far from page 0, for which the kernel
/// has a separate rule.
const MIDDLE_PAGE: u64 = 2048;
/// The page where a second stream starts, after the end of the first.
const SECOND_STREAM_PAGE: u64 = 3072;
/// The size of the smallest file that all patterns fit into.
pub(super) const MIN_FILE_PAGES: Pages = Pages::new(4096);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternReader {
    Own,
    Child,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternStep {
    Read { page: u64, pages: u64, reader: PatternReader },
    Touch { page: u64 },
    AdviseRandom,
    AdviseSequential,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) file: usize,
    pub(super) act: PatternStep,
}

#[derive(Clone, Debug)]
pub(super) struct ReadPattern {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) files: usize,
    pub(super) ops: Vec<Op>,
    /// Index of the first operation that is examined; earlier ones only prepare the state.
    pub(super) from: usize,
}

impl ReadPattern {
    fn new(name: &'static str, summary: &'static str, ops: Vec<Op>) -> Self {
        let files = ops.iter().map(|op| op.file + 1).max().unwrap_or(1);
        Self { name, summary, files, ops, from: 0 }
    }

    fn from(self, from: usize) -> Self {
        Self { from, ..self }
    }
}

fn through(file: usize, page: u64, pages: u64) -> Op {
    Op { file, act: PatternStep::Read { page, pages, reader: PatternReader::Own } }
}

fn read(page: u64) -> Op {
    through(0, page, 1)
}

/// Returns `times` reads of one page each, the first at `start` and each `step` pages further.
fn stepping(start: u64, step: u64, times: u64) -> Vec<Op> {
    (0..times).map(|n| read(start + n * step)).collect()
}

/// Returns pages without a sequential pattern: the multiples of 1571 modulo 3989, from page 50 on.
fn scattered(times: u64) -> impl Iterator<Item = u64> {
    (1..=times).map(|n| (n * 1571) % 3989 + 50)
}

/// Returns all patterns, in the order of the table.
pub(super) fn all() -> Vec<ReadPattern> {
    let mut patterns = streams();
    patterns.extend(sharing());
    patterns.extend(breaks());
    patterns.extend(mapped());
    patterns
}

fn streams() -> Vec<ReadPattern> {
    let large = (0..40).map(|n| through(0, MIDDLE_PAGE + n * 16, 16)).collect();
    let backward = (0..64).map(|n| read(MIDDLE_PAGE - n)).collect();
    vec![
        ReadPattern::new("sequential", "4 KiB each from the first page on", stepping(0, 1, 400)),
        ReadPattern::new(
            "middle",
            "the same in the middle of the file",
            stepping(MIDDLE_PAGE, 1, 400),
        ),
        ReadPattern::new("large", "64 KiB each in the middle of the file", large),
        ReadPattern::new("stride-2", "every second page", stepping(MIDDLE_PAGE, 2, 64)),
        ReadPattern::new("stride-3", "every third page", stepping(MIDDLE_PAGE, 3, 64)),
        ReadPattern::new("backward", "page before page", backward),
        ReadPattern::new("random", "pages in no order", scattered(64).map(read).collect()),
    ]
}

fn sharing() -> Vec<ReadPattern> {
    let two = |second: usize| -> Vec<Op> {
        let pair = |n| [through(0, MIDDLE_PAGE + n, 1), through(second, SECOND_STREAM_PAGE + n, 1)];
        (0..100).flat_map(pair).collect()
    };
    let turns = (0..100).map(|n| through(n as usize % 2, MIDDLE_PAGE + n, 1)).collect();
    let child = |n: u64| {
        let reader = if n.is_multiple_of(2) { PatternReader::Own } else { PatternReader::Child };
        Op { file: 0, act: PatternStep::Read { page: MIDDLE_PAGE + n, pages: 1, reader } }
    };
    vec![
        ReadPattern::new("interleaved", "two streams through one open file, in turn", two(0)),
        ReadPattern::new(
            "two-open-files",
            "the same two streams, each with its own open file",
            two(1),
        ),
        ReadPattern::new("turns", "one stream, its reads in turn through two open files", turns),
        ReadPattern::new(
            "two-processes",
            "one stream, two processes in turn that share an open file",
            (0..24).map(child).collect(),
        ),
    ]
}

fn breaks() -> Vec<ReadPattern> {
    let mut seek = stepping(MIDDLE_PAGE, 1, 100);
    seek.extend(stepping(SECOND_STREAM_PAGE, 1, 100));
    let mut aside = stepping(MIDDLE_PAGE, 1, 100);
    aside.push(read(SECOND_STREAM_PAGE));
    aside.extend(stepping(MIDDLE_PAGE + 100, 1, 100));
    let advised = |advice| {
        let advise = Op { file: 0, act: advice };
        std::iter::once(advise).chain(stepping(0, 1, 200)).collect()
    };
    vec![
        ReadPattern::new("after-seek", "a stream elsewhere, after one that was abandoned", seek)
            .from(100),
        ReadPattern::new("after-aside", "a stream that continues after one read elsewhere", aside)
            .from(101),
        ReadPattern::new(
            "advice-random",
            "sequential after FADV_RANDOM",
            advised(PatternStep::AdviseRandom),
        )
        .from(1),
        ReadPattern::new(
            "advice-sequential",
            "sequential after FADV_SEQUENTIAL",
            advised(PatternStep::AdviseSequential),
        )
        .from(1),
    ]
}

fn mapped() -> Vec<ReadPattern> {
    let touch = |page| Op { file: 0, act: PatternStep::Touch { page } };
    vec![
        ReadPattern::new(
            "mmap",
            "a mapping, page after page",
            (MIDDLE_PAGE..MIDDLE_PAGE + 300).map(touch).collect(),
        ),
        ReadPattern::new(
            "mmap-random",
            "a mapping, in no order",
            scattered(12).map(touch).collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn patterns_have_names_of_their_own_and_stay_in_the_file() {
        let patterns = all();
        let names: BTreeSet<_> = patterns.iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), patterns.len());
        for pattern in &patterns {
            assert!(pattern.from < pattern.ops.len(), "{}", pattern.name);
            for op in &pattern.ops {
                let end = match op.act {
                    PatternStep::Read { page, pages, .. } => page + pages,
                    PatternStep::Touch { page } => page + 1,
                    PatternStep::AdviseRandom | PatternStep::AdviseSequential => 0,
                };
                assert!(end <= MIN_FILE_PAGES.get() && op.file < pattern.files, "{}", pattern.name);
            }
        }
        for name in ["sequential", "stride-2", "backward", "interleaved", "mmap"] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn what_is_scattered_neither_repeats_nor_follows() {
        let pages: Vec<u64> = scattered(64).collect();
        assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), 64);
        assert!(pages.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 3));
    }
}
