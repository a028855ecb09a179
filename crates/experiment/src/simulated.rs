//! Direct reads of a simulated device, in the model's time.

use std::collections::{HashMap, VecDeque};

use model::{Completion, Device, Request, RequestId, RequestKind};
use sim::{SimError, SimMachine};
use study::StudyError;
use units::{Bytes, Nanos};

use crate::ExperimentError;

/// Idle time of the simulated device between two measurements.
const PAUSE_TIME: Nanos = Nanos::from_millis(50);

/// A simulated device, accessed below the kernel's block layer.
pub(crate) struct SimulatedDisk {
    device: Box<dyn Device>,
    machine: SimMachine,
    clock: Nanos,
    next_id: u64,
}

/// The load of a measurement: each reader has one request in progress at a time.
pub(crate) struct DirectLoad<'a> {
    pub(crate) readers: usize,
    pub(crate) length: Bytes,
    /// Size of the parts that a reader requests one after another; `None` for the whole request.
    pub(crate) part: Option<Bytes>,
    /// Duration of the measurement; requests in progress at its end are completed.
    pub(crate) duration: Nanos,
    pub(crate) place: &'a mut dyn FnMut(usize) -> Bytes,
}

pub(crate) struct Served {
    /// The response time of each request, in order of completion.
    pub(crate) times: Vec<Nanos>,
    /// Time from the start to the completion of the last request.
    pub(crate) elapsed: Nanos,
}

/// A reader with a request in progress.
#[derive(Clone, Debug, Default)]
struct Reader {
    begun: Nanos,
    /// Offset of the next part, and the remaining length of the request.
    rest: (Bytes, Bytes),
    /// Device requests of the current part that are not complete.
    open: usize,
}

impl SimulatedDisk {
    /// Opens the device of a simulated machine; `seed` determines its randomness.
    pub(crate) fn open(machine: &SimMachine, seed: u64) -> Result<Self, ExperimentError> {
        let device = machine.model.build(machine.seed ^ seed);
        let device = device.map_err(|error| StudyError::from(SimError::from(error)))?;
        Ok(Self { device, machine: machine.clone(), clock: Nanos::ZERO, next_id: 0 })
    }

    pub(crate) fn machine(&self) -> &SimMachine {
        &self.machine
    }

    pub(crate) fn size(&self) -> Bytes {
        self.device.capacity()
    }

    /// Serves the readers until the duration is over and no request is in flight.
    pub(crate) fn serve(&mut self, load: &mut DirectLoad<'_>) -> Served {
        let begun = self.clock;
        let end = begun + load.duration;
        let mut queue = Queue { waiting: VecDeque::new(), owners: HashMap::new() };
        let mut readers = vec![Reader::default(); load.readers];
        let mut served = Served { times: Vec::new(), elapsed: Nanos::ZERO };
        for (number, reader) in readers.iter_mut().enumerate() {
            *reader = Reader { begun, rest: ((load.place)(number), load.length), open: 0 };
            self.next_part(number, reader, load.part, &mut queue);
        }
        let mut done: Vec<Completion> = Vec::new();
        loop {
            self.submit(&mut queue);
            let Some(at) = self.device.next_wake() else { break };
            self.device.advance(at, &mut done);
            self.clock = self.clock.max(at);
            for completion in done.drain(..) {
                let Some(number) = queue.owners.remove(&completion.id) else { continue };
                self.clock = self.clock.max(completion.at);
                let Some(reader) = readers.get_mut(number) else { continue };
                reader.open -= 1;
                if reader.open > 0 {
                    continue;
                }
                if reader.rest.1.is_zero() {
                    served.times.push(completion.at.saturating_sub(reader.begun));
                    served.elapsed = completion.at.saturating_sub(begun);
                    if completion.at >= end {
                        continue;
                    }
                    let begun = completion.at;
                    *reader = Reader { begun, rest: ((load.place)(number), load.length), open: 0 };
                }
                self.next_part(number, reader, load.part, &mut queue);
            }
        }
        self.clock += PAUSE_TIME;
        served
    }

    /// Queues the next part of a reader's request, split as the block layer would.
    fn next_part(
        &mut self,
        number: usize,
        reader: &mut Reader,
        part: Option<Bytes>,
        queue: &mut Queue,
    ) {
        let (mut at, rest) = reader.rest;
        let mut left = part.map_or(rest, |part| part.min(rest));
        reader.rest = (at + left, rest.saturating_sub(left));
        let most = self.machine.model.host().max_request.max(Bytes::from_kib(4));
        while !left.is_zero() {
            let length = left.min(most);
            let id = RequestId(self.next_id);
            self.next_id += 1;
            queue.owners.insert(id, number);
            queue.waiting.push_back(Request { id, kind: RequestKind::Read, offset: at, length });
            reader.open += 1;
            at += length;
            left = left.saturating_sub(length);
        }
    }

    /// Submits as many requests as may be in flight.
    fn submit(&mut self, queue: &mut Queue) {
        let most = self.machine.model.host().nr_requests.max(1);
        while self.device.in_flight() < most {
            let Some(request) = queue.waiting.pop_front() else { break };
            self.device.submit(self.clock, request);
        }
    }
}

struct Queue {
    waiting: VecDeque<Request>,
    owners: HashMap<RequestId, usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(words: &str, readers: usize, length: Bytes, part: Option<Bytes>) -> Served {
        let mut disk = SimulatedDisk::open(&SimMachine::parse(words).unwrap(), 1).unwrap();
        let mut at = 0u64;
        let mut place = |_| {
            at = (at + 7919) % 100_000;
            Bytes::from_mib(1) * at
        };
        let duration = Nanos::from_millis(500);
        disk.serve(&mut DirectLoad { readers, length, part, duration, place: &mut place })
    }

    #[test]
    fn each_reader_has_one_request_under_way() {
        let one = served("hdd-2008", 1, Bytes::from_kib(8), None);
        let sum: Nanos = one.times.iter().copied().fold(Nanos::ZERO, |sum, time| sum + time);
        assert_eq!(sum, one.elapsed, "one after another");
        assert!(one.elapsed >= Nanos::from_millis(500));
        let mean = |served: &Served| {
            let sum: f64 = served.times.iter().map(|time| time.as_millis_f64()).sum();
            sum / served.times.len() as f64
        };
        assert!((5.0..20.0).contains(&mean(&one)), "{}", mean(&one));
        let four = served("hdd-2008", 4, Bytes::from_kib(8), None);
        assert!(mean(&four) > 1.5 * mean(&one), "they wait for one another");
    }

    #[test]
    fn parts_follow_one_another() {
        let length = Bytes::from_mib(1);
        let whole = served("nvme", 1, length, None).times;
        let parts = served("nvme", 1, length, Some(Bytes::from_kib(64))).times;
        assert!(parts[0] > whole[0], "{:?} {:?}", parts[0], whole[0]);
    }

    #[test]
    fn the_same_seed_gives_the_same_times() {
        let times = || served("hdd-modern", 3, Bytes::from_kib(64), None).times;
        assert_eq!(times(), times());
    }
}
