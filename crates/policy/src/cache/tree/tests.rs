//! Tests of the page tree.

use super::*;

fn folio(head: u64, order: u8) -> Folio {
    Folio { head: Page::new(head), order, marked: false }
}

#[test]
fn finds_the_folio_of_each_page() {
    let mut tree = PageTree::new();
    for (head, order) in [(4, 2), (8, 0), (9, 0), (16, 4), (63, 0), (64, 6), (512, 9)] {
        assert!(tree.insert(folio(head, order)));
        for page in head..head + (1 << order) {
            assert_eq!(tree.folio(Page::new(page)), Some(folio(head, order)), "page {page}");
        }
    }
    assert_eq!(tree.cached(), Pages::new(4 + 1 + 1 + 16 + 1 + 64 + 512));
    assert_eq!(tree.folio(Page::new(10)), None);
    assert_eq!(tree.folios(Extent::new(Page::FIRST, Pages::new(2000))).count(), 7);
}

#[test]
fn refuses_what_overlaps_or_is_not_aligned() {
    let mut tree = PageTree::new();
    assert!(tree.insert(folio(70, 0)));
    assert!(!tree.insert(folio(64, 3)));
    assert!(!tree.insert(folio(64, 6)));
    assert!(!tree.insert(folio(2, 2)));
    assert!(!tree.insert(folio(0, MAX_ORDER + 1)));
    assert!(tree.insert(folio(64, 2)));
    assert_eq!(tree.cached(), Pages::new(5));
}

#[test]
fn removing_gives_back_the_whole_folio_and_its_mark() {
    let mut tree = PageTree::new();
    let marked = Folio { marked: true, ..folio(128, 7) };
    assert!(tree.insert(marked));
    tree.set_mark(Page::new(200), false);
    assert_eq!(tree.folio(Page::new(130)), Some(folio(128, 7)));
    tree.set_mark(Page::new(255), true);
    assert_eq!(tree.remove(Page::new(190)), Some(marked));
    assert_eq!(tree.remove(Page::new(190)), None);
    assert_eq!(tree.cached(), Pages::ZERO);
    assert!(!tree.leaves.any_group(0, 1));
}

#[test]
fn only_cached_pages_can_have_been_used() {
    let mut tree = PageTree::new();
    tree.insert_run(Extent::new(Page::new(60), Pages::new(6)));
    tree.set_used(Extent::new(Page::new(58), Pages::new(5)));
    let used: Vec<_> = (50..70).filter(|&page| tree.is_used(Page::new(page))).collect();
    assert_eq!(used, [60, 61, 62]);
    tree.remove(Page::new(61));
    tree.insert(folio(61, 0));
    assert!(!tree.is_used(Page::new(61)));
}

#[test]
fn single_pages_are_removed_by_the_run() {
    let mut tree = PageTree::new();
    tree.insert_run(Extent::new(Page::new(4000), Pages::new(300)));
    tree.set_used(Extent::new(Page::new(4000), Pages::new(100)));
    let all = Extent::new(Page::FIRST, Pages::new(1 << 20));
    assert_eq!(tree.unused(all), (Pages::new(300), Pages::new(200)));
    assert_eq!(tree.remove_single(Page::new(3999)), None);
    let mut other = tree.clone();
    assert_eq!(other.remove_single(Page::new(4050)), Some(true));
    assert_eq!(other.remove_single(Page::new(4299)), Some(false));
    assert_eq!(other.cached(), Pages::new(298));
    let (gone, unused) = tree.remove_folios(Extent::new(Page::new(3000), Pages::new(1050)));
    assert_eq!((gone, unused, tree.cached()), (Pages::new(50), Pages::ZERO, Pages::new(250)));
    assert_eq!(tree.absent_run(Page::FIRST, Pages::new(1 << 20)), Pages::new(4050));
    assert_eq!(tree.remove_folios(all), (Pages::new(250), Pages::new(200)));
    assert!(!tree.leaves.any_group(0, 100) && !tree.is_used(Page::new(4060)));
}

#[test]
fn whole_folios_are_removed_by_the_run() {
    let mut tree = PageTree::new();
    for (head, order) in [(60, 2), (64, 6), (128, 0), (129, 0), (130, 1), (512, 9)] {
        assert!(tree.insert(folio(head, order)));
    }
    let singles = |from| tree.single_run(Page::new(from), Pages::new(9)).get();
    assert_eq!((singles(60), singles(64), singles(128), singles(129)), (0, 0, 2, 1));
    tree.set_used(Extent::new(Page::new(62), Pages::new(10)));
    let gone = tree.remove_folios(Extent::new(Page::new(60), Pages::new(70)));
    assert_eq!(gone, (Pages::new(70), Pages::new(60)));
    assert_eq!(tree.folio(Page::new(130)), Some(folio(130, 1)));
    assert!(tree.insert(folio(64, 6)), "nothing is left of what was there");
    tree.remove_folios(Extent::new(Page::new(512), Pages::new(512)));
    assert!(tree.insert(folio(520, 0)));
    assert_eq!(tree.folio(Page::new(520)), Some(folio(520, 0)));
}

#[test]
fn only_unmarked_pages_are_used_without_ado() {
    let mut tree = PageTree::new();
    tree.insert_run(Extent::new(Page::new(10), Pages::new(3)));
    tree.set_mark(Page::new(11), true);
    let plain_hit: Vec<_> = (9..14).map(|page| tree.use_plain_hit(Page::new(page))).collect();
    assert_eq!(plain_hit, [false, true, false, true, false]);
    assert!(tree.is_used(Page::new(10)) && !tree.is_used(Page::new(11)));
}

#[test]
fn runs_cross_leaves_and_groups() {
    let mut tree = PageTree::new();
    tree.insert_run(Extent::new(Page::new(4000), Pages::new(300)));
    let run = |from, max| tree.present_run(Page::new(from), Pages::new(max)).get();
    assert_eq!((run(4000, 1000), run(4100, 10), run(3999, 5)), (300, 10, 0));
    let gap = |from, max| tree.absent_run(Page::new(from), Pages::new(max)).get();
    assert_eq!((gap(0, 1 << 40), gap(4299, 9), gap(4300, 1 << 40)), (4000, 0, 1 << 40));
    tree.set_mark(Page::new(4200), true);
    assert_eq!(tree.plain_hit_run(Page::new(4000), Pages::new(900)), Pages::new(200));
    assert_eq!(tree.plain_hit_run(Page::new(4200), Pages::new(900)), Pages::ZERO);
}
