//! The window that streams of one device get: a first guess from what was learnt of the device,
//! and from there on by trying.

use units::{Nanos, Pages};

use super::sizes;

/// A window that holds this many times what flows during one read: a seek before it then takes a
/// ninth of the time.
const AMORTISED: u64 = 8;
/// The least growth of one step.
const GROWTH: u64 = 4;
/// What a larger window must win to be worth another step; and what makes it worth keeping.
const GAIN: f64 = 1.05;
/// Below this a step did harm.
const HARM: f64 = 0.95;
/// How often each stream is to use up its window before a step is judged.
const ROUNDS: f64 = 3.0;
/// The shortest and the longest trial.
const TRIAL: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_millis(1500));
/// What was found is found again where readers wait and get less than this part of what they got.
const SLOWER: f64 = 0.7;
/// How long what was found holds.
const HOLDS: Nanos = Nanos::from_secs(20);

/// All streams of a device together, at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// How many read forward now.
    pub active: u64,
    /// Whether any of them waits.
    pub waiting: bool,
    /// Pages that their readers came by so far.
    pub progress: u64,
    /// The window that most of them have.
    pub typical: Pages,
    /// The most that each may have.
    pub most: Pages,
    /// What flows during one read.
    pub in_flight: Pages,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Pages,
    rate: f64,
    /// When the effect may begin to show, and what there was then.
    begins: Nanos,
    begun: Option<(Nanos, u64)>,
    ends: Nanos,
}

/// Finds the window for the streams of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Climb {
    window: Option<Pages>,
    trial: Option<Trial>,
    /// Since when, for how many streams and at which rate no more is wanted.
    enough: Option<(Nanos, u64, f64)>,
    last: Option<(Nanos, u64)>,
    /// Pages a second, of late, once that is known.
    rate: Option<f64>,
}

impl Climb {
    /// The window for streams that wait, and why if that is news.
    pub fn step(&mut self, now: Nanos, streams: &Streams) -> (Option<Pages>, Option<String>) {
        self.measure(now, streams.progress);
        let news = match self.trial {
            Some(trial) => self.judge(now, streams, trial),
            None => self.try_more(now, streams),
        };
        (self.window, news)
    }

    fn measure(&mut self, now: Nanos, progress: u64) {
        if let Some((then, before)) = self.last.replace((now, progress)) {
            let seconds = now.saturating_sub(then).as_secs_f64();
            if seconds > 0.0 {
                let rate = progress.saturating_sub(before) as f64 / seconds;
                let weight = (seconds / 0.3).min(1.0);
                let known = self.rate.unwrap_or(rate);
                self.rate = Some(known + weight * (rate - known));
            }
        }
    }

    fn try_more(&mut self, now: Nanos, streams: &Streams) -> Option<String> {
        if let Some((since, active, rate)) = self.enough {
            // Other streams, or the same in another phase of their work.
            let slower = self.rate.unwrap_or(0.0) < SLOWER * rate;
            let as_many = active / 2 < streams.active && streams.active <= active * 2;
            let same = as_many && !(slower && streams.waiting);
            if same && now.saturating_sub(since) < HOLDS {
                return None;
            }
            self.enough = None;
        }
        let rate = self.rate.filter(|_| streams.waiting && streams.active > 0)?;
        let before = self.window.unwrap_or(streams.typical);
        let guess = streams.in_flight.get().saturating_mul(AMORTISED);
        let wish = guess.max(before.get().saturating_mul(GROWTH));
        let window =
            sizes::at_most(Pages::new(sizes::at_least(Pages::new(wish)).get()).min(streams.most));
        if window <= before {
            return None;
        }
        let pages = streams.active.saturating_mul(window.get()) as f64;
        let span = Nanos::from_secs_f64(ROUNDS * pages / rate.max(1.0));
        let span = span.max(TRIAL.0).min(TRIAL.1);
        self.window = Some(window);
        self.trial = Some(Trial {
            before,
            rate,
            begins: now + span.scaled(1.0 / 3.0),
            begun: None,
            ends: now + span,
        });
        Some("its readers wait".to_owned())
    }

    fn judge(&mut self, now: Nanos, streams: &Streams, mut trial: Trial) -> Option<String> {
        if trial.begun.is_none() && now >= trial.begins {
            trial.begun = Some((now, streams.progress));
        }
        self.trial = Some(trial);
        let (begun, before) = trial.begun?;
        if now < trial.ends || now <= begun {
            return None;
        }
        let seconds = now.saturating_sub(begun).as_secs_f64();
        let rate = streams.progress.saturating_sub(before) as f64 / seconds;
        let gain = rate / trial.rate.max(1.0);
        self.trial = None;
        if gain < HARM && streams.waiting {
            let tried = self.window.replace(trial.before);
            self.enough = Some((now, streams.active, trial.rate));
            // What it was while that was tried says nothing of what it will be.
            self.rate = Some(trial.rate);
            return tried.map(|tried| {
                format!("with {} pages it was read {gain:.2} times as fast", tried.get())
            });
        }
        if gain < GAIN {
            self.enough = Some((now, streams.active, rate));
            return None;
        }
        self.try_more(now, streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(progress: u64) -> Streams {
        Streams {
            active: 8,
            waiting: true,
            progress,
            typical: Pages::new(32),
            most: Pages::new(2048),
            in_flight: Pages::new(30),
        }
    }

    /// Climbs while `rate` pages a second are read at each window.
    fn climb(rate: impl Fn(u64) -> f64) -> Vec<u64> {
        let (mut climb, mut progress, mut windows) = (Climb::default(), 0.0, vec![32]);
        for tick in 0..200 {
            let (window, _) = climb.step(Nanos::from_millis(100 * tick), &streams(progress as u64));
            let window = window.map_or(32, Pages::get);
            if windows.last() != Some(&window) {
                windows.push(window);
            }
            progress += 0.1 * rate(window);
        }
        windows
    }

    #[test]
    fn it_grows_while_that_wins() {
        assert_eq!(climb(|window| window as f64 * 100.0), [32, 272, 1088, 2048]);
        assert_eq!(climb(|_| 10_000.0), [32, 272]);
    }

    #[test]
    fn what_does_harm_is_taken_back() {
        assert_eq!(climb(|window| if window > 100 { 100.0 } else { 10_000.0 }), [32, 272, 32]);
    }
}
