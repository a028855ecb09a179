//! Accepts requests and sends replies at the times that the model computes.
//!
//! One lock protects the model and its waiting requests. That suffices: a request holds the lock
//! twice for about 1 µs, while the kernel's part takes 20 µs. The clock is read under the lock, so
//! that the model's time never decreases.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Completion, Device, Request, RequestId, RequestKind};
use sys::realtime::{Alarm, now};
use units::{Bytes, Nanos};

use super::margin::Margin;
use super::queue::QueueDepthStats;
use super::tally::CounterTally;
use crate::counters::DiskCounters;
use crate::head_start::HeadStart;

/// More requests than the loop device and FUSE send at once. Beyond this, a request allocates.
const QUEUE_CAPACITY: usize = 1024;

/// A sleep longer than `LONG_SLEEP` is split. The first part ends early by 1/`EARLY_SHARE`, because
/// a sleep takes up to 1 % too long on some virtual machines.
const LONG_SLEEP: Nanos = Nanos::from_micros(500);
const EARLY_SHARE: u64 = 32;

/// Wait time after which the reader's processor is asleep when the reply arrives.
const SPIN_REST: Nanos = Nanos::from_micros(300);

/// A request to the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRequest {
    pub(crate) kind: RequestKind,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
}

/// A reply to send now.
#[derive(Debug)]
pub(crate) struct DueReply<T> {
    /// The caller's token for the request.
    pub(crate) token: T,
    /// Service time and deadline; `None` for an untimed request.
    pub(crate) times: Option<Times>,
}

/// Times of a timed request, in real time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Service time by the model, dilated.
    service: Nanos,
    /// Time at which the reply must be passed to the kernel.
    deadline: Nanos,
}

/// The model and its requests, in real time.
#[derive(Debug)]
pub(crate) struct ServiceEngine<T> {
    epoch: Nanos,
    dilation: f64,
    timing: AtomicBool,
    stopped: AtomicBool,
    core: Mutex<Core<T>>,
    /// Time of the next model event, which the spinning timer reads without the lock.
    due: AtomicU64,
    margin: Margin,
    alarm: Alarm,
    /// Time for which the alarm was last set.
    alarm_at: AtomicU64,
    pub(crate) tally: CounterTally,
}

struct Core<T> {
    device: Box<dyn Device>,
    /// The disk's own device while a probe replaces it.
    aside: Option<Box<dyn Device>>,
    /// Model time that the device has reached.
    reached: Nanos,
    arrival: Nanos,
    /// How early to send the reply to a lone request.
    head_start: HeadStart,
    waiting: HashMap<RequestId, WaitingRequest<T>>,
    /// Number of accepted requests, which is the next id: a device may complete a request after it
    /// was answered.
    accepted: u64,
    done: Vec<Completion>,
    /// Alarm time of the sleeping timer; 0 while it is awake.
    armed: Nanos,
    queue: QueueDepthStats,
    /// The device's counters at the last reset.
    base: model::Counters,
}

#[derive(Debug)]
struct WaitingRequest<T> {
    token: T,
    arrived: Nanos,
}

impl<T> Core<T> {
    /// Appends the replies to all waiting requests.
    fn answer_all(&mut self, due: &mut Vec<DueReply<T>>) {
        due.extend(self.waiting.drain().map(|(_, w)| DueReply { token: w.token, times: None }));
        self.queue.change(now(), 0);
    }
}

impl<T> std::fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl<T> ServiceEngine<T> {
    /// Creates an engine for `device` with this dilation. Timing is off.
    pub(crate) fn new(device: Box<dyn Device>, dilation: f64) -> std::io::Result<Self> {
        Ok(Self {
            epoch: now(),
            dilation,
            timing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            core: Mutex::new(Core {
                base: device.counters(),
                device,
                aside: None,
                reached: Nanos::ZERO,
                arrival: Nanos::ZERO,
                head_start: HeadStart::default(),
                waiting: HashMap::with_capacity(QUEUE_CAPACITY),
                accepted: 0,
                done: Vec::with_capacity(QUEUE_CAPACITY),
                armed: Nanos::ZERO,
                queue: QueueDepthStats::default(),
            }),
            due: AtomicU64::new(u64::MAX),
            margin: Margin::default(),
            alarm: Alarm::new()?,
            alarm_at: AtomicU64::new(0),
            tally: CounterTally::new(),
        })
    }

    /// Accepts a request. Appends the replies to send now, of this and other requests, to `due`.
    pub(crate) fn submit(&self, ask: TimedRequest, token: T, due: &mut Vec<DueReply<T>>) {
        self.tally.arrived(ask.kind, ask.length);
        if !self.timing.load(Ordering::Relaxed) {
            due.push(DueReply { token, times: None });
            return;
        }
        let mut core = self.lock();
        let arrived = now();
        self.collect(&mut core, arrived, due);
        // The device is ahead of the clock after a head start.
        let model_time = self.to_model(arrived).max(core.reached);
        core.arrival = arrived;
        let id = RequestId(core.accepted);
        core.accepted += 1;
        core.waiting.insert(id, WaitingRequest { token, arrived });
        let TimedRequest { kind, offset, length } = ask;
        core.device.submit(model_time, Request { id, kind, offset, length });
        let depth = core.waiting.len();
        core.queue.change(arrived, depth);
        self.collect(&mut core, arrived, due);
        self.look_ahead(&mut core, arrived);
    }

    /// Switches timing on or off. Without timing, every request is answered immediately, and the
    /// waiting replies are appended to `due`.
    pub(crate) fn set_timing(&self, on: bool, due: &mut Vec<DueReply<T>>) {
        self.timing.store(on, Ordering::Relaxed);
        if !on {
            self.lock().answer_all(due);
        }
    }

    /// Sends replies to lone requests early, to compensate for the reader's wake-up time.
    pub(crate) fn set_head_start(&self, early: HeadStart) {
        self.lock().head_start = early;
    }

    /// Returns a device with this real service time for every request and unlimited concurrency.
    pub(crate) fn constant(&self, service: Nanos) -> Result<Box<dyn Device>, model::SpecError> {
        let latency = service.as_millis_f64() / self.dilation;
        let spec = format!(
            "name = 'constant'\n[device]\nkind = 'volume'\ncapacity = '1024TiB'\n\
             latency_ms = {latency:.9}\nlatency_spread = 0.0\nconcurrency = {QUEUE_CAPACITY}\n"
        );
        model::Spec::from_toml(&spec)?.build(0)
    }

    /// Serves from another device, to measure this machine's overhead; `None` restores the disk's
    /// own device. Other requests, such as the flush of a sync(2), may be waiting: a device that is
    /// replaced would never complete them, so they are answered immediately.
    pub(crate) fn probe(&self, device: Option<Box<dyn Device>>, due: &mut Vec<DueReply<T>>) {
        let mut core = self.lock();
        core.answer_all(due);
        let own = match core.aside.take() {
            Some(own) => {
                core.device = own;
                device
            }
            None => device,
        };
        if let Some(probed) = own {
            core.aside = Some(std::mem::replace(&mut core.device, probed));
        }
    }

    /// Records lateness. Must be called after a reply was passed to the kernel.
    pub(crate) fn answered(&self, times: Option<Times>) {
        if let Some(Times { service, deadline }) = times {
            self.tally.answered(service, now().saturating_sub(deadline));
        }
    }

    /// The body of the timer thread: delivers every reply at its deadline, until
    /// [`stop`](Self::stop).
    pub(crate) fn run_timer(&self, mut answer: impl FnMut(DueReply<T>)) {
        let mut due = Vec::with_capacity(QUEUE_CAPACITY);
        while !self.stopped.load(Ordering::Relaxed) {
            if self.wait_or_spin(&mut due) {
                for ready in due.drain(..) {
                    answer(ready);
                }
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _core = self.lock();
        // If the alarm cannot be set, the thread stays asleep; the process exits nevertheless.
        let _ = self.alarm.set(Nanos::ZERO);
    }

    /// Returns the counters since the last reset.
    pub(crate) fn counters(&self) -> DiskCounters {
        let mut counters = self.tally.counters();
        {
            let mut core = self.lock();
            let depth = core.waiting.len();
            core.queue.change(now(), depth);
            let device = core.device.counters();
            core.queue.read_into(&mut counters);
            counters.seeks = device.seeks.saturating_sub(core.base.seeks);
            counters.cache_hits = device.cache_hits.saturating_sub(core.base.cache_hits);
        }
        counters.timing = self.timing.load(Ordering::Relaxed);
        counters
    }

    /// Starts over with `device`, whose caches are empty, and with all counters at 0. Requests that
    /// are waiting are answered immediately.
    pub(crate) fn reset(&self, device: Box<dyn Device>, due: &mut Vec<DueReply<T>>) {
        let mut core = self.lock();
        core.answer_all(due);
        match core.aside {
            Some(_) => core.aside = Some(device),
            None => core.device = device,
        }
        core.base = core.device.counters();
        core.queue = QueueDepthStats::beginning_at(now(), core.waiting.len());
        self.tally.clear();
    }

    /// Performs one step of the timer; returns whether anything was appended to `due`.
    fn wait_or_spin(&self, due: &mut Vec<DueReply<T>>) -> bool {
        let margin = self.margin.get();
        let wake = {
            let mut core = self.lock();
            let real = now();
            self.collect(&mut core, real, due);
            let next = self.next_due(&core);
            self.due.store(next.get(), Ordering::Relaxed);
            core.armed = Nanos::ZERO;
            let near = next.saturating_sub(real) <= margin;
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
        self.spin(margin);
        false
    }

    /// Spins until the next deadline; returns early if it moves beyond four margins.
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

    /// Adjusts the margin between waking up and a deadline, after a wake-up.
    fn learn_margin(&self, margin: Nanos) {
        let alarm = self.alarm_at.load(Ordering::Relaxed);
        if self.due.load(Ordering::Relaxed).saturating_sub(alarm) > margin.get() {
            // This was only the first part of a long sleep.
            return;
        }
        self.margin.learn(now().saturating_sub(Nanos::new(alarm)));
    }

    /// Appends the model's completions at real time `real` to `due`.
    fn collect(&self, core: &mut Core<T>, real: Nanos, due: &mut Vec<DueReply<T>>) {
        let head_start = self.head_start(core);
        let model_time = self.to_model(real + head_start).max(core.reached);
        if core.device.next_wake().is_none_or(|wake| wake > model_time) {
            return;
        }
        core.reached = model_time;
        core.device.advance(model_time, &mut core.done);
        if core.done.is_empty() {
            return;
        }
        for completion in core.done.drain(..) {
            let Some(WaitingRequest { token, arrived }) = core.waiting.remove(&completion.id)
            else {
                continue;
            };
            let done = self.to_real(completion.at);
            let (service, deadline) =
                (done.saturating_sub(arrived), done.saturating_sub(head_start));
            due.push(DueReply { token, times: Some(Times { service, deadline }) });
        }
        let depth = core.waiting.len();
        core.queue.change(real, depth);
    }

    /// Sets the alarm earlier if the model's next event precedes it.
    fn look_ahead(&self, core: &mut Core<T>, real: Nanos) {
        let next = self.next_due(core);
        self.due.store(next.get(), Ordering::Relaxed);
        if next < core.armed {
            core.armed = next;
            // Fails only for an invalid descriptor or time.
            let _ = self.arm(next, real);
        }
    }

    fn arm(&self, next: Nanos, real: Nanos) -> std::io::Result<()> {
        if next == Nanos::MAX {
            return self.alarm.clear();
        }
        let wake = next.saturating_sub(self.margin.get());
        let sleep = wake.saturating_sub(real);
        let early = if sleep > LONG_SLEEP { sleep.get() / EARLY_SHARE } else { 0 };
        let alarm = wake.saturating_sub(Nanos::new(early));
        self.alarm_at.store(alarm.get(), Ordering::Relaxed);
        self.alarm.set(alarm)
    }

    fn next_due(&self, core: &Core<T>) -> Nanos {
        let wake = core.device.next_wake().map(|wake| self.to_real(wake));
        wake.map_or(Nanos::MAX, |wake| wake.saturating_sub(self.head_start(core)))
    }

    /// Returns how early to send the next reply: 0 if several requests wait (a reader is awake).
    fn head_start(&self, core: &Core<T>) -> Nanos {
        let wake = core.device.next_wake().map_or(Nanos::ZERO, |wake| self.to_real(wake));
        let wait = wake.saturating_sub(core.arrival);
        if core.waiting.len() == 1 && wait > SPIN_REST {
            core.head_start.after(wait)
        } else {
            Nanos::ZERO
        }
    }

    fn to_model(&self, real: Nanos) -> Nanos {
        let span = real.saturating_sub(self.epoch);
        Nanos::new((span.get() as f64 / self.dilation) as u64)
    }

    /// Rounds up, so that the model has reached its time when the real time arrives.
    fn to_real(&self, model: Nanos) -> Nanos {
        // A float beyond the largest integer saturates at u64::MAX.
        let span = (model.get() as f64 * self.dilation).ceil() as u64;
        Nanos::new(self.epoch.get().saturating_add(span))
    }

    fn lock(&self) -> MutexGuard<'_, Core<T>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
