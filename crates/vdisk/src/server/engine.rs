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

use super::margin::Margin;
use super::queue::ReplyQueue;
use super::tally::CounterTally;
use super::waiting::Waiting;
use crate::counters::DiskCounters;
use crate::head_start::HeadStart;

/// More than the loop device and FUSE let in at once; beyond it a request allocates.
const QUEUE_CAPACITY: usize = 1024;

/// A longer sleep is taken in two steps, the first of which ends this share of it too early: on
/// some virtual machines a sleep is up to a hundredth longer than asked.
const LONG_SLEEP: Nanos = Nanos::from_micros(500);
const EARLY_SHARE: u64 = 32;

/// Whoever waits for longer than this finds his processor asleep when the answer comes.
const SPIN_REST: Nanos = Nanos::from_micros(300);

/// What is asked of the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRequest {
    pub(crate) kind: RequestKind,
    pub(crate) offset: Bytes,
    pub(crate) length: Bytes,
}

/// A request to be answered now.
#[derive(Debug)]
pub(crate) struct DueReply<T> {
    /// Whatever the caller handed in with the request.
    pub(crate) token: T,
    /// When it came and when it should be answered; `None` for a request that is not timed.
    pub(crate) times: Option<Times>,
}

/// The life of a timed request, in real time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// What the model takes for it.
    service: Nanos,
    /// When its answer is to be handed to the kernel.
    deadline: Nanos,
}

/// The model and the requests that it has, in real time.
#[derive(Debug)]
pub(crate) struct ServiceEngine<T> {
    epoch: Nanos,
    dilation: f64,
    timing: AtomicBool,
    stopped: AtomicBool,
    core: Mutex<Core<T>>,
    /// When the model next has something to do, for the spinning timer to see without the lock.
    due: AtomicU64,
    margin: Margin,
    alarm: Alarm,
    /// What the alarm was last set for.
    alarm_at: AtomicU64,
    pub(crate) tally: CounterTally,
}

struct Core<T> {
    device: Box<dyn Device>,
    /// The disk's own device, while another is probed in its place.
    aside: Option<Box<dyn Device>>,
    /// The model's time up to which the device has come.
    reached: Nanos,
    arrival: Nanos,
    /// How early the answer to a lone request is handed over, for it to be there in time.
    head_start: HeadStart,
    waiting: Waiting<WaitQueue<T>>,
    done: Vec<Completion>,
    /// What the sleeping timer's alarm is set for; zero while it is awake.
    armed: Nanos,
    queue: ReplyQueue,
    /// The device's counters when ours were last reset.
    base: model::Counters,
}

#[derive(Debug)]
struct WaitQueue<T> {
    token: T,
    arrived: Nanos,
}

impl<T> std::fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl<T> ServiceEngine<T> {
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
                aside: None,
                reached: Nanos::ZERO,
                arrival: Nanos::ZERO,
                head_start: HeadStart::default(),
                waiting: Waiting::with_capacity(QUEUE_CAPACITY),
                done: Vec::with_capacity(QUEUE_CAPACITY),
                armed: Nanos::ZERO,
                queue: ReplyQueue::default(),
            }),
            due: AtomicU64::new(u64::MAX),
            margin: Margin::default(),
            alarm: Alarm::new()?,
            alarm_at: AtomicU64::new(0),
            tally: CounterTally::new(),
        })
    }

    /// Takes a request. What is to be answered at once, this request or others, is appended to
    /// `due`.
    pub(crate) fn submit(&self, ask: TimedRequest, token: T, due: &mut Vec<DueReply<T>>) {
        self.tally.arrived(ask.kind, ask.length);
        if !self.timing.load(Ordering::Relaxed) {
            due.push(DueReply { token, times: None });
            return;
        }
        let mut core = self.lock();
        let arrived = now();
        self.collect(&mut core, arrived, due);
        // The device is ahead of the clock where it had a head start.
        let model_time = self.to_model(arrived).max(core.reached);
        core.arrival = arrived;
        let id = core.waiting.insert(WaitQueue { token, arrived });
        let TimedRequest { kind, offset, length } = ask;
        core.device.submit(model_time, Request { id, kind, offset, length });
        let depth = core.waiting.count();
        core.queue.change(arrived, depth);
        self.collect(&mut core, arrived, due);
        self.look_ahead(&mut core, arrived);
    }

    /// Switches the model's times on or off. Off, every request is answered at once, and what
    /// waits is appended to `due`.
    pub(crate) fn set_timing(&self, on: bool, due: &mut Vec<DueReply<T>>) {
        self.timing.store(on, Ordering::Relaxed);
        if !on {
            let mut core = self.lock();
            due.extend(core.waiting.take_all().map(|w| DueReply { token: w.token, times: None }));
            core.queue.change(now(), 0);
        }
    }

    /// Hands answers to lone requests over early, to make up for the time that whoever waits for
    /// one needs to wake.
    pub(crate) fn set_head_start(&self, early: HeadStart) {
        self.lock().head_start = early;
    }

    /// A device that takes this real time for every request, any number at once.
    pub(crate) fn constant(&self, service: Nanos) -> Result<Box<dyn Device>, model::SpecError> {
        let latency = service.as_millis_f64() / self.dilation;
        let spec = format!(
            "name = 'constant'\n[device]\nkind = 'volume'\ncapacity = '1024TiB'\n\
             latency_ms = {latency:.9}\nlatency_spread = 0.0\nconcurrency = {QUEUE_CAPACITY}\n"
        );
        model::Spec::from_toml(&spec)?.build(0)
    }

    /// Serves from another device, to see how long this machine takes for what the device does not
    /// do; `None` brings the disk's own back. Nobody uses the disk meanwhile.
    pub(crate) fn probe(&self, device: Option<Box<dyn Device>>) {
        let mut core = self.lock();
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

    /// To be called when an answer was handed to the kernel.
    pub(crate) fn answered(&self, times: Option<Times>) {
        if let Some(Times { service, deadline }) = times {
            self.tally.answered(service, now().saturating_sub(deadline));
        }
    }

    /// The body of the timer thread: hands out every request at its deadline, until
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
        // An alarm that cannot be set leaves the thread asleep, and the process ends regardless.
        let _ = self.alarm.set(Nanos::ZERO);
    }

    /// What was counted since the last reset.
    pub(crate) fn counters(&self) -> DiskCounters {
        let mut counters = DiskCounters::default();
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
        core.queue = ReplyQueue::beginning_at(now(), core.waiting.count());
        self.tally.clear();
    }

    /// One step of the timer: whether anything was appended to `due`.
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
    fn learn_margin(&self, margin: Nanos) {
        let alarm = self.alarm_at.load(Ordering::Relaxed);
        if self.due.load(Ordering::Relaxed).saturating_sub(alarm) > margin.get() {
            // Only the first step of a long sleep.
            return;
        }
        self.margin.learn(now().saturating_sub(Nanos::new(alarm)));
    }

    /// Takes from the model what is done at real time `real`.
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
            let Some(WaitQueue { token, arrived }) = core.waiting.take(completion.id) else {
                continue;
            };
            let done = self.to_real(completion.at);
            let (service, deadline) =
                (done.saturating_sub(arrived), done.saturating_sub(head_start));
            due.push(DueReply { token, times: Some(Times { service, deadline }) });
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

    /// How early to hand over what is done next. Where more than one request waits, somebody is
    /// awake.
    fn head_start(&self, core: &Core<T>) -> Nanos {
        let wake = core.device.next_wake().map_or(Nanos::ZERO, |wake| self.to_real(wake));
        let wait = wake.saturating_sub(core.arrival);
        if core.waiting.count() == 1 && wait > SPIN_REST {
            core.head_start.after(wait)
        } else {
            Nanos::ZERO
        }
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
mod tests;
