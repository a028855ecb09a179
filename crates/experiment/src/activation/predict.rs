//! Predicts the pages that each operation caches, with a policy and a model of the page cache.

use policy::{
    Advice, Cache, Call, Extent, FileCache, FileId, FileShape, Mapping, Page, Policy, StreamId,
    read,
};
use units::{Bytes, Pages};

use super::pattern::{Op, PatternStep, ReadPattern};

pub(super) type CachedExtents = Vec<Vec<Extent>>;

const PAGE_BYTES: u64 = 4096;
pub(super) fn predict(
    mut policy: Box<dyn Policy>,
    shape: FileShape,
    pattern: &ReadPattern,
) -> CachedExtents {
    let mut cache = FileCache::new(shape);
    for file in 0..pattern.files {
        policy.open(&mut cache, stream(file), FileId(0));
    }
    let pages = cache.file_pages();
    let mut mapping = Mapping::new(stream(0), pages);
    let mut before = Vec::new();
    let mut steps = CachedExtents::with_capacity(pattern.ops.len());
    for op in &pattern.ops {
        act(policy.as_mut(), &mut cache, &mut mapping, *op);
        let now = cached(&cache, pages);
        steps.push(grown(&before, &now));
        before = now;
    }
    steps
}

fn stream(file: usize) -> StreamId {
    StreamId(u32::try_from(file).unwrap_or(u32::MAX))
}

fn act(policy: &mut dyn Policy, cache: &mut FileCache, mapping: &mut Mapping, op: Op) {
    match op.act {
        PatternStep::Read { page, pages, .. } => {
            let call = Call {
                offset: Bytes::new(page * PAGE_BYTES),
                length: Bytes::new(pages * PAGE_BYTES),
            };
            read(policy, cache, stream(op.file), call);
        }
        PatternStep::Touch { page } => {
            mapping.touch(policy, cache, Page::new(page));
        }
        PatternStep::AdviseRandom => policy.advise(cache, stream(op.file), Advice::Random),
        PatternStep::AdviseSequential => policy.advise(cache, stream(op.file), Advice::Sequential),
    }
}

fn cached(cache: &FileCache, pages: Pages) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for folio in cache.tree().folios(Extent::new(Page::FIRST, pages)) {
        match extents.last_mut() {
            Some(last) if last.end() == folio.head => last.pages += folio.pages(),
            _ => extents.push(Extent::new(folio.head, folio.pages())),
        }
    }
    extents
}

/// Returns the part of `now` not in `before`. Both ascend without overlap; nothing is evicted.
pub(super) fn grown(before: &[Extent], now: &[Extent]) -> Vec<Extent> {
    let mut new = Vec::new();
    let mut old = before.iter().peekable();
    for extent in now {
        let mut at = extent.start;
        while let Some(known) = old.peek().filter(|known| known.start < extent.end()) {
            if known.start > at {
                new.push(Extent::new(at, known.start.since(at)));
            }
            at = known.end();
            old.next();
        }
        if at < extent.end() {
            new.push(Extent::new(at, extent.end().since(at)));
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use policy::DeviceLimits;

    use super::super::pattern::all;
    use super::*;

    fn shape(folio_limit: Option<u8>) -> FileShape {
        let limits = DeviceLimits { read_ahead: Pages::new(32), max_request: Pages::new(320) };
        FileShape { size: Bytes::from_mib(16), folio_limit, limits }
    }

    fn sizes(name: &str, folio_limit: Option<u8>) -> Vec<u64> {
        let patterns = all();
        let pattern = patterns.iter().find(|pattern| pattern.name == name).unwrap();
        let steps = predict(policy::build("linux-6.18").unwrap(), shape(folio_limit), pattern);
        let sizes = steps.iter().map(|step| step.iter().map(|e| e.pages.get()).sum::<u64>());
        sizes.filter(|size| *size > 0).collect()
    }

    /// The expected windows were recorded on a 6.18.44 kernel.
    #[test]
    fn recorded_windows_are_predicted() {
        assert_eq!(sizes("sequential", Some(9))[..9], [4, 8, 4, 8, 8, 16, 16, 32, 32]);
        assert_eq!(sizes("sequential", None)[..5], [4, 8, 16, 32, 32]);
        assert_eq!(sizes("middle", Some(9))[..8], [1, 4, 7, 4, 8, 8, 16, 16]);
        assert_eq!(sizes("backward", Some(9)), [1; 64]);
        assert_eq!(sizes("random", None), [1; 64]);
        assert_eq!(sizes("stride-2", Some(9))[..4], [1, 4, 4, 4]);
    }

    #[test]
    fn what_is_new_is_told_from_what_was_there() {
        let extents = |pairs: &[(u64, u64)]| -> Vec<Extent> {
            pairs.iter().map(|(at, n)| Extent::new(Page::new(*at), Pages::new(*n))).collect()
        };
        let now = extents(&[(0, 10), (20, 5)]);
        assert_eq!(grown(&[], &now), now);
        assert_eq!(grown(&now, &now), []);
        assert_eq!(grown(&extents(&[(2, 3), (20, 2)]), &now), extents(&[(0, 2), (5, 5), (22, 3)]));
        assert_eq!(grown(&extents(&[(0, 1), (9, 1)]), &now), extents(&[(1, 8), (20, 5)]));
    }
}
