//! Flash: independent dies and a shared link.
//!
//! A read uses the link for its command, then waits for the firmware, for each die with a part of
//! the data, and for the link again. Writes go to a buffer and are programmed later; a die that
//! programs cannot read, which causes the slow reads of a busy drive. A single read takes `firmware
//! + die + transfer`; the throughput of many reads is limited by `dies / read` or by the link.

use std::collections::VecDeque;

use units::{Bytes, Nanos};

use crate::agenda::Agenda;
use crate::device::{after, ceil};
use crate::front::{Front, Fronted};
use crate::jitter::Jitter;
use crate::slots::{SlotIndex, Slots};
pub use crate::spec::FlashSpec;
use crate::{Request, RequestId, RequestKind};

/// The times of a [`FlashSpec`] in nanoseconds.
#[derive(Debug)]
struct Times {
    command: u64,
    firmware: u64,
    read: f64,
    program: u64,
    /// Transfer time in nanoseconds per byte.
    link: f64,
    /// Transfer time of a whole page.
    page: Nanos,
}

/// Lines of the agenda, for events that occur in order: decoded commands and sent data.
const DECODED_LINE: usize = 0;
const SENT_LINE: usize = 1;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The firmware has decoded this command.
    Decoded(SlotIndex),
    /// A die has read this many bytes for a request, at most 2^30.
    PageRead(SlotIndex, u32),
    Received(SlotIndex),
    Done(SlotIndex),
    /// A die has programmed this many bytes of the write buffer, at most one page (2^20).
    Programmed(u32),
}

#[derive(Debug)]
struct Command {
    id: RequestId,
    kind: RequestKind,
    offset: u64,
    length: u64,
    pages_left: u64,
}

#[derive(Debug)]
pub struct Flash {
    spec: FlashSpec,
    times: Times,
    jitter: Jitter,
    agenda: Agenda<Event>,
    commands: Slots<Command>,
    front: Front,
    link_free: Nanos,
    dies: Vec<Nanos>,
    buffer: WriteBuffer,
}

/// The write buffer: accepted data that is not yet programmed.
#[derive(Debug, Default)]
struct WriteBuffer {
    used: u64,
    /// Bytes that do not yet fill a page.
    partial: u64,
    programs: usize,
    next_die: usize,
    /// Writes that wait for space in the buffer.
    stalled: VecDeque<SlotIndex>,
    /// Total bytes accepted, and total bytes programmed.
    taken: u64,
    settled: u64,
    /// Pending flushes, each with the value of `settled` that completes it.
    flushes: Vec<(SlotIndex, u64)>,
}

impl Flash {
    /// Creates the drive of a specification that [validates](FlashSpec::validate).
    pub(crate) fn new(spec: &FlashSpec, seed: u64) -> Self {
        let nanos = |micros: f64| Nanos::from_secs_f64(micros / 1e6).get();
        Self {
            times: Times {
                command: nanos(spec.command_us),
                firmware: nanos(spec.firmware_us),
                read: spec.read_us * 1e3,
                program: nanos(spec.program_us),
                link: 1e3 / spec.link_mb_s,
                page: on_link(spec.page.get(), 1e3 / spec.link_mb_s),
            },
            spec: spec.clone(),
            jitter: Jitter::new(seed),
            agenda: Agenda::new(),
            commands: Slots::new(),
            front: Front::new(spec.queue_depth),
            link_free: Nanos::ZERO,
            dies: vec![Nanos::ZERO; spec.dies],
            buffer: WriteBuffer::default(),
        }
    }

    #[inline]
    fn take(&mut self, at: Nanos, event: Event) {
        match event {
            Event::Decoded(slot) => self.decoded(at, slot),
            Event::PageRead(slot, bytes) => {
                let end = self.transfer(at, u64::from(bytes));
                if let Some(command) = self.commands.get_mut(slot) {
                    command.pages_left -= 1;
                    if command.pages_left == 0 {
                        self.agenda.push_in_line(SENT_LINE, end, Event::Done(slot));
                    }
                }
            }
            Event::Done(slot) => {
                let id = self.commands.remove(slot).map(|command| command.id);
                self.finish(at, id);
            }
            Event::Received(slot) => self.received(at, slot),
            Event::Programmed(bytes) => self.programmed(at, u64::from(bytes)),
        }
    }

    #[cold]
    fn received(&mut self, at: Nanos, slot: SlotIndex) {
        self.buffer.stalled.push_back(slot);
        self.admit_writes(at);
    }

    #[cold]
    fn programmed(&mut self, at: Nanos, bytes: u64) {
        self.buffer.used -= bytes;
        self.buffer.settled += bytes;
        self.buffer.programs -= 1;
        self.admit_writes(at);
        self.end_flushes(at);
    }

    fn decoded(&mut self, at: Nanos, slot: SlotIndex) {
        match self.commands.get_mut(slot) {
            Some(command) if command.kind == RequestKind::Read && command.length > 0 => {
                let (offset, length) = (command.offset, command.length);
                let page = self.spec.page.get();
                let first = offset / page;
                command.pages_left = (offset + length).div_ceil(page) - first;
                self.read_pages(at, slot, first, (offset, offset + length));
            }
            Some(command) => {
                let (kind, length) = (command.kind, command.length);
                self.decoded_other(at, slot, kind, length);
            }
            None => {}
        }
    }

    /// Processes a command that reads no data.
    #[cold]
    fn decoded_other(&mut self, at: Nanos, slot: SlotIndex, kind: RequestKind, length: u64) {
        match kind {
            RequestKind::Flush => {
                self.buffer.flushes.push((slot, self.buffer.taken));
                self.program_rest(at);
                self.end_flushes(at);
            }
            RequestKind::Write if length > 0 => {
                let end = self.transfer(at, length);
                self.agenda.push(end, Event::Received(slot));
            }
            _ => self.agenda.push(at, Event::Done(slot)),
        }
    }

    /// Starts the die reads of the bytes `offset..end`; `first` is the page of `offset`.
    #[inline]
    fn read_pages(
        &mut self,
        at: Nanos,
        slot: SlotIndex,
        first: u64,
        (mut offset, end): (u64, u64),
    ) {
        let page = self.spec.page.get();
        let mut next_page = (first + 1) * page;
        let mut place = PageAddress::of(first, self.dies.len() as u64);
        let mut jitter = self.jitter.clone();
        while offset < end {
            let next = next_page.min(end);
            next_page += page;
            let die = place.die();
            place.go_on();
            let spread = self.spec.read_spread * (2.0 * jitter.uniform() - 1.0);
            let ready = self.occupy(die, at, (self.times.read * (1.0 + spread)) as i64 as u64);
            self.agenda.push(ready, Event::PageRead(slot, (next - offset) as u32));
            offset = next;
        }
        self.jitter = jitter;
    }

    #[inline]
    fn occupy(&mut self, die: usize, at: Nanos, span: u64) -> Nanos {
        self.front.counters.work(span);
        let free = &mut self.dies[die];
        *free = after((*free).max(at), Nanos::new(span));
        *free
    }

    fn transfer(&mut self, at: Nanos, bytes: u64) -> Nanos {
        let span = if bytes == self.spec.page.get() {
            self.times.page
        } else {
            on_link(bytes, self.times.link)
        };
        self.link_free = after(self.link_free.max(at), span);
        self.link_free
    }

    /// Accepts writes while the buffer has space. A write larger than the buffer is accepted when
    /// the buffer is empty.
    fn admit_writes(&mut self, at: Nanos) {
        while let Some(&slot) = self.buffer.stalled.front() {
            let length = self.commands.get_mut(slot).map_or(0, |command| command.length);
            let fits = self.buffer.used + length <= self.spec.write_buffer.get();
            if !fits && self.buffer.programs > 0 {
                return;
            }
            self.buffer.stalled.pop_front();
            self.buffer.used += length;
            self.buffer.taken += length;
            self.buffer.partial += length;
            self.agenda.push(at, Event::Done(slot));
            while self.buffer.partial >= self.spec.page.get() {
                self.program(at, self.spec.page.get());
            }
        }
    }

    fn program(&mut self, at: Nanos, bytes: u64) {
        let die = self.buffer.next_die % self.dies.len();
        self.buffer.next_die = die + 1;
        self.buffer.partial -= bytes;
        self.buffer.programs += 1;
        let end = self.occupy(die, at, self.times.program);
        self.agenda.push(end, Event::Programmed(bytes as u32));
    }

    fn program_rest(&mut self, at: Nanos) {
        if self.buffer.partial > 0 {
            self.program(at, self.buffer.partial);
        }
    }

    fn end_flushes(&mut self, at: Nanos) {
        let settled = self.buffer.settled;
        for (slot, _) in self.buffer.flushes.extract_if(.., |(_, target)| *target <= settled) {
            self.agenda.push(at, Event::Done(slot));
        }
    }
}

/// Returns the transfer time of `bytes` at `link` nanoseconds per byte.
#[inline]
fn on_link(bytes: u64, link: f64) -> Nanos {
    Nanos::new(ceil(bytes as i64 as f64 * link))
}

/// The die of a page. Consecutive pages are on consecutive dies, and each round starts at a
/// different die, so that no stride stays on one die: data written at random is placed at random.
#[derive(Clone, Copy, Debug)]
struct PageAddress {
    dies: u64,
    round: u64,
    within: u64,
    /// The die of the round's first page.
    first: u64,
}

impl PageAddress {
    fn of(page: u64, dies: u64) -> Self {
        Self { dies, round: 0, within: page % dies, first: 0 }.in_round(page / dies)
    }

    fn in_round(self, round: u64) -> Self {
        let first = (round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.dies;
        Self { round, first, ..self }
    }

    #[inline]
    fn die(&self) -> usize {
        let die = self.within + self.first;
        (if die >= self.dies { die - self.dies } else { die }) as usize
    }

    #[inline]
    fn go_on(&mut self) {
        self.within += 1;
        if self.within == self.dies {
            *self = Self { within: 0, ..*self }.in_round(self.round + 1);
        }
    }
}

impl Fronted for Flash {
    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn size(&self) -> Bytes {
        self.spec.capacity
    }

    fn start(&mut self, at: Nanos, request: Request) {
        let (offset, length) = request.extent(self.spec.capacity);
        let Request { id, kind, .. } = request;
        let slot = self.commands.insert(Command { id, kind, offset, length, pages_left: 0 });
        self.link_free = after(self.link_free.max(at), Nanos::new(self.times.command));
        let decoded = after(self.link_free, Nanos::new(self.times.firmware));
        self.agenda.push_in_line(DECODED_LINE, decoded, Event::Decoded(slot));
    }

    #[inline]
    fn step(&mut self, until: Nanos) -> Option<Nanos> {
        let (at, event) = self.agenda.pop_due(until)?;
        self.take(at, event);
        Some(at)
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.agenda.next_at()
    }
}
