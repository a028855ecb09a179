//! Properties of every read-ahead algorithm, for random operations.

use foreread_policy::cache::PAGE;
use foreread_policy::{
    Advice, Cache, Call, DeviceLimits, Extent, FileCache, FileId, FileShape, Folio, MapAdvice,
    Mapping, Memory, Page, Policy, PolicySpec, StreamId, Submission, read,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use units::{Bytes, Nanos, Pages};

/// An operation of an application.
#[derive(Clone, Debug)]
pub enum Step {
    Read {
        stream: u32,
        offset: u64,
        length: u64,
    },
    /// Reads from the end of the stream's previous read.
    Next {
        stream: u32,
        length: u64,
        times: u64,
    },
    Touch {
        page: u64,
    },
    MapAdvice {
        start: u64,
        pages: u64,
        advice: MapAdvice,
    },
    Advise {
        stream: u32,
        advice: Advice,
    },
    Evict {
        page: u64,
        used: bool,
    },
    Reopen {
        stream: u32,
    },
    Settings {
        read_ahead: u64,
        max_request: u64,
    },
    Wait {
        millis: u64,
        aged: u64,
        available: u64,
        congested: bool,
    },
}

pub fn step() -> impl Strategy<Value = Step> {
    let stream = 0u32..4;
    let page = prop_oneof![4 => 0u64..6000, 1 => Just(u64::MAX / 8192)];
    let offset = prop_oneof![6 => 0u64..24_000_000, 1 => Just(u64::MAX - 5)];
    let length = prop_oneof![
        3 => 0u64..20_000,
        2 => Just(4096u64),
        1 => 0u64..3_000_000,
        1 => Just(u64::MAX),
    ];
    let advice = (page.clone(), 0u64..3000).prop_map(|(start, pages)| {
        Advice::WillNeed(Extent::new(Page::new(start), Pages::new(pages)))
    });
    let advice =
        prop_oneof![Just(Advice::Normal), Just(Advice::Sequential), Just(Advice::Random), advice];
    let map_advice = (any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(sequential, random, huge)| MapAdvice { sequential, random, huge, code: None });
    prop_oneof![
        6 => (stream.clone(), offset, length.clone())
            .prop_map(|(stream, offset, length)| Step::Read { stream, offset, length }),
        10 => (stream.clone(), 1u64..100_000, 1u64..40)
            .prop_map(|(stream, length, times)| Step::Next { stream, length, times }),
        4 => page.clone().prop_map(|page| Step::Touch { page }),
        1 => (page.clone(), 0u64..3000, map_advice)
            .prop_map(|(start, pages, advice)| Step::MapAdvice { start, pages, advice }),
        2 => (stream.clone(), advice).prop_map(|(stream, advice)| Step::Advise { stream, advice }),
        3 => (page, any::<bool>()).prop_map(|(page, used)| Step::Evict { page, used }),
        1 => stream.prop_map(|stream| Step::Reopen { stream }),
        1 => (0u64..3000, 0u64..600)
            .prop_map(|(read_ahead, max_request)| Step::Settings { read_ahead, max_request }),
        2 => (0u64..3000, 0u64..5000, 0u64..100_000, any::<bool>()).prop_map(
            |(millis, aged, available, congested)| Step::Wait { millis, aged, available, congested }
        ),
    ]
}

/// A cache of one file that checks each submission.
struct CheckedCache {
    file: FileCache,
    now: Nanos,
    memory: Memory,
    congested: bool,
}

impl Cache for CheckedCache {
    fn file_size(&self) -> Bytes {
        self.file.file_size()
    }
    fn folio(&self, page: Page) -> Option<Folio> {
        self.file.folio(page)
    }
    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.next_miss(from, max)
    }
    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.prev_miss(from, max)
    }
    fn submit(&mut self, window: Submission) -> Pages {
        let before = self.file.tree().cached();
        let end = self.file_pages().get();
        let (start, stop) = (window.start.get().min(end), window.start.plus(window.pages).get());
        // Checking every folio each time would take too long in a large cache.
        let looked_at = Pages::new(if before.get() < 2000 { u64::MAX } else { 64 });
        let cached = self.file.tree().folios(Extent::new(
            window.start.minus(Pages::new(16)),
            looked_at.min(self.file_pages()),
        ));
        let cached: Vec<_> = cached.map(|folio| (folio.head, folio.order)).collect();
        let new = self.file.submit(window);
        // The part of the window within the file is now cached, and no page was lost.
        let rest = Extent::new(Page::new(start), Pages::new(stop.min(end).saturating_sub(start)));
        assert_eq!(self.file.tree().present_run(rest.start, rest.pages), rest.pages);
        assert_eq!(self.file.tree().cached(), before + new);
        for (head, order) in cached {
            assert_eq!(
                self.file.folio(head).map(|folio| (folio.head, folio.order)),
                Some((head, order))
            );
        }
        new
    }
    fn set_mark(&mut self, page: Page) {
        self.file.set_mark(page);
    }
    fn clear_mark(&mut self, page: Page) {
        self.file.clear_mark(page);
    }
    fn is_used(&self, page: Page) -> bool {
        self.file.is_used(page)
    }
    fn set_used(&mut self, extent: Extent) {
        self.file.set_used(extent);
    }
    fn limits(&self) -> DeviceLimits {
        self.file.limits()
    }
    fn folio_limit(&self) -> Option<u8> {
        self.file.folio_limit()
    }
    fn congested(&self) -> bool {
        self.congested
    }
    fn now(&self) -> Nanos {
        self.now
    }
    fn memory(&self) -> Memory {
        self.memory
    }
}

struct Run {
    policy: Box<dyn Policy>,
    cache: CheckedCache,
    mapping: Mapping,
    positions: [u64; 4],
}

impl Run {
    fn new(policy: &PolicySpec, shape: FileShape) -> Self {
        let memory = Memory {
            total: Pages::new(200_000),
            available: Pages::new(100_000),
            aged: Pages::ZERO,
            pending: Pages::ZERO,
        };
        let file = FileCache::new(shape);
        let cache = CheckedCache { file, now: Nanos::ZERO, memory, congested: false };
        let pages = cache.file_pages();
        let policy = policy.build().expect("a policy of the registry");
        let mut run =
            Self { policy, cache, mapping: Mapping::new(StreamId(0), pages), positions: [0; 4] };
        for stream in 0..4 {
            run.policy.open(&mut run.cache, StreamId(stream), FileId(0));
        }
        run
    }

    fn read(&mut self, stream: u32, offset: u64, length: u64) {
        let size = self.cache.file_size();
        let call = Call { offset: Bytes::new(offset), length: Bytes::new(length) };
        let got = read(&mut *self.policy, &mut self.cache, StreamId(stream), call);
        let left = size.get().saturating_sub(offset);
        assert_eq!(got.get(), length.min(left), "bytes delivered are bytes asked for");
        self.positions[stream as usize] = offset.saturating_add(got.get());
        let first = Page::FIRST.plus(call.offset.to_pages_floor(PAGE));
        let end =
            Page::FIRST.plus(Bytes::new(offset.saturating_add(got.get())).to_pages_ceil(PAGE));
        let pages = end.since(first);
        if !got.is_zero() {
            assert_eq!(self.cache.file.tree().present_run(first, pages), pages);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read { stream, offset, length } => self.read(stream, offset, length),
            Step::Next { stream, length, times } => {
                for _ in 0..times {
                    self.read(stream, self.positions[stream as usize], length);
                }
            }
            Step::Touch { page } => {
                self.mapping.touch(&mut *self.policy, &mut self.cache, Page::new(page));
            }
            Step::MapAdvice { start, pages, advice } => {
                let extent = Extent::new(Page::new(start), Pages::new(pages));
                self.mapping.advise(extent, |to| *to = advice);
            }
            Step::Advise { stream, advice } => {
                self.policy.advise(&mut self.cache, StreamId(stream), advice);
            }
            Step::Evict { page, used } => {
                let page = Page::new(page);
                if self.cache.folio(page).is_some() {
                    self.policy.evict(FileId(0), page, used);
                    self.cache.file.remove(page);
                }
            }
            Step::Reopen { stream } => {
                self.policy.close(&mut self.cache, StreamId(stream));
                self.read(stream, 0, 4096);
                self.policy.open(&mut self.cache, StreamId(stream), FileId(0));
            }
            Step::Settings { read_ahead, max_request } => {
                self.cache.file.set_limits(DeviceLimits {
                    read_ahead: Pages::new(read_ahead),
                    max_request: Pages::new(max_request),
                });
            }
            Step::Wait { millis, aged, available, congested } => {
                self.cache.now += Nanos::from_millis(millis);
                self.cache.memory.aged += Pages::new(aged);
                self.cache.memory.available = Pages::new(available);
                self.cache.congested = congested;
            }
        }
    }

    fn reads(&mut self) -> Vec<Extent> {
        self.cache.file.take_reads()
    }
}

pub fn shape() -> impl Strategy<Value = FileShape> {
    let size = prop_oneof![0u64..5, 1u64..100_000, 1u64..24_000_000];
    let limit = prop_oneof![Just(None), (0u8..=9).prop_map(Some)];
    (size, limit, 0u64..2200, 0u64..600).prop_map(|(size, folio_limit, read_ahead, max_request)| {
        let limits = DeviceLimits {
            read_ahead: Pages::new(read_ahead),
            max_request: Pages::new(max_request),
        };
        FileShape { size: Bytes::new(size), folio_limit, limits }
    })
}

/// Checks that there is no panic; that no page is read beyond the end of the file, twice, or while
/// it is cached; that every requested byte is read; and that a repetition gives the same reads.
pub fn keeps_its_contract(policy: &PolicySpec, shape: FileShape, steps: &[Step]) -> TestCaseResult {
    let (mut run, mut again) = (Run::new(policy, shape), Run::new(policy, shape));
    let end = run.cache.file_pages().get();
    for step in steps {
        run.step(step);
        again.step(step);
        let reads = run.reads();
        for read in &reads {
            prop_assert!(read.end().get() <= end, "{policy}: {read:?} of {end} pages");
            prop_assert!(!read.pages.is_zero(), "{policy}: an empty read");
        }
        prop_assert_eq!(reads, again.reads(), "{} is not deterministic", policy);
    }
    Ok(())
}
