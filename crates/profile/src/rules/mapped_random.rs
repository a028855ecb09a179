//! A mapping is read at random, and each fault reads a window.

use units::Bytes;

use super::start_up::is_code;
use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::pieces::mapped_pieces;
use crate::recording::{AccessKind, PAGE_BYTES};
use crate::shape::median;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 11,
    name: "mapped-random",
    summary: "random faults of a mapping that read a whole window each",
    explanation: "A fault of a mapped file reads a window around the page. The rule applies if the \
        faults are not in order and what they submitted is at least twice the pages that were \
        touched. If each fault uses a single page, madvise(MADV_RANDOM). If pieces of several \
        pages are touched, ask for each with MADV_WILLNEED besides, because MADV_RANDOM alone \
        makes every page a fault of its own. Pages that a fault maps along with its own do not \
        fault: how long pieces are is inferred from where the next fault is.",
    check: RuleCheck::Stream(check),
};

/// Bytes read for each byte that was touched.
const MIN_AMPLIFICATION: f64 = 2.0;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let applies = stream.kind == AccessKind::Fault
        && !is_code(run.path(stream), stream.kind)
        && shape.calls >= MIN_ACCESSES
        && shape.share(shape.near) < 0.5
        && run.matters(stream.waited);
    if !applies {
        return None;
    }
    let mut pieces = piece_lengths(run, stream);
    let submitted: u64 = stream.accesses(run.recording).map(|it| it.submitted.get()).sum();
    let amplification = submitted as f64 / pieces.iter().sum::<u64>().max(1) as f64;
    let length = median(&mut pieces);
    let (fix, snippet, change) = if length <= PAGE_BYTES {
        let fix = "madvise(MADV_RANDOM): each fault uses one page".to_owned();
        (fix, "madvise(address, length, MADV_RANDOM);".to_owned(), FixChange::SinglePages)
    } else {
        let fix = "madvise(MADV_RANDOM), and ask for each piece before it is touched".to_owned();
        let snippet = format!(
            "madvise(address, length, MADV_RANDOM);\nmadvise(piece, {length}, MADV_WILLNEED);"
        );
        (fix, snippet, FixChange::AskedPieces)
    };
    (amplification >= MIN_AMPLIFICATION).then(|| RuleFinding {
        cause: format!(
            "{} faults at random read {amplification:.1} times what is touched, pieces of {}",
            shape.calls,
            Bytes::new(length)
        ),
        fix,
        snippet: Some(snippet),
        change,
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}

/// The lengths of the pieces that were touched; as short as possible where that is not known.
fn piece_lengths(run: &RunView<'_>, stream: &FileStream) -> Vec<u64> {
    let mut lengths: Vec<u64> = Vec::new();
    let mut end = None;
    for piece in mapped_pieces(run.recording).iter().filter(|it| it.inode == stream.inode) {
        let goes_on = end == Some((piece.tid, piece.offset));
        match lengths.last_mut().filter(|_| goes_on) {
            Some(length) => *length += piece.least,
            None => lengths.push(piece.least),
        }
        end = Some((piece.tid, piece.offset + piece.least));
    }
    lengths
}
