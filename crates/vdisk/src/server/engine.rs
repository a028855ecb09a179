//! Requests in, answers out when the model says.
//!
//! One lock holds the model and what waits in it. That is enough: a request costs two visits of
//! about a microsecond, while the kernel's part of it costs twenty. The clock is read under the
//! lock, so that the model never sees time run backwards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Completion, Device, Request, RequestKind};
use sys::realtime::{Alarm, now};
use units::{Bytes, Nanos};

use super::queue::Queue;
use super::tally::Tally;
use super::waiting::Waiting;
use crate::counters::Counters;

/// More than the loop device and FUSE let in at once; beyond it a request allocates.
const ROOM: usize = 1024;

/// The timer wakes this much before a deadline and spins for the rest; what is learnt starts here.
const MARGIN_START: Nanos = Nanos::from_micros(30);
const MARGIN_MOST: Nanos = Nanos::from_micros(100);
const MARGIN_LEAST: Nanos = Nanos::from_micros(3);
/// Up by ten steps when a wake-up came later than the margin allows, down by one when it did not:
/// this settles where ten of eleven come in time.
const MARGIN_STEP: Nanos = Nanos::new(200);

/// A longer sleep is taken in two steps, the first of which ends this share of it too early: on
/// some virtual machines a sleep is up to a hundredth longer than asked.
const LONG_SLEEP: Nanos = Nanos::from_micros(500);
const EARLY_SHARE: u64 = 32;

/// What is asked of the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) kind: RequestKind,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
}

/// A request to be answered now.
#[derive(Debug)]
pub(crate) struct Due<T> {
    /// Whatever the caller handed in with the request.
    pub(crate) token: T,
    /// When it came and when it should be answered; `None` for a request that is not timed.
    pub(crate) times: Option<Times>,
}

/// The life of a timed request, in real time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    arrived: Nanos,
    deadline: Nanos,
}

/// The model and the requests that it has, in real time.
#[derive(Debug)]
pub(crate) struct Engine<T> {
    epoch: Nanos,
    dilation: f64,
    timing: AtomicBool,
    stopped: AtomicBool,
    core: Mutex<Core<T>>,
    /// When the model next has something to do, for the spinning timer to see without the lock.
    due: AtomicU64,
    margin: AtomicU64,
    alarm: Alarm,
    /// What the alarm was last set for.
    alarm_at: AtomicU64,
    pub(crate) tally: Tally,
}

struct Core<T> {
    device: Box<dyn Device>,
    waiting: Waiting<Waits<T>>,
    done: Vec<Completion>,
    /// What the sleeping timer's alarm is set for; zero while it is awake.
    armed: Nanos,
    queue: Queue,
    /// The device's counters when ours were last reset.
    base: model::Counters,
}

#[derive(Debug)]
struct Waits<T> {
    token: T,
    arrived: Nanos,
}

impl<T> std::fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl<T> Engine<T> {
    /// An engine for `device`, which it runs `dilation` times slower; timing is off.
    pub(crate) fn new(device: Box<dyn Device>, dilation: f64) -> std::io::Result<Self> {
        Ok(Self {
            epoch: now(),
            dilation,
            timing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            core: Mutex::new(Core {
                base: device.counters(),
                device,
                waiting: Waiting::with_capacity(ROOM),
                done: Vec::with_capacity(ROOM),
                armed: Nanos::ZERO,
                queue: Queue::default(),
            }),
            due: AtomicU64::new(u64::MAX),
            margin: AtomicU64::new(MARGIN_START.get()),
            alarm: Alarm::new()?,
            alarm_at: AtomicU64::new(0),
            tally: Tally::new(),
        })
    }

    /// Takes a request. What is to be answered at once, this request or others, is appended to
    /// `due`.
    pub(crate) fn submit(&self, ask: Ask, token: T, due: &mut Vec<Due<T>>) {
        self.tally.arrived(ask.kind, ask.length);
        if !self.timing.load(Ordering::Relaxed) {
            due.push(Due { token, times: None });
            return;
        }
        let mut core = self.lock();
        let arrived = now();
        let model_time = self.to_model(arrived);
        self.collect(&mut core, arrived, due);
        let id = core.waiting.insert(Waits { token, arrived });
        let Ask { kind, offset, length } = ask;
        core.device.submit(model_time, Request { id, kind, offset, length });
        let depth = core.waiting.count();
        core.queue.change(arrived, depth);
        self.collect(&mut core, arrived, due);
        self.look_ahead(&mut core, arrived);
    }

    /// Switches the model's times on or off. Off, every request is answered at once, and what
    /// waits is appended to `due`.
    pub(crate) fn set_timing(&self, on: bool, due: &mut Vec<Due<T>>) {
        self.timing.store(on, Ordering::Relaxed);
        if !on {
            let mut core = self.lock();
            due.extend(core.waiting.take_all().map(|w| Due { token: w.token, times: None }));
            core.queue.change(now(), 0);
        }
    }

    /// To be called when an answer was handed to the kernel.
    pub(crate) fn answered(&self, times: Option<Times>) {
        if let Some(Times { arrived, deadline }) = times {
            let service = deadline.saturating_sub(arrived);
            self.tally.answered(service, now().saturating_sub(deadline));
        }
    }

    /// The body of the timer thread: hands out every request at its deadline, until
    /// [`stop`](Self::stop).
    pub(crate) fn run_timer(&self, mut answer: impl FnMut(Due<T>)) {
        let mut due = Vec::with_capacity(ROOM);
        while !self.stopped.load(Ordering::Relaxed) {
            if self.wait_or_spin(&mut due) {
                for ready in due.drain(..) {
                    answer(ready);
                }
            }
        }
    }

    /// Ends the timer thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _core = self.lock();
        // An alarm that cannot be set leaves the thread asleep, and the process ends regardless.
        let _ = self.alarm.set(Nanos::ZERO);
    }

    /// What was counted since the last reset.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        {
            let mut core = self.lock();
            let depth = core.waiting.count();
            core.queue.change(now(), depth);
            let device = core.device.counters();
            core.queue.read_into(&mut counters);
            counters.seeks = device.seeks.saturating_sub(core.base.seeks);
            counters.cache_hits = device.cache_hits.saturating_sub(core.base.cache_hits);
        }
        counters.timing = self.timing.load(Ordering::Relaxed);
        self.tally.read_into(&mut counters);
        counters
    }

    /// Begins to count anew.
    pub(crate) fn reset_counters(&self) {
        let mut core = self.lock();
        core.base = core.device.counters();
        core.queue = Queue::beginning_at(now(), core.waiting.count());
        self.tally.clear();
    }

    /// One step of the timer: whether anything was appended to `due`.
    fn wait_or_spin(&self, due: &mut Vec<Due<T>>) -> bool {
        let margin = self.margin.load(Ordering::Relaxed);
        let wake = {
            let mut core = self.lock();
            let real = now();
            self.collect(&mut core, real, due);
            let next = self.next_due(&core);
            self.due.store(next.get(), Ordering::Relaxed);
            core.armed = Nanos::ZERO;
            let near = next.saturating_sub(real).get() <= margin;
            if !due.is_empty() || near || self.stopped.load(Ordering::Relaxed) {
                None
            } else {
                core.armed = next;
                self.arm(next, real).is_ok().then_some(())
            }
        };
        if !due.is_empty() {
            return true;
        }
        if wake.is_some() && self.alarm.wait().is_ok() {
            self.learn_margin(margin);
        }
        self.spin(Nanos::new(margin));
        false
    }

    /// Spins until the next deadline, unless that moves far away.
    fn spin(&self, margin: Nanos) {
        let far = margin.get() * 4;
        loop {
            let left = self.due.load(Ordering::Relaxed).saturating_sub(now().get());
            if left == 0 || left > far {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Learns from a wake-up how long before a deadline to wake.
    fn learn_margin(&self, margin: u64) {
        let alarm = self.alarm_at.load(Ordering::Relaxed);
        if self.due.load(Ordering::Relaxed).saturating_sub(alarm) > margin {
            // Only the first step of a long sleep.
            return;
        }
        let overslept = now().get().saturating_sub(alarm);
        let step = MARGIN_STEP.get();
        let margin = if overslept > margin { margin + 10 * step } else { margin - step };
        let margin = margin.clamp(MARGIN_LEAST.get(), MARGIN_MOST.get());
        self.margin.store(margin, Ordering::Relaxed);
    }

    /// Takes from the model what is done at real time `real`.
    fn collect(&self, core: &mut Core<T>, real: Nanos, due: &mut Vec<Due<T>>) {
        let model_time = self.to_model(real);
        if core.device.next_wake().is_none_or(|wake| wake > model_time) {
            return;
        }
        core.device.advance(model_time, &mut core.done);
        if core.done.is_empty() {
            return;
        }
        for completion in core.done.drain(..) {
            let Some(Waits { token, arrived }) = core.waiting.take(completion.id) else { continue };
            let deadline = self.to_real(completion.at);
            due.push(Due { token, times: Some(Times { arrived, deadline }) });
        }
        let depth = core.waiting.count();
        core.queue.change(real, depth);
    }

    /// Sets the alarm forward if the model now has something to do before it.
    fn look_ahead(&self, core: &mut Core<T>, real: Nanos) {
        let next = self.next_due(core);
        self.due.store(next.get(), Ordering::Relaxed);
        if next < core.armed {
            core.armed = next;
            // Can only fail for a bad descriptor or time, neither of which this is.
            let _ = self.arm(next, real);
        }
    }

    fn arm(&self, next: Nanos, real: Nanos) -> std::io::Result<()> {
        if next == Nanos::MAX {
            return self.alarm.clear();
        }
        let wake = next.saturating_sub(Nanos::new(self.margin.load(Ordering::Relaxed)));
        let sleep = wake.saturating_sub(real);
        let early = if sleep > LONG_SLEEP { sleep.get() / EARLY_SHARE } else { 0 };
        let alarm = wake.saturating_sub(Nanos::new(early));
        self.alarm_at.store(alarm.get(), Ordering::Relaxed);
        self.alarm.set(alarm)
    }

    fn next_due(&self, core: &Core<T>) -> Nanos {
        core.device.next_wake().map_or(Nanos::MAX, |wake| self.to_real(wake))
    }

    fn to_model(&self, real: Nanos) -> Nanos {
        let span = real.saturating_sub(self.epoch);
        Nanos::new((span.get() as f64 / self.dilation) as u64)
    }

    /// Rounded up, so that the model has reached its time when the real one comes.
    fn to_real(&self, model: Nanos) -> Nanos {
        // A float beyond the largest integer becomes the largest integer: the end of time.
        let span = (model.get() as f64 * self.dilation).ceil() as u64;
        Nanos::new(self.epoch.get().saturating_add(span))
    }

    fn lock(&self) -> MutexGuard<'_, Core<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the same time for every request, any number at once.
    struct Constant {
        service: Nanos,
        queue: std::collections::VecDeque<Completion>,
        requests: u64,
    }

    impl Constant {
        fn boxed(service: Nanos) -> Box<dyn Device> {
            Box::new(Self { service, queue: Default::default(), requests: 0 })
        }
    }

    impl Device for Constant {
        fn submit(&mut self, now: Nanos, request: Request) {
            self.requests += 1;
            self.queue.push_back(Completion { id: request.id, at: now + self.service });
        }
        fn next_wake(&self) -> Option<Nanos> {
            self.queue.front().map(|completion| completion.at)
        }
        fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
            while self.queue.front().is_some_and(|completion| completion.at <= now) {
                done.extend(self.queue.pop_front());
            }
        }
        fn in_flight(&self) -> usize {
            self.queue.len()
        }
        fn capacity(&self) -> Bytes {
            Bytes::from_gib(1)
        }
        fn counters(&self) -> model::Counters {
            model::Counters { seeks: self.requests, ..Default::default() }
        }
    }

    const READ: Ask =
        Ask { kind: RequestKind::Read, offset: Bytes::ZERO, length: Bytes::from_kib(64) };

    fn engine(service: Nanos, dilation: f64) -> Engine<u32> {
        let engine = Engine::new(Constant::boxed(service), dilation).unwrap();
        engine.set_timing(true, &mut Vec::new());
        engine
    }

    #[test]
    fn a_device_without_latency_answers_in_the_submitting_thread() {
        let engine = engine(Nanos::ZERO, 1.0);
        let mut due = Vec::new();
        engine.submit(READ, 7, &mut due);
        assert_eq!(due.iter().map(|due| due.token).collect::<Vec<_>>(), [7]);
        assert!(due[0].times.is_some());
        assert_eq!(engine.counters().queue, 0);
    }

    #[test]
    fn the_timer_answers_all_no_earlier_than_their_dilated_deadlines() {
        let engine = engine(Nanos::from_millis(1), 5.0);
        let (mut due, start) = (Vec::new(), now());
        let mut answered = Vec::new();
        std::thread::scope(|scope| {
            let timer = scope.spawn(|| {
                engine.run_timer(|due| {
                    engine.answered(due.times);
                    answered.push((due.token, now()));
                    if answered.len() == 20 {
                        engine.stop();
                    }
                });
            });
            for token in 0..20 {
                engine.submit(READ, token, &mut due);
            }
            timer.join().unwrap();
        });
        assert!(due.is_empty(), "answered before their time");
        let tokens: Vec<u32> = answered.iter().map(|(token, _)| *token).collect();
        assert_eq!(tokens, (0..20).collect::<Vec<_>>());
        assert!(answered.iter().all(|(_, at)| *at >= start + Nanos::from_millis(5)));
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.timed, counters.seeks), (20, 20, 20));
        assert_eq!(counters.bytes(), Bytes::from_kib(64 * 20));
        assert_eq!((counters.queue, counters.queue_max), (0, 20));
        assert!(counters.service_p50 >= Nanos::from_millis(5));
    }

    #[test]
    fn an_earlier_deadline_wakes_the_sleeping_timer() {
        struct Shrinking(Constant);
        impl Device for Shrinking {
            fn submit(&mut self, now: Nanos, request: Request) {
                // The first request takes an hour, the second a millisecond.
                let hours = 1 - self.0.requests.min(1);
                let at = now + Nanos::from_secs(3600 * hours) + Nanos::from_millis(1);
                self.0.requests += 1;
                self.0.queue.push_front(Completion { id: request.id, at });
            }
            fn next_wake(&self) -> Option<Nanos> {
                self.0.next_wake()
            }
            fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
                self.0.advance(now, done);
            }
            fn in_flight(&self) -> usize {
                self.0.in_flight()
            }
            fn capacity(&self) -> Bytes {
                self.0.capacity()
            }
            fn counters(&self) -> model::Counters {
                self.0.counters()
            }
        }
        let constant = Constant { service: Nanos::ZERO, queue: Default::default(), requests: 0 };
        let engine = Engine::new(Box::new(Shrinking(constant)), 1.0).unwrap();
        engine.set_timing(true, &mut Vec::new());
        let mut tokens = Vec::new();
        std::thread::scope(|scope| {
            let timer = scope.spawn(|| {
                engine.run_timer(|due| {
                    tokens.push(due.token);
                    engine.stop();
                });
            });
            engine.submit(READ, 1, &mut Vec::new());
            std::thread::sleep(std::time::Duration::from_millis(20));
            engine.submit(READ, 2, &mut Vec::new());
            timer.join().unwrap();
        });
        assert_eq!(tokens, [2]);
        assert_eq!(engine.counters().queue, 1);
    }

    #[test]
    fn without_timing_everything_is_answered_at_once_and_not_counted_as_timed() {
        let engine = engine(Nanos::from_secs(3600), 1.0);
        let mut due = Vec::new();
        engine.submit(READ, 1, &mut due);
        assert!(due.is_empty());
        engine.set_timing(false, &mut due);
        engine.submit(READ, 2, &mut due);
        assert_eq!(due.iter().map(|due| due.token).collect::<Vec<_>>(), [1, 2]);
        assert!(due.iter().all(|due| due.times.is_none()));
        due.drain(..).for_each(|due| engine.answered(due.times));
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.timed, counters.queue), (2, 0, 0));
    }

    #[test]
    fn a_reset_starts_all_counters_anew() {
        let engine = engine(Nanos::ZERO, 1.0);
        let mut due = Vec::new();
        engine.submit(READ, 1, &mut due);
        due.drain(..).for_each(|due| engine.answered(due.times));
        engine.reset_counters();
        let counters = engine.counters();
        assert_eq!((counters.requests(), counters.timed, counters.seeks), (0, 0, 0));
        assert_eq!(counters.bytes(), Bytes::ZERO);
        assert_eq!((counters.queue_max, counters.lateness.max), (0, Nanos::ZERO));
    }
}
