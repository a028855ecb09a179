//! Tests the engine with devices whose service times are known.

use super::*;

/// Serves every request in the same time, without a limit on concurrency.
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

const READ: TimedRequest =
    TimedRequest { kind: RequestKind::Read, offset: Bytes::ZERO, length: Bytes::from_kib(64) };

fn engine(service: Nanos, dilation: f64) -> ServiceEngine<u32> {
    let engine = ServiceEngine::new(Constant::boxed(service), dilation).unwrap();
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
    // One nanosecond of model time is five nanoseconds of real time here.
    assert!(counters.service_p50 + Nanos::new(10) >= Nanos::from_millis(5));
}

#[test]
fn an_earlier_deadline_wakes_the_sleeping_timer() {
    struct Shrinking(Constant);
    impl Device for Shrinking {
        fn submit(&mut self, now: Nanos, request: Request) {
            // The first request takes an hour, the second one millisecond.
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
    let engine = ServiceEngine::new(Box::new(Shrinking(constant)), 1.0).unwrap();
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
fn a_reset_starts_with_a_new_device_and_all_counters_anew() {
    let engine = engine(Nanos::ZERO, 1.0);
    let mut due = Vec::new();
    engine.submit(READ, 1, &mut due);
    due.drain(..).for_each(|due| engine.answered(due.times));
    engine.reset(Constant::boxed(Nanos::from_secs(3600)), &mut due);
    let counters = engine.counters();
    assert_eq!((counters.requests(), counters.timed, counters.seeks), (0, 0, 0));
    assert_eq!(counters.bytes(), Bytes::ZERO);
    assert_eq!((counters.queue_max, counters.lateness.max), (0, Nanos::ZERO));
    engine.submit(READ, 2, &mut due);
    assert!(due.is_empty(), "the new device serves slowly");
    engine.reset(Constant::boxed(Nanos::ZERO), &mut due);
    engine.submit(READ, 3, &mut due);
    assert_eq!(due.iter().map(|due| due.token).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_probe_loses_no_request() {
    let engine = engine(Nanos::from_secs(3600), 1.0);
    let mut due = Vec::new();
    engine.submit(READ, 1, &mut due);
    engine.probe(Some(Constant::boxed(Nanos::from_secs(3600))), &mut due);
    engine.submit(READ, 2, &mut due);
    engine.probe(None, &mut due);
    assert_eq!(due.iter().map(|due| due.token).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(engine.counters().queue, 0);
}

#[test]
fn a_lone_request_gets_its_head_start_and_company_does_not() {
    let engine = engine(Nanos::from_millis(20), 1.0);
    engine.set_head_start(HeadStart::constant(Nanos::from_millis(10)));
    let mut answered = Vec::new();
    let start = now();
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| {
            engine.run_timer(|due| {
                engine.answered(due.times);
                answered.push((due.token, now().saturating_sub(start)));
                match answered.len() {
                    1 => (1..=2).for_each(|token| engine.submit(READ, token, &mut Vec::new())),
                    3 => engine.stop(),
                    _ => {}
                }
            });
        });
        engine.submit(READ, 0, &mut Vec::new());
        timer.join().unwrap();
    });
    let at = |token| answered.iter().find(|(t, _)| *t == token).unwrap().1;
    assert!(at(0) >= Nanos::from_millis(10));
    // The two requests arrive together. Only the second has a head start: it is alone at the end.
    assert!(at(1) >= at(0) + Nanos::from_millis(20));
    assert!(engine.counters().service_p50 >= Nanos::from_millis(19), "the model's time counts");
}

#[test]
fn a_probe_takes_the_place_of_the_device_and_gives_it_back() {
    let engine = engine(Nanos::from_secs(3600), 1.0);
    let mut due = Vec::new();
    engine.probe(Some(engine.constant(Nanos::ZERO).unwrap()), &mut due);
    engine.submit(READ, 1, &mut due);
    assert_eq!(due.drain(..).map(|due| due.token).collect::<Vec<_>>(), [1]);
    engine.probe(None, &mut due);
    engine.submit(READ, 2, &mut due);
    assert!(due.is_empty(), "the disk's own device takes an hour");
    assert_eq!(engine.counters().queue, 1);
}
