//! The rate of priming: as fast as possible with little loss for readers.
//!
//! If priming takes the share f of a device's time, each wait of a reader is 1/(1-f) times as long.
//! If the share c of the randomly read data is cached, only 1-c of these reads wait. Readers then
//! get (1-f)/(1-c) times their throughput without priming, so f = 1-(1-LOSS)(1-c) costs them at
//! most LOSS (`max_loss_share`) at any moment. f grows automatically as c grows: with this LOSS,
//! all data is cached after three times the duration of one sequential pass.
//!
//! The device time per page is not measured at the device, which may serve several requests at
//! once. It is learned from how much longer readers wait: the sum of 1 - (wait without priming ÷
//! wait now) over time, per primed page.

use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

use super::FileKey;
use crate::tuning::Tuning;

/// How fast priming may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrimingHaste {
    /// At the rate that costs readers little.
    Steady,
    /// The same, after bursts that show what a page costs.
    Bursts,
    /// As fast as the queue of the device allows.
    AtOnce,
}

/// Waits and primed pages of one measurement period.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    span: Nanos,
    stalls: u64,
    stalled: f64,
    pages: u64,
}

impl Stretch {
    fn mean(&self) -> f64 {
        self.stalled / self.stalls.max(1) as f64
    }
}

/// The state of priming on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrimingStats {
    /// The share of the readers' wait time before priming that still remains, 0 to 1.
    pub missing: f64,
    /// The share of the device's time that priming may take, 0 to 1.
    pub share: f64,
    /// The permitted rate; 0 while waits without priming are measured or the queue is full.
    pub pages_per_second: f64,
    /// The estimated device time per page.
    pub page_cost: Nanos,
    /// The mean wait without priming; zero if it is unknown.
    pub wait: Nanos,
    /// Pages that were requested and that the device has not read yet, an estimate.
    pub queued: Pages,
}

/// Controls the rate of all priming on one device.
#[derive(Clone, Debug, Default)]
pub(super) struct PrimingController {
    /// The mean wait without priming, in seconds; 0 if it is unknown.
    alone: f64,
    now: Stretch,
    /// Decaying sums: the time that readers lost, in seconds, and the pages primed meanwhile.
    lost: (f64, f64),
    /// Pages that may be requested now, and requested pages not read yet (an estimate).
    budget_pages: f64,
    queued: f64,
    begun: bool,
    /// The size of the next burst, in pages; `None` if no further burst is due.
    burst: Option<f64>,
    /// Whether the last call of `allows` began a burst.
    is_burst_new: bool,
    /// The number of bursts so far, and the time during which readers waited, in seconds.
    bursts: u32,
    waited: f64,
    file: Option<FileKey>,
    /// Whether anything was primed, which shows the rate of the device.
    is_tested: bool,
    /// Whether the rate is minimal or the cost per page maximal, for how many stretches in a row,
    /// and for how many more stretches priming pauses.
    too_much: bool,
    slowest: u64,
    paused_stretches: u64,
    /// Whether windows have changed since waits were last measured without priming, and how many
    /// stretches ago that was.
    changed: bool,
    age: u64,
    stats: Option<PrimingStats>,
    tuning: Arc<Tuning>,
}

impl PrimingController {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Returns the state of priming; `None` while nothing is primed.
    pub fn stats(&self) -> Option<PrimingStats> {
        self.stats
    }

    /// Adds the number and the total time of waits over an interval.
    pub fn waited(&mut self, stalls: u64, stalled: Nanos, elapsed: Nanos) {
        self.now.stalls += stalls;
        self.now.stalled += stalled.as_secs_f64();
        self.now.span += elapsed;
        // A burst delays all readers at once: waits that overlap count for at most the interval.
        self.waited += stalled.min(elapsed).as_secs_f64();
        if self.now.span < self.tuning.observation_time || self.now.stalls < self.tuning.few_samples
        {
            return;
        }
        let over = std::mem::take(&mut self.now);
        if over.pages == 0 && !(self.begun && self.paused_stretches == 0) {
            self.alone = if self.alone == 0.0 || self.paused_stretches > 0 {
                over.mean()
            } else {
                0.5 * (self.alone + over.mean())
            };
            self.paused_stretches = self.paused_stretches.saturating_sub(1);
            (self.changed, self.age) = (false, 0);
        } else if self.alone > 0.0 {
            // A piece may be read one stretch after its request; the decaying sums tolerate that.
            let lost = 1.0 - self.alone / over.mean().max(1e-9);
            let (lost, pages) = (lost * over.span.as_secs_f64(), over.pages as f64);
            self.lost = (
                self.tuning.retention_per_stretch() * self.lost.0 + lost,
                self.tuning.retention_per_stretch() * self.lost.1 + pages,
            );
            self.look_again();
        }
    }

    /// Updates the queue estimate with the bytes that the device read over an interval.
    pub fn completed(&mut self, read: Bytes, page: Bytes, elapsed: Nanos) {
        let kept = self.queued
            * 0.5_f64.powf(elapsed.as_secs_f64() / self.tuning.observation_time.as_secs_f64());
        self.queued = (kept - read.get() as f64 / page.get().max(1) as f64).max(0.0);
    }

    /// Returns the budget for an interval in pages, from which the caller subtracts. `missing`: see
    /// [`PrimingStats`]; `rate`: the highest rate of the device so far, per second.
    pub fn allows(
        &mut self,
        missing: f64,
        rate: Bytes,
        page: Bytes,
        elapsed: Nanos,
        haste: PrimingHaste,
    ) -> &mut f64 {
        if !self.begun {
            (self.begun, self.burst) = (true, Some(self.tuning.first_burst_pages()));
            // The waits so far are without priming.
            let now = std::mem::take(&mut self.now);
            if self.alone == 0.0 {
                self.alone = now.mean();
            }
        }
        // If the device is not done with a burst, a larger one would show nothing more.
        if std::mem::take(&mut self.is_burst_new) && self.queued > 0.0 {
            self.burst = None;
        }
        let pass = page.get() as f64 / (rate.get() as f64).max(self.tuning.min_stream_rate.get());
        let share = (1.0 - (1.0 - self.tuning.max_loss_share) * missing.clamp(0.0, 1.0))
            .min(self.tuning.max_device_share());
        let cost = match haste {
            // The few pages so far may only seem to be cheap.
            PrimingHaste::Steady => self.cost(pass).max(self.first_cost(pass)),
            PrimingHaste::Bursts | PrimingHaste::AtOnce => self.cost(pass),
        };
        let pages_per_second = (share / cost).max(self.tuning.min_pages_per_second());
        let stats = PrimingStats {
            missing,
            share,
            pages_per_second: 0.0,
            page_cost: Nanos::from_secs_f64(cost),
            wait: Nanos::from_secs_f64(self.alone),
            queued: Pages::new(self.queued as u64),
        };
        self.stats = Some(stats);
        let queue = self.tuning.max_queue_time().as_secs_f64() / pass;
        if haste == PrimingHaste::AtOnce {
            // A slow device reads one piece at a time, after a burst that shows how fast it is.
            let (first, piece) = (self.tuning.first_burst_pages(), self.tuning.piece_pages as f64);
            let least = if self.is_rate_assumed(rate) { first } else { piece };
            self.budget_pages = (queue.max(least) - self.queued).max(0.0);
            return &mut self.budget_pages;
        }
        if self.paused_stretches > 0 || self.queued > queue {
            self.budget_pages = 0.0;
            return &mut self.budget_pages;
        }
        self.stats = Some(PrimingStats { pages_per_second, ..stats });
        let pages = pages_per_second * elapsed.as_secs_f64();
        self.budget_pages = (self.budget_pages + pages)
            .min(pages.max(self.tuning.first_burst_pages()))
            .max(if haste == PrimingHaste::Steady { 0.0 } else { self.next_burst() });
        self.too_much = pages_per_second <= self.tuning.min_pages_per_second()
            || cost >= self.tuning.cost_ratios().1 * pass;
        &mut self.budget_pages
    }

    /// Returns the size of a burst that tests the rate of the device, in pages; 0 if none is due.
    fn next_burst(&mut self) -> f64 {
        let bursts = f64::from(self.bursts + 1) * self.tuning.max_queue_time().as_secs_f64();
        if bursts > self.tuning.max_loss_share * self.waited {
            return 0.0;
        }
        let Some(next) = self.burst.take() else { return 0.0 };
        (self.bursts, self.is_burst_new) = (self.bursts + 1, true);
        self.burst = Some(2.0 * next).filter(|next| *next <= self.tuning.max_burst_pages());
        next
    }

    /// Returns the mean wait without priming, in seconds; `None` if it is unknown.
    pub fn wait_alone(&self) -> Option<f64> {
        (self.alone > 0.0).then_some(self.alone)
    }

    pub fn windows_changed(&mut self) {
        self.changed = true;
    }

    /// Sets the file that is primed now. `alone`: the number of its waits without priming and their
    /// mean in seconds, as waits differ between files. If there were few, priming first pauses to
    /// measure more: with too short a mean, all priming appears too costly.
    pub fn primes(&mut self, file: FileKey, alone: Option<(u64, f64)>) {
        let before = self.file.replace(file);
        if before != Some(file)
            && let Some((waits, alone)) = alone
        {
            (self.alone, self.now) = (alone, Stretch::default());
            if waits < self.tuning.many_waits() {
                self.paused_stretches = self.paused_stretches.max(1);
            }
        }
    }

    /// Returns the file whose waits count; `None` while nothing is primed, when all waits count.
    pub fn file(&self) -> Option<FileKey> {
        self.file
    }

    /// Returns whether this rate is only assumed: no read has shown a higher one, and nothing was
    /// primed that could have.
    pub fn is_rate_assumed(&self, rate: Bytes) -> bool {
        !self.is_tested && rate.get() as f64 <= self.tuning.min_stream_rate.get()
    }

    /// Adds pages that were requested.
    pub fn took(&mut self, pages: u64) {
        self.is_tested |= pages > 0;
        self.now.pages += pages;
        self.queued += pages as f64;
    }

    pub fn is_over(&mut self) {
        (self.begun, self.is_burst_new, self.file, self.stats) = (false, false, None, None);
    }

    /// Returns the assumed device time per page, in seconds, before any was measured.
    fn first_cost(&self, pass: f64) -> f64 {
        self.tuning.interleave_cost_ratio() * pass
    }

    /// Returns the device time per page in seconds; `pass`: the same in a sequential pass.
    fn cost(&self, pass: f64) -> f64 {
        // The prior weighs as much as two seconds of measurement at the maximum loss.
        let first = self.first_cost(pass);
        let weight = 2.0 * self.tuning.max_loss_share / first;
        let cost = (first * weight + self.lost.0) / (weight + self.lost.1);
        let (least, most) = self.tuning.cost_ratios();
        cost.clamp(least * pass, most * pass)
    }

    /// Ends a stretch with priming. If pages appear too costly for long, others may read more than
    /// before, so waits without priming are measured again.
    fn look_again(&mut self) {
        self.age += 1;
        self.slowest = if self.too_much { self.slowest + 1 } else { 0 };
        if self.slowest >= self.tuning.min_repeats() {
            (self.slowest, self.paused_stretches, self.lost) =
                (0, self.tuning.reference_stretches(), (0.0, 0.0));
        } else if self.changed && self.age >= self.tuning.min_repeats() {
            self.paused_stretches = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use PrimingHaste::{AtOnce, Bursts, Steady};

    use super::*;

    const TICK: Nanos = Nanos::from_millis(100);
    const PAGE: Bytes = Bytes::from_kib(4);

    /// A disk that serves one request at a time, with `readers` that always wait for it. `read` and
    /// `page` are the times of a random read and of a primed page, in seconds.
    struct Disk {
        readers: f64,
        read: f64,
        page: f64,
    }

    impl Disk {
        /// Primes `pages` pages. Returns how many seconds that takes, and the lowest throughput of
        /// readers relative to that without priming, over five seconds.
        fn primes(&self, pages: f64) -> (f64, f64) {
            let (mut pace, mut done, mut seconds, mut got) =
                (PrimingController::default(), 0.0, 0.0, Vec::new());
            let before = pages * 4096.0 / Bytes::from_mib(90).get() as f64;
            let (mut f, mut stalls, mut waited, mut backlog) = (0.0, 0.0, 0.0, 0.0_f64);
            while done < pages {
                let count = TICK.as_secs_f64() * (1.0 - f) / self.read;
                stalls += count;
                let whole = stalls as u64;
                stalls -= whole as f64;
                // All readers wait all the time; their wait counts when it ends.
                waited += self.readers * TICK.as_secs_f64();
                let stalled = if whole > 0 { std::mem::take(&mut waited) } else { 0.0 };
                pace.waited(whole, Nanos::from_secs_f64(stalled), TICK);
                seconds += TICK.as_secs_f64();
                // Priming begins after half of the time of a pass, and bursts after all of it.
                if seconds < 0.5 * before {
                    continue;
                }
                let haste = if seconds < before { Steady } else { Bursts };
                let budget_pages =
                    pace.allows(1.0 - done / pages, Bytes::from_mib(90), PAGE, TICK, haste);
                let pages_now = (*budget_pages / 1024.0).floor() * 1024.0;
                *budget_pages -= pages_now;
                pace.took(pages_now as u64);
                got.push((1.0 - f) / (1.0 - done / pages));
                done += pages_now;
                backlog += pages_now * self.page;
                let now = backlog.min(0.99 * TICK.as_secs_f64());
                (backlog, f) = (backlog - now, now / TICK.as_secs_f64());
                let read = now / self.page + (1.0 - f) * TICK.as_secs_f64() / self.read;
                pace.completed(Bytes::new((read * 4096.0) as u64), PAGE, TICK);
            }
            let slots =
                got.chunks_exact(50).map(|slot| slot.iter().sum::<f64>() / slot.len() as f64);
            (seconds - before, slots.fold(f64::INFINITY, f64::min))
        }
    }

    #[test]
    fn it_takes_little_more_than_three_passes_and_costs_readers_little() {
        let pages = 160_000.0;
        // A page costs as much as in a pass, more because of seeks, or less with several heads.
        for (cost, most, got) in
            [(1.0, 4.0, 0.9), (1.3, 4.0, 0.88), (2.0, 4.0, 0.85), (0.5, 4.5, 0.9)]
        {
            let page = cost * 4096.0 / Bytes::from_mib(90).get() as f64;
            let disk = Disk { readers: 8.0, read: 0.008, page };
            let (seconds, least) = disk.primes(pages);
            let passes = seconds / (pages * page);
            assert!(passes < most, "{cost}: {passes:.2} passes");
            assert!(least > got, "{cost}: {least:.3} of what they had");
        }
    }

    #[test]
    fn what_is_read_at_once_is_limited_by_the_queue_alone() {
        let mut pace = PrimingController::default();
        let allows = |pace: &mut PrimingController, haste| {
            *pace.allows(1.0, Bytes::from_mib(100), PAGE, TICK, haste)
        };
        // 10 MiB take 100 ms.
        assert!(allows(&mut pace, Bursts) < 2560.0);
        assert_eq!(allows(&mut pace, AtOnce), 2560.0);
        pace.took(2000);
        assert_eq!(allows(&mut pace, AtOnce), 560.0);
        pace.took(600);
        assert_eq!(allows(&mut pace, AtOnce), 0.0);
        // 4 MiB take longer: the first burst may, and single pieces.
        let (mut pace, slow) = (PrimingController::default(), Bytes::from_mib(10));
        let allows = |pace: &mut PrimingController| *pace.allows(1.0, slow, PAGE, TICK, AtOnce);
        assert!(pace.is_rate_assumed(slow) && !pace.is_rate_assumed(Bytes::from_mib(100)));
        assert_eq!(allows(&mut pace), Tuning::DEFAULT.first_burst_pages());
        pace.took(1024);
        assert!(!pace.is_rate_assumed(slow), "it is as slow as that");
        assert_eq!(allows(&mut pace), 0.0);
        pace.completed(Bytes::from_mib(4), PAGE, TICK);
        assert_eq!(allows(&mut pace), Tuning::DEFAULT.piece_pages as f64);
    }

    #[test]
    fn a_device_that_is_done_with_a_burst_gets_a_larger_one() {
        let bursts = |reads: f64| {
            let mut pace = PrimingController { waited: 100.0, ..PrimingController::default() };
            pace.waited(
                Tuning::DEFAULT.few_samples,
                Nanos::from_millis(Tuning::DEFAULT.few_samples),
                Tuning::DEFAULT.observation_time,
            );
            let mut burst = || {
                let pages =
                    std::mem::take(pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts));
                pace.took(pages as u64);
                let read = pages.min(reads) as u64 * PAGE.get();
                pace.completed(Bytes::new(read), PAGE, TICK);
                pages
            };
            [burst(), burst(), burst()]
        };
        let [first, second, third] = bursts(1e9);
        assert!(
            first >= Tuning::DEFAULT.first_burst_pages()
                && second >= 2.0 * Tuning::DEFAULT.first_burst_pages()
                && third >= 4.0 * Tuning::DEFAULT.first_burst_pages()
        );
        let [first, second, _] = bursts(1000.0);
        assert!(
            first >= Tuning::DEFAULT.first_burst_pages()
                && second < Tuning::DEFAULT.first_burst_pages()
        );
    }

    #[test]
    fn a_burst_that_takes_longer_than_an_interval_is_the_last_one() {
        let is_doubled = |read_at_first: u64| {
            let mut pace = PrimingController { waited: 5.1, ..PrimingController::default() };
            let mut interval = |waited: f64, read: u64| {
                pace.waited += waited;
                let budget_pages = pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts);
                let pages = std::mem::take(budget_pages);
                pace.took(pages as u64);
                pace.completed(Bytes::new(read * PAGE.get()), PAGE, TICK);
                pages / Tuning::DEFAULT.first_burst_pages()
            };
            assert!(interval(0.0, read_at_first) >= 1.0);
            // Then all of it is read, long before the next one is due.
            assert!(interval(0.0, 1 << 20) < 1.0);
            interval(5.0, 0) >= 2.0
        };
        assert!(is_doubled(1 << 20) && !is_doubled(10));
    }

    #[test]
    fn bursts_take_no_more_than_may_be_lost_of_what_was_waited() {
        let bursts = |readers: u64, seconds: u64| {
            let mut pace = PrimingController::default();
            pace.waited(
                Tuning::DEFAULT.few_samples,
                Nanos::from_secs(readers * seconds),
                Nanos::from_secs(seconds),
            );
            let mut bursts = 0;
            for _ in 0..10 {
                let budget_pages = pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts);
                bursts +=
                    u32::from(std::mem::take(budget_pages) >= Tuning::DEFAULT.first_burst_pages());
            }
            bursts
        };
        assert_eq!([4, 6, 9, 11, 16].map(|seconds| bursts(1, seconds)), [0, 1, 1, 2, 3]);
        assert_eq!([4, 6, 9, 11, 16].map(|seconds| bursts(8, seconds)), [0, 1, 1, 2, 3]);
        let mut pace = PrimingController { waited: 100.0, ..PrimingController::default() };
        let steady = *pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Steady);
        assert!(steady < Tuning::DEFAULT.first_burst_pages(), "{steady}");
        let burst = *pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts);
        assert!(burst >= Tuning::DEFAULT.first_burst_pages(), "{burst}");
    }

    #[test]
    fn what_was_there_already_does_not_block_the_queue() {
        let mut pace = PrimingController::default();
        pace.waited(
            Tuning::DEFAULT.few_samples,
            Nanos::from_millis(10 * Tuning::DEFAULT.few_samples),
            Tuning::DEFAULT.observation_time,
        );
        pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts);
        // More than the queue limit allows, and the device reads none of it.
        pace.took(10_000);
        let mut ticks = 0;
        while *pace.allows(0.5, Bytes::from_mib(90), PAGE, TICK, Bursts) == 0.0 {
            pace.completed(Bytes::ZERO, PAGE, TICK);
            ticks += 1;
        }
        assert!((5..=15).contains(&ticks), "{ticks}");
    }

    #[test]
    fn few_waits_are_looked_at_again_before_much_is_read() {
        let mut pace = PrimingController { waited: 100.0, ..PrimingController::default() };
        pace.primes(FileKey(1, 1), Some((Tuning::DEFAULT.many_waits() - 1, 0.005)));
        let allowed = |pace: &mut PrimingController| {
            pace.waited(10, Nanos::from_millis(80), TICK);
            std::mem::take(pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts))
        };
        let looked: Vec<f64> = (0..20).map(|_| allowed(&mut pace)).collect();
        let rested = looked.iter().take_while(|pages| **pages == 0.0).count();
        assert!((4..=6).contains(&rested), "{looked:?}");
        assert!(
            looked[rested] >= Tuning::DEFAULT.first_burst_pages(),
            "then it shows how fast the device is"
        );
        assert!((0.0079..0.0081).contains(&pace.alone), "{}", pace.alone);
        let mut pace = PrimingController::default();
        pace.primes(FileKey(1, 1), Some((Tuning::DEFAULT.many_waits(), 0.005)));
        assert!(allowed(&mut pace) > 0.0);
    }

    #[test]
    fn waits_that_others_make_longer_are_looked_at_again() {
        let mut pace = PrimingController::default();
        let mut tick = |wait: u64, primes: bool| {
            pace.waited(20, Nanos::from_millis(20 * wait), TICK);
            if primes {
                let budget_pages = pace.allows(1.0, Bytes::from_mib(90), PAGE, TICK, Bursts);
                let pages = std::mem::take(budget_pages);
                pace.took(pages as u64);
                pace.completed(Bytes::from_mib(9), PAGE, TICK);
            }
            pace.alone
        };
        for _ in 0..20 {
            tick(10, false);
        }
        let alone = (0..600).map(|_| tick(200, true)).last().expect("a wait");
        assert!(alone > 0.1, "{alone}");
    }
}
