//! A mechanical drive: arm, platter, cache and command queue.
//!
//! The cost of a command follows Ruemmler and Wilkes, *An Introduction to Disk Drive Modeling*
//! (1994): overhead, seek, rotation, transfer. Two details matter most for read-ahead. The overhead
//! of a command overlaps with the previous operation, so a contiguous command that is queued in
//! time loses no revolution and a late one loses a whole one. And a drive reads ahead only while no
//! command waits, so a deeper queue can be slower.
//!
//! The drive has its own time. Each step (a completion, the choice of the next command) occurs at
//! its own time, however late the caller advances the drive. Before the drive accepts a request, it
//! performs all steps that are due.

mod admission;
mod mechanism;
mod queue;
mod rotation;
mod seek;
mod segment_index;
mod segments;
mod write_back;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use units::{Bytes, Nanos};

use crate::SpecError;
use crate::device::{Completion, Counters, Device, Request, RequestId};
pub use crate::spec::{DriveSpec, QueueOrder, ReadBefore};
use queue::Queue;
use rotation::{Platter, Turns, floor};
use seek::SeekTime;
use segments::Segments;
use write_back::WriteCache;

/// Places closer than this are equal, except for rounding.
const SAME_PLACE: Turns = 1e-6;

/// The times of a [`DriveSpec`] in nanoseconds.
#[derive(Clone, Debug)]
struct Times {
    read: u64,
    hit: u64,
    write: u64,
    streak: u64,
    settle: u64,
    write_settle: u64,
    destage_delay: u64,
    jitter: f64,
    /// The minimum time of a seek to another track, in nanoseconds.
    least_seek: f64,
    /// Transfer time in nanoseconds per byte.
    bus: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Complete,
    Start,
    Destage,
    FlushDone,
}

/// A drive.
///
/// The drive ignores the part of a request beyond its end: such a part transfers nothing, but the
/// command still has its overhead.
#[derive(Debug)]
pub struct Drive {
    spec: DriveSpec,
    times: Times,
    platter: Platter,
    seek: SeekTime,
    segments: Segments,
    writes: WriteCache,
    rng: Pcg64Mcg,
    /// The time of the last step.
    clock: u64,
    /// Requests that are not yet admitted.
    outside: VecDeque<Request>,
    /// Number of commands that are admitted but not complete.
    inside: usize,
    queue: Queue,
    /// Writes that wait for space in the cache.
    blocked: VecDeque<(Request, u64)>,
    flush: Option<(RequestId, u64)>,
    head: Turns,
    mechanism_free: u64,
    bus_free: u64,
    last_arrival: u64,
    /// The end of the last command if it was a write.
    write_end: Option<u64>,
    destaged_last: bool,
    pending: BinaryHeap<Reverse<(u64, u64, RequestId)>>,
    sequence: u64,
    /// The time of the next step, and the step, as of the last change.
    next: Option<(u64, Step)>,
    finished: Vec<Completion>,
    counters: Counters,
}

impl Drive {
    /// Creates a drive with this specification, idle on its first track. The seed determines the
    /// platter's angle at time zero and the jitter of each command.
    ///
    /// # Errors
    ///
    /// If the specification does not [validate](DriveSpec::validate).
    pub fn new(spec: &DriveSpec, seed: u64) -> Result<Self, SpecError> {
        spec.validate()?;
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let platter = platter(spec, unit(&mut rng));
        let last_cylinder = platter.cylinder(platter.tracks());
        let seek = seek_time(spec, last_cylinder);
        let times = Times {
            read: nanos(spec.overhead_ms),
            hit: nanos(spec.hit_overhead_ms.unwrap_or(spec.overhead_ms)),
            write: nanos(spec.write_overhead_ms.unwrap_or(spec.overhead_ms)),
            streak: nanos(spec.write_streak_ms),
            settle: nanos(spec.settle_ms),
            write_settle: nanos(spec.write_settle_ms),
            destage_delay: nanos(spec.destage_delay_ms),
            jitter: spec.jitter_ms * 1e6,
            least_seek: seek.least().max(nanos(spec.settle_ms) as f64),
            bus: 1e3 / spec.bus_mb_s,
        };
        Ok(Self {
            seek,
            segments: Segments::new(spec.segments, spec.segment().get(), spec.keep_delivered),
            writes: WriteCache::new(spec.write_cache.get()),
            spec: spec.clone(),
            times,
            platter,
            rng,
            clock: 0,
            outside: VecDeque::new(),
            inside: 0,
            queue: Queue::default(),
            blocked: VecDeque::new(),
            flush: None,
            head: 0.0,
            mechanism_free: 0,
            bus_free: 0,
            last_arrival: 0,
            write_end: None,
            destaged_last: false,
            pending: BinaryHeap::new(),
            sequence: 0,
            next: None,
            finished: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Performs all steps due by `now`.
    fn run_until(&mut self, now: u64) {
        while let Some((time, step)) = self.next.filter(|&(time, _)| time <= now) {
            self.take(time, step);
        }
    }

    #[inline]
    fn take(&mut self, time: u64, step: Step) {
        self.clock = self.clock.max(time);
        match step {
            Step::Complete => self.complete(),
            Step::Start => self.start(),
            Step::Destage => self.destage(),
            Step::FlushDone => self.finish_flush(),
        }
        self.next = self.next_step();
    }

    fn next_step(&self) -> Option<(u64, Step)> {
        let done = self.pending.peek().map(|Reverse((at, ..))| (*at, Step::Complete));
        let work = self.next_work();
        match (done, work) {
            (Some(done), Some(work)) => Some(if done.0 <= work.0 { done } else { work }),
            (done, work) => done.or(work),
        }
    }

    /// Returns the time of the mechanism's next step, and the step.
    #[inline]
    fn next_work(&self) -> Option<(u64, Step)> {
        let free = self.mechanism_free.max(self.clock);
        let start = self.queue.ready_at().map(|ready| (free.max(ready), Step::Start));
        if self.writes.is_empty() && self.flush.is_none() && self.blocked.is_empty() {
            return start;
        }
        self.next_write(free, start)
    }

    /// Returns the mechanism's next step if there are writes or a flush.
    #[cold]
    fn next_write(&self, free: u64, start: Option<(u64, Step)>) -> Option<(u64, Step)> {
        let pressing =
            !self.blocked.is_empty() || self.flush.is_some() || self.writes.is_pressing();
        let destage = if self.writes.is_empty() {
            match self.flush {
                Some((_, ready)) => return Some((free.max(ready), Step::FlushDone)),
                None if self.blocked.is_empty() => None,
                None => Some((free, Step::Destage)),
            }
        } else if pressing {
            Some((free, Step::Destage))
        } else if self.queue.is_empty() {
            let idle = self.last_arrival.saturating_add(self.times.destage_delay);
            let read_on = self.segments.stops_at().unwrap_or(0);
            Some((free.max(idle).max(read_on), Step::Destage))
        } else {
            None
        };
        match (start, destage) {
            // If both are possible, they alternate.
            (Some(start), Some(destage)) if start.0 > destage.0 => Some(destage),
            (Some(start), Some(_)) if self.destaged_last => Some(start),
            (Some(_), Some(destage)) => Some(destage),
            (start, destage) => start.or(destage),
        }
    }

    fn complete(&mut self) {
        if let Some(Reverse((at, _, id))) = self.pending.pop() {
            self.finished.push(Completion { id, at: Nanos::new(at) });
            self.inside -= 1;
            self.admit();
        }
    }

    fn finish_flush(&mut self) {
        if let Some((id, _)) = self.flush.take() {
            self.finish(id, self.clock);
        }
    }
}

fn platter(spec: &DriveSpec, phase: f64) -> Platter {
    let edges = [spec.outer_mb_s, spec.inner_mb_s];
    let platter = Platter::new(spec.capacity.get(), spec.rpm, edges, phase);
    let cylinders = spec.cylinders.unwrap_or((platter.tracks() / spec.heads).max(1.0));
    platter.with_cylinders(cylinders)
}

fn seek_time(spec: &DriveSpec, cylinders: f64) -> SeekTime {
    if spec.seek_curve.is_empty() {
        let [track, average, full] =
            [spec.seek_track_ms, spec.seek_average_ms, spec.seek_full()].map(|ms| ms * 1e6);
        SeekTime::three_point(track, average, full, cylinders)
    } else {
        SeekTime::curve(spec.seek_curve.iter().map(|&[d, ms]| (d, ms * 1e6)).collect())
    }
}

/// Converts milliseconds to whole nanoseconds.
fn nanos(ms: f64) -> u64 {
    Nanos::from_secs_f64(ms / 1e3).get()
}

/// Returns the nearest whole number, without a call to the mathematics library.
#[inline]
fn rounded(span: f64) -> u64 {
    let whole = floor(span);
    (if span - whole >= 0.5 { whole + 1.0 } else { whole }) as u64
}

/// Returns a random number from 0 (inclusive) to 1 (exclusive).
fn unit(rng: &mut Pcg64Mcg) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

impl Device for Drive {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.run_until(now.get());
        self.clock = self.clock.max(now.get());
        self.counters.requests += 1;
        let bytes = self.counters.bytes.get().saturating_add(request.length.get());
        self.counters.bytes = Bytes::new(bytes);
        if self.outside.is_empty() && self.has_room(request.kind) {
            self.let_in(request);
        } else {
            self.outside.push_back(request);
            self.admit();
        }
        self.next = self.next_step();
    }

    fn next_wake(&self) -> Option<Nanos> {
        let finished = self.finished.first().map(|completion| completion.at);
        finished.or_else(|| self.next.map(|(time, _)| Nanos::new(time)))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now.get());
        done.append(&mut self.finished);
    }

    fn advance_to_completion(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        let mut first = self.finished.first().map(|completion| completion.at);
        if first.is_some_and(|first| first > until) {
            return None;
        }
        // Return all completions with the same time together.
        let mut until = first.unwrap_or(until).get();
        while let Some((time, step)) = self.next.filter(|&(time, _)| time <= until) {
            self.take(time, step);
            if first.is_none() && !self.finished.is_empty() {
                first = Some(Nanos::new(time));
                until = time;
            }
        }
        done.append(&mut self.finished);
        first
    }

    fn in_flight(&self) -> usize {
        self.outside.len() + self.inside + self.finished.len()
    }

    fn capacity(&self) -> Bytes {
        self.spec.capacity
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
