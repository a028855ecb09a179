//! A mapping is read at random, and each fault reads a whole window.

use units::Bytes;

use super::backward::has_backward_faults;
use super::start_up::is_code;
use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::pieces::{MappedPiece, mapped_pieces};
use crate::recording::{AccessKind, PAGE_BYTES};
use crate::shape::median;
use crate::spans::{covered, merged};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 11,
    name: "mapped-random",
    summary: "random faults of a mapping that read a whole window each",
    explanation: "A fault of a mapped file reads a window around the page. The rule applies if the \
        faults are not in order and what they submitted is at least twice the data that was used. \
        If each fault needs only one page, use madvise(MADV_RANDOM). If the program reads pieces \
        of several pages, also call madvise(MADV_WILLNEED) for each piece before reading it: with \
        MADV_RANDOM alone, every page causes a fault. A fault also maps neighbouring cached pages, \
        and accesses to these are not recorded. foreread therefore infers the length of a piece \
        from the position of the next fault.",
    check: RuleCheck::Stream(check),
};

/// Minimum ratio of bytes read to bytes touched.
const MIN_AMPLIFICATION: f64 = 2.0;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let applies = stream.kind == AccessKind::Fault
        && !is_code(run.path(stream), stream.kind)
        && shape.calls >= MIN_ACCESSES
        && shape.share(shape.near) < 0.5
        && !has_backward_faults(run, stream)
        && run.matters(stream.waited);
    if !applies {
        return None;
    }
    let pieces = mapped_pieces(run.recording);
    let pieces: Vec<&MappedPiece> = pieces.iter().filter(|it| it.inode == stream.inode).collect();
    let submitted: u64 = stream.accesses(run.recording).map(|it| it.submitted.get()).sum();
    let used = covered(&merged(pieces.iter().map(|it| (it.offset, it.offset + it.least))));
    let amplification = submitted as f64 / used.max(1) as f64;
    let are_known = pieces.iter().all(|piece| piece.least == piece.most);
    let length = median(&mut piece_lengths(&pieces));
    let (fix, snippet, change) = if length <= PAGE_BYTES {
        let why = if are_known { "because" } else { "if" };
        let fix = format!("madvise(MADV_RANDOM), {why} each fault needs only one page");
        (fix, "madvise(address, length, MADV_RANDOM);".to_owned(), FixChange::SinglePages)
    } else {
        let fix = "madvise(MADV_RANDOM), and ask for each piece before reading it".to_owned();
        let snippet = format!(
            "madvise(address, length, MADV_RANDOM);\n\
             madvise(piece, piece_length, MADV_WILLNEED); /* {length} bytes */"
        );
        (fix, snippet, FixChange::AskedPieces)
    };
    (amplification >= MIN_AMPLIFICATION).then(|| RuleFinding {
        cause: format!(
            "{} random faults read {amplification:.1} times what was used, in pieces of {}",
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

/// Returns the lengths of whole pieces, with the lower bound for each unknown length.
fn piece_lengths(pieces: &[&MappedPiece]) -> Vec<u64> {
    let mut lengths: Vec<u64> = Vec::new();
    let mut end = None;
    for piece in pieces {
        let is_contiguous = end == Some((piece.tid, piece.offset));
        match lengths.last_mut().filter(|_| is_contiguous) {
            Some(length) => *length += piece.least,
            None => lengths.push(piece.least),
        }
        end = Some((piece.tid, piece.offset + piece.least));
    }
    lengths
}
