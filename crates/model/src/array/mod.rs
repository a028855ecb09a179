//! Arrays of devices.
//!
//! The array splits a request at chunk boundaries. With mirrors, it chooses the copy to read for
//! each piece in order of address, and then merges adjacent pieces on the same member into one
//! request. Merging first would change the input of the read policy. A request is complete when its
//! slowest piece is.
//!
//! Writes go to all mirrors. With parity, a row that a request covers entirely is written directly.
//! For other rows, the array first reads either the old data and parity or the rest of the row,
//! whichever is less; when all reads of the request are complete, it writes the new data and
//! parity. Requests are independent: there is no stripe cache that collects small writes.

mod geometry;
mod policy;

use std::collections::VecDeque;

use units::{Bytes, Nanos};

use crate::front::{drain_completions, run_to_completion};
use crate::slots::{SlotIndex, Slots};
pub use crate::spec::{ArraySpec, Level, ReadPolicy};
use crate::{Completion, Counters, Device, Request, RequestId, RequestKind};
use geometry::{Geometry, GeometryRow, Piece};
use policy::DiskArm;

/// A request from the host.
#[derive(Debug)]
struct Call {
    id: RequestId,
    /// Number of pieces that are not complete.
    left: usize,
    /// Writes to send when these pieces are complete.
    then: Vec<Piece>,
}

/// A request to a member.
#[derive(Clone, Copy, Debug)]
struct Sent {
    call: SlotIndex,
    member: usize,
}

const NO_WAKE: Nanos = Nanos::MAX;

pub struct Array {
    geometry: Geometry,
    policy: ReadPolicy,
    members: Vec<Box<dyn Device>>,
    /// The next wake time of each member; `NO_WAKE` if it has none.
    wakes: Vec<Nanos>,
    /// The earliest wake time, and the first member that has it.
    first_wake: (Nanos, usize),
    arms: Vec<DiskArm>,
    /// The copy of the latest round-robin choice, for each column.
    turns: Vec<usize>,
    calls: Slots<Call>,
    open: usize,
    sent: Slots<Sent>,
    /// The index in `pieces` of each member's last piece; `usize::MAX` if it has none.
    last_piece: Vec<usize>,
    pieces: Vec<Piece>,
    arrived: Vec<Completion>,
    finished: VecDeque<Completion>,
    counters: Counters,
}

impl Array {
    /// Creates the array of a valid specification with these members.
    pub(crate) fn new(spec: &ArraySpec, members: Vec<Box<dyn Device>>) -> Self {
        let size = members.iter().map(|member| member.capacity().get()).min().unwrap_or(0);
        let geometry = Geometry::new(spec, size);
        let columns = members.len() / geometry.copies.max(1) as usize;
        Self {
            policy: spec.read_policy,
            wakes: vec![NO_WAKE; members.len()],
            first_wake: (NO_WAKE, 0),
            arms: vec![DiskArm::default(); members.len()],
            turns: vec![0; columns],
            calls: Slots::new(),
            open: 0,
            sent: Slots::new(),
            last_piece: vec![usize::MAX; members.len()],
            pieces: Vec::new(),
            arrived: Vec::new(),
            finished: VecDeque::new(),
            counters: Counters::default(),
            geometry,
            members,
        }
    }

    fn run(&mut self, now: Nanos) {
        while self.take(now).is_some() {}
    }

    /// Advances the member that is due first, if it is due by `now`: at most to its first
    /// completion, and not beyond the wake time of another member. Returns the time reached.
    fn take(&mut self, now: Nanos) -> Option<Nanos> {
        let (at, member) = self.first_wake;
        if at > now || at == NO_WAKE {
            return None;
        }
        let second = self.first_but(member);
        // Of several members that are due at the same time, the first one advances first.
        let others = if second.1 < member { second.0 - Nanos::new(1) } else { second.0 };
        let until = now.min(others);
        let mut arrived = std::mem::take(&mut self.arrived);
        let came = self.members[member].advance_to_completion(until, &mut arrived);
        self.wakes[member] = self.members[member].next_wake().unwrap_or(NO_WAKE);
        self.first_wake = second.min((self.wakes[member], member));
        for completion in arrived.drain(..) {
            self.piece_done(completion);
        }
        self.arrived = arrived;
        Some(came.unwrap_or(until))
    }

    /// Returns the time and index of the member that is due first, excluding `but`.
    fn first_but(&self, but: usize) -> (Nanos, usize) {
        let mut first = (NO_WAKE, usize::MAX);
        for (member, &wake) in self.wakes.iter().enumerate() {
            // Branchless, because the branch would be unpredictable.
            let sooner = (member != but) & (wake < first.0);
            first = (if sooner { wake } else { first.0 }, if sooner { member } else { first.1 });
        }
        first
    }

    fn refresh(&mut self, member: usize) {
        let wake = self.members[member].next_wake().unwrap_or(NO_WAKE);
        let before = std::mem::replace(&mut self.wakes[member], wake);
        let first = self.first_wake;
        if (wake, member) <= first {
            self.first_wake = (wake, member);
        } else if first == (before, member) {
            self.first_wake = self.first_but(member).min((wake, member));
        }
    }

    fn piece_done(&mut self, completion: Completion) {
        let Some(sent) = self.sent.remove(completion.id.0 as SlotIndex) else { return };
        self.arms[sent.member].pending -= 1;
        let Some(call) = self.calls.get_mut(sent.call) else { return };
        call.left -= 1;
        if call.left > 0 {
            return;
        }
        if call.then.is_empty() {
            self.finish(completion.at, sent.call);
        } else {
            let writes = std::mem::take(&mut call.then);
            self.send(completion.at, sent.call, RequestKind::Write, &writes);
        }
    }

    fn finish(&mut self, at: Nanos, call: SlotIndex) {
        if let Some(call) = self.calls.remove(call) {
            self.open -= 1;
            self.finished.push_back(Completion { id: call.id, at });
        }
    }

    fn send(&mut self, at: Nanos, call: SlotIndex, kind: RequestKind, pieces: &[Piece]) {
        if let Some(call) = self.calls.get_mut(call) {
            call.left += pieces.len();
        }
        for piece in pieces {
            let member = piece.column;
            // For a read, `note` updated the arm when the copy was chosen.
            if kind != RequestKind::Read {
                self.arms[member].pending += 1;
                if kind == RequestKind::Write {
                    self.arms[member].last = piece.offset + piece.length;
                }
            }
            let id = RequestId(self.sent.insert(Sent { call, member }) as u64);
            let (offset, length) = (Bytes::new(piece.offset), Bytes::new(piece.length));
            self.members[member].submit(at, Request { id, kind, offset, length });
            self.refresh(member);
        }
    }

    /// Adds a piece on a member; returns whether it only extended the member's previous piece.
    fn add(&mut self, piece: Piece) -> bool {
        let last = self.last_piece[piece.column];
        match self.pieces.get_mut(last) {
            Some(before) if before.offset + before.length == piece.offset => {
                before.length += piece.length;
                true
            }
            _ => {
                self.last_piece[piece.column] = self.pieces.len();
                self.pieces.push(piece);
                false
            }
        }
    }

    fn take_pieces(&mut self) -> Vec<Piece> {
        self.last_piece.fill(usize::MAX);
        std::mem::take(&mut self.pieces)
    }

    /// Chooses the copy for one column's piece and adds the read.
    fn add_read(&mut self, piece: Piece) {
        let copies = self.geometry.copies as usize;
        if self.policy == ReadPolicy::Split && copies > 1 {
            return self.add_split(piece);
        }
        let first = piece.column * copies;
        let arms = &mut self.arms[first..first + copies];
        let chunk = self.geometry.chunk();
        let turn = &mut self.turns[piece.column];
        let copy = self.policy.choose(arms, piece.offset, chunk, turn);
        self.add_read_from(first, copy, piece);
    }

    /// Divides a piece among all copies, in units of 4 KiB.
    fn add_split(&mut self, piece: Piece) {
        let copies = self.geometry.copies;
        let share = (piece.length.div_ceil(copies)).next_multiple_of(4096);
        let (mut at, end) = (piece.offset, piece.offset + piece.length);
        for copy in 0..copies as usize {
            let length = share.min(end - at);
            if length > 0 {
                let part = Piece { offset: at, length, ..piece };
                self.add_read_from(piece.column * copies as usize, copy, part);
            }
            at += length;
        }
    }

    fn add_read_from(&mut self, first: usize, copy: usize, piece: Piece) {
        let end = piece.offset + piece.length;
        let joined = self.add(Piece { column: first + copy, ..piece });
        let copies = self.geometry.copies as usize;
        let arms = &mut self.arms[first..first + copies];
        self.policy.note(arms, copy, end);
        if joined {
            // The piece is part of the preceding piece's request.
            self.arms[first + copy].pending -= 1;
        }
    }

    fn read(&mut self, now: Nanos, call: SlotIndex, offset: u64, length: u64) {
        for piece in self.geometry.pieces(offset, length) {
            self.add_read(piece);
        }
        let mut pieces = self.take_pieces();
        self.send(now, call, RequestKind::Read, &pieces);
        // Keep the allocation.
        pieces.clear();
        self.pieces = pieces;
    }

    fn write(&mut self, now: Nanos, call: SlotIndex, offset: u64, length: u64) {
        if self.geometry.parity > 0 {
            return self.write_rows(now, call, offset, length);
        }
        let copies = self.geometry.copies as usize;
        for piece in self.geometry.list(offset, length) {
            for copy in 0..copies {
                self.add(Piece { column: piece.column * copies + copy, ..piece });
            }
        }
        let pieces = self.take_pieces();
        self.send(now, call, RequestKind::Write, &pieces);
    }

    fn write_rows(&mut self, now: Nanos, call: SlotIndex, offset: u64, length: u64) {
        let (whole, partial): (Vec<GeometryRow>, Vec<GeometryRow>) =
            self.geometry.rows(offset, length).partition(|row| self.geometry.is_whole(*row));
        for &row in &whole {
            self.add_row(row);
        }
        let whole = self.take_pieces();
        for &row in &partial {
            self.add_old(row);
        }
        let old = self.take_pieces();
        for &row in &partial {
            self.add_row(row);
        }
        let then = self.take_pieces();
        if let Some(call) = self.calls.get_mut(call) {
            call.then = then;
        }
        self.note_reads(&old);
        self.send(now, call, RequestKind::Read, &old);
        self.send(now, call, RequestKind::Write, &whole);
    }

    /// Adds the writes of data and parity for a row.
    fn add_row(&mut self, row: GeometryRow) {
        let start = self.geometry.row_start(row);
        for piece in self.geometry.list(start + row.from, row.to - row.from) {
            self.add(piece);
        }
        for piece in self.geometry.parity_list(row) {
            self.add(piece);
        }
    }

    /// Adds the reads that must precede a write of part of a row.
    fn add_old(&mut self, row: GeometryRow) {
        let (start, width) = (self.geometry.row_start(row), self.geometry.row_length());
        let parity: u64 = self.geometry.parity_list(row).iter().map(|piece| piece.length).sum();
        let touched = row.to - row.from;
        if width - touched < touched + parity {
            for (from, to) in [(0, row.from), (row.to, width)] {
                for piece in self.geometry.list(start + from, to - from) {
                    self.add(piece);
                }
            }
        } else {
            self.add_row(row);
        }
    }

    fn note_reads(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            self.arms[piece.column].pending += 1;
            self.arms[piece.column].last = piece.offset + piece.length;
        }
    }

    fn flush(&mut self, now: Nanos, call: SlotIndex) {
        let pieces: Vec<Piece> =
            (0..self.members.len()).map(|column| Piece { column, offset: 0, length: 0 }).collect();
        self.send(now, call, RequestKind::Flush, &pieces);
    }
}

impl Device for Array {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.run(now);
        let (offset, length) = request.extent(self.capacity());
        self.counters.count(length);
        let call = self.calls.insert(Call { id: request.id, left: 0, then: Vec::new() });
        self.open += 1;
        match request.kind {
            RequestKind::Flush => self.flush(now, call),
            _ if length == 0 => self.finish(now, call),
            RequestKind::Read => self.read(now, call, offset, length),
            RequestKind::Write => self.write(now, call, offset, length),
        }
    }

    fn next_wake(&self) -> Option<Nanos> {
        let first_done = self.finished.front().map(|completion| completion.at);
        first_done.or_else(|| Some(self.first_wake.0).filter(|&wake| wake < NO_WAKE))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now);
        drain_completions(&mut self.finished, done);
    }

    fn advance_to_completion(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        run_to_completion(self, until, done, Self::take, |it| &mut it.finished)
    }

    fn in_flight(&self) -> usize {
        self.open + self.finished.len()
    }

    fn capacity(&self) -> Bytes {
        Bytes::new(self.geometry.capacity)
    }

    fn counters(&self) -> Counters {
        let parts = self.members.iter().map(|member| member.counters());
        parts.fold(self.counters, Counters::with_part)
    }
}
