//! Readers in a closed loop over a model: just enough of a page cache to see read-ahead curves.
//!
//! Each reader reads its file from the start, with windows as Linux has them (the next window is
//! submitted when the reader enters the newest one) or as FreeBSD has them (one window that
//! slides on with each cluster). Requests are cut at the host's limit; a reader waits for the
//! request that holds its next byte, then takes time to copy it; submission takes time too; a
//! full queue makes the submitter wait.

use std::collections::{BTreeMap, VecDeque};

use foreread_model::layout::{Extent, FileLayout};
use foreread_model::{Device, Request, RequestId, RequestKind, Spec};
use units::{Bytes, Nanos};

/// How a reader's window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Linux: the next whole window when the newest one is entered.
    Pairs(u64),
    /// FreeBSD: kept full with each request.
    Sliding(u64),
}

/// A run of readers.
#[derive(Clone, Debug)]
pub struct Job {
    pub readers: usize,
    pub window: Window,
    pub layout: FileLayout,
    /// Where the first file is, and what each takes.
    pub first_byte: u64,
    pub file_size: u64,
    /// Processor time for each byte copied, and for each byte submitted, in nanoseconds.
    pub copy_ns: f64,
    pub submit_ns: f64,
    pub warm_up: Nanos,
    pub span: Nanos,
}

#[derive(Debug)]
enum Item {
    Data { device: u64, length: u64 },
    Metadata { device: u64, length: u64 },
}

/// A request, by where it ends in the file.
#[derive(Debug)]
struct Piece {
    length: u64,
    done: bool,
}

#[derive(Debug)]
struct Reader {
    start: u64,
    position: u64,
    /// The end of what has been planned, and of what has been submitted.
    planned: u64,
    submitted: u64,
    trigger: u64,
    to_submit: VecDeque<Item>,
    /// Pieces by their offset in the file.
    pieces: BTreeMap<u64, Piece>,
    waits_metadata: bool,
    waits_data: bool,
    waits_dispatch: bool,
    undispatched: usize,
    last_metadata: u64,
    consumed: u64,
}

/// A request that waits for the device or is with it.
struct Waiting {
    reader: usize,
    length: u64,
    /// Where in the file its data is, if it is no metadata.
    at: Option<u64>,
}

struct Loop<'a> {
    job: &'a Job,
    device: Box<dyn Device>,
    max_request: u64,
    nr_requests: usize,
    readers: Vec<Reader>,
    agenda: BTreeMap<(Nanos, u64), usize>,
    entered: u64,
    in_flight: BTreeMap<u64, Waiting>,
    next_id: u64,
    /// Requests that the device's queue has no room for, by offset.
    waiting: BTreeMap<(u64, u64), Waiting>,
    /// Where the last request that went to the device begins.
    position: u64,
}

/// Runs the job; gives back decimal megabytes a second.
pub fn run(spec: &Spec, job: &Job, seed: u64) -> f64 {
    let mut this = Loop::new(spec, job, seed);
    this.until(job.warm_up);
    let before: u64 = this.readers.iter().map(|reader| reader.consumed).sum();
    this.until(job.warm_up + job.span);
    let after: u64 = this.readers.iter().map(|reader| reader.consumed).sum();
    (after - before) as f64 / 1e6 / job.span.as_secs_f64()
}

/// The mean over several seeds.
pub fn mean(spec: &Spec, job: &Job, seeds: u64) -> f64 {
    (1..=seeds).map(|seed| run(spec, job, seed)).sum::<f64>() / seeds as f64
}

impl<'a> Loop<'a> {
    fn new(spec: &Spec, job: &'a Job, seed: u64) -> Self {
        let footprint = job.layout.footprint(Bytes::new(job.file_size)).get();
        let readers = (0..job.readers as u64).map(|index| Reader {
            start: job.first_byte + index * footprint,
            position: 0,
            planned: 0,
            submitted: 0,
            trigger: 0,
            to_submit: VecDeque::new(),
            pieces: BTreeMap::new(),
            waits_metadata: false,
            waits_data: false,
            waits_dispatch: false,
            undispatched: 0,
            last_metadata: u64::MAX,
            consumed: 0,
        });
        let mut this = Self {
            job,
            device: spec.build(seed).unwrap(),
            max_request: spec.host().max_request.get(),
            nr_requests: spec.host().nr_requests,
            readers: readers.collect(),
            agenda: BTreeMap::new(),
            entered: 0,
            in_flight: BTreeMap::new(),
            next_id: 0,
            waiting: BTreeMap::new(),
            position: 0,
        };
        for reader in 0..job.readers {
            // Programs do not start in the same nanosecond.
            this.wake(Nanos::from_micros(137 * reader as u64 + 31 * seed), reader);
        }
        this
    }

    fn until(&mut self, end: Nanos) {
        let mut done = Vec::new();
        loop {
            let own = self.agenda.first_key_value().map_or(Nanos::MAX, |(key, _)| key.0);
            let device = self.device.next_wake().unwrap_or(Nanos::MAX);
            if own.min(device) > end {
                return;
            }
            if device <= own {
                self.device.advance(device, &mut done);
                for completion in done.drain(..) {
                    self.complete(completion.at, completion.id);
                }
            } else if let Some(((at, _), reader)) = self.agenda.pop_first() {
                self.step(at, reader);
            }
        }
    }

    fn wake(&mut self, at: Nanos, reader: usize) {
        self.agenda.insert((at, self.entered), reader);
        self.entered += 1;
    }

    fn complete(&mut self, at: Nanos, id: RequestId) {
        match self.in_flight.remove(&id.0) {
            Some(Waiting { reader, at: Some(offset), .. }) => {
                let this = &mut self.readers[reader];
                this.pieces.get_mut(&offset).unwrap().done = true;
                if this.waits_data && offset <= this.position {
                    this.waits_data = false;
                    self.wake(at, reader);
                }
            }
            Some(Waiting { reader, at: None, .. }) => {
                self.readers[reader].waits_metadata = false;
                self.wake(at, reader);
            }
            None => panic!("{id:?} completed twice"),
        }
        self.dispatch(at);
    }

    /// The one-way elevator: while the device's queue has room, the next request upwards from the
    /// last; from the top back to the lowest.
    fn dispatch(&mut self, at: Nanos) {
        while self.in_flight.len() < self.nr_requests {
            let next = self.waiting.range((self.position, 0)..).next();
            let Some((&key, _)) = next.or_else(|| self.waiting.first_key_value()) else { return };
            let Some(waiting) = self.waiting.remove(&key) else { return };
            self.position = key.0;
            let (offset, length) = (Bytes::new(key.0), Bytes::new(waiting.length));
            let (id, kind) = (RequestId(key.1), RequestKind::Read);
            self.device.submit(at, Request { id, kind, offset, length });
            let reader = &mut self.readers[waiting.reader];
            reader.undispatched -= 1;
            if reader.undispatched == 0 && reader.waits_dispatch {
                reader.waits_dispatch = false;
                self.wake(at, waiting.reader);
            }
            self.in_flight.insert(key.1, waiting);
        }
    }

    fn step(&mut self, at: Nanos, index: usize) {
        self.plan(index);
        let reader = &mut self.readers[index];
        if let Some(item) = reader.to_submit.pop_front() {
            return self.submit(at, index, item);
        }
        if reader.undispatched > 0 {
            reader.waits_dispatch = true;
            return;
        }
        let (&offset, piece) = reader.pieces.first_key_value().unwrap();
        if !piece.done {
            reader.waits_data = true;
            return;
        }
        let length = piece.length;
        reader.pieces.remove(&offset);
        reader.position += length;
        reader.consumed += length;
        self.wake(at + Nanos::new((length as f64 * self.job.copy_ns) as u64), index);
    }

    /// Plans the next window if it is time for it.
    fn plan(&mut self, index: usize) {
        let reader = &mut self.readers[index];
        if reader.position < reader.trigger || !reader.to_submit.is_empty() {
            return;
        }
        let (from, to) = match self.job.window {
            Window::Pairs(window) => {
                let from = reader.planned;
                reader.trigger = from;
                (from, from + window)
            }
            Window::Sliding(window) => {
                reader.trigger = reader.position + self.max_request;
                (reader.planned, reader.position + window.max(self.max_request))
            }
        };
        if to <= from || to > self.job.file_size {
            return;
        }
        reader.planned = to;
        let (start, length) = (Bytes::new(reader.start), Bytes::new(to - from));
        for extent in self.job.layout.extents(start, Bytes::new(from), length) {
            match extent {
                Extent::Metadata { offset, length } => {
                    if reader.last_metadata != offset.get() {
                        reader.last_metadata = offset.get();
                        let (device, length) = (offset.get(), length.get());
                        reader.to_submit.push_back(Item::Metadata { device, length });
                    }
                }
                Extent::Data { offset, length } => {
                    let (mut device, end) = (offset.get(), offset.get() + length.get());
                    while device < end {
                        let length = self.max_request.min(end - device);
                        reader.to_submit.push_back(Item::Data { device, length });
                        device += length;
                    }
                }
            }
        }
    }

    fn submit(&mut self, at: Nanos, index: usize, item: Item) {
        let id = self.next_id;
        self.next_id += 1;
        let reader = &mut self.readers[index];
        reader.undispatched += 1;
        let (offset, length, at_file) = match item {
            Item::Data { device, length } => {
                let at = reader.submitted;
                reader.submitted += length;
                reader.pieces.insert(at, Piece { length, done: false });
                (device, length, Some(at))
            }
            Item::Metadata { device, length } => {
                reader.waits_metadata = true;
                (device, length, None)
            }
        };
        let waiting = Waiting { reader: index, length, at: at_file };
        self.waiting.insert((offset, id), waiting);
        self.dispatch(at);
        if !self.readers[index].waits_metadata {
            self.wake(at + Nanos::new((length as f64 * self.job.submit_ns) as u64), index);
        }
    }
}

/// `readers` closed loops of one random request of `size` bytes each, within the first `span`
/// bytes; a request over the host's limit goes in parts, one after another. Gives back requests
/// a second.
pub fn random_reads(spec: &Spec, readers: usize, size: u64, span: u64, seed: u64) -> f64 {
    let mut device = spec.build(seed).unwrap();
    let max_request = spec.host().max_request.get();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % (span / 8192) * 8192
    };
    let mut left = vec![(0, 0); readers];
    let (mut done, mut finished) = (Vec::new(), 0u32);
    let mut start: Vec<(Nanos, usize)> =
        (0..readers).map(|reader| (Nanos::from_micros(211 * reader as u64), reader)).collect();
    let end = Nanos::from_secs(60);
    loop {
        for (at, reader) in start.drain(..) {
            let (offset, length) = if left[reader].1 == 0 { (draw(), size) } else { left[reader] };
            let part = length.min(max_request);
            left[reader] = (offset + part, length - part);
            let id = RequestId(reader as u64);
            let (offset, length) = (Bytes::new(offset), Bytes::new(part));
            device.submit(at, Request { id, kind: RequestKind::Read, offset, length });
        }
        let now = device.next_wake().unwrap();
        if now > end {
            return f64::from(finished) / end.as_secs_f64();
        }
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            let reader = completion.id.0 as usize;
            finished += u32::from(left[reader].1 == 0);
            start.push((completion.at, reader));
        }
    }
}
