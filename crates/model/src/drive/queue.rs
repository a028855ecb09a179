//! The commands that wait for the mechanism, and the choice of the next one.

use crate::device::RequestId;

use super::rotation::Turns;

/// A command that needs the mechanism.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) id: RequestId,
    pub(super) is_write: bool,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The position of `start` on the platter.
    pub(super) place: Turns,
    pub(super) arrival: u64,
    pub(super) ready: u64,
    /// The generation of the cache in which the data was neither present nor in flight.
    pub(super) missed_in: Option<u64>,
}

/// The drive's command queue, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    commands: Vec<Command>,
    first_ready: u64,
    /// A lower bound of each command's cost; reused between calls.
    least: Vec<f64>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(super) fn push(&mut self, command: Command) {
        let ready = command.ready;
        self.first_ready = if self.is_empty() { ready } else { self.first_ready.min(ready) };
        self.commands.push(command);
    }

    /// Returns the earliest time at which a command is ready; `None` if the queue is empty.
    pub(super) fn ready_at(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.first_ready)
    }

    /// Removes and returns the oldest ready command.
    pub(super) fn take_oldest(&mut self, time: u64) -> Option<Command> {
        let index = self.commands.iter().position(|command| command.ready <= time)?;
        Some(self.remove(index))
    }

    /// Removes and returns the cheapest ready command: `cost` (nanoseconds of positioning) minus
    /// `ageing` times its waiting time; the older of two if equal. `least` is a lower bound of the
    /// cost that is faster to compute, so that most commands need no exact cost.
    pub(super) fn take_nearest(
        &mut self,
        time: u64,
        ageing: f64,
        least: impl Fn(&Command) -> f64,
        cost: impl Fn(&Command) -> f64,
    ) -> Option<Command> {
        if self.commands.len() == 1 {
            return self.take_oldest(time);
        }
        // Via a signed integer, because that conversion is a single instruction.
        let bonus = |command: &Command| ageing * time.saturating_sub(command.arrival) as i64 as f64;
        let mut likely = (0, f64::INFINITY);
        self.least.clear();
        for (index, command) in self.commands.iter().enumerate() {
            let ready = command.ready <= time;
            let least = if ready { least(command) - bonus(command) } else { f64::INFINITY };
            self.least.push(least);
            if least < likely.1 {
                likely = (index, least);
            }
        }
        if likely.1 == f64::INFINITY {
            return None;
        }
        let value = |index: usize| {
            let command = &self.commands[index];
            cost(command) - bonus(command)
        };
        let mut best = (likely.0, value(likely.0));
        for (index, &least) in self.least.iter().enumerate() {
            if least <= best.1 && index != likely.0 {
                let value = value(index);
                if value < best.1 || value == best.1 && index < best.0 {
                    best = (index, value);
                }
            }
        }
        Some(self.remove(best.0))
    }

    fn remove(&mut self, index: usize) -> Command {
        let command = self.commands.remove(index);
        if command.ready <= self.first_ready {
            let ready = self.commands.iter().map(|command| command.ready);
            self.first_ready = ready.min().unwrap_or(0);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(id: u64, start: u64, arrival: u64) -> Command {
        Command {
            id: RequestId(id),
            is_write: false,
            start,
            end: start + 1,
            place: 0.0,
            arrival,
            ready: arrival + 10,
            missed_in: None,
        }
    }

    #[test]
    fn the_nearest_is_taken_until_another_has_waited_too_long() {
        let cost = |command: &Command| command.start as f64;
        let least = |command: &Command| command.start as f64 / 2.0;
        let mut queue = Queue::default();
        queue.push(command(1, 1000, 0));
        queue.push(command(2, 10, 500));
        assert_eq!(
            queue.clone().take_nearest(600, 0.0, least, cost).map(|c| c.id),
            Some(RequestId(2))
        );
        assert_eq!(
            queue.clone().take_nearest(600, 2.0, least, cost).map(|c| c.id),
            Some(RequestId(1))
        );
        assert_eq!(
            queue.clone().take_nearest(505, 0.0, least, cost).map(|c| c.id),
            Some(RequestId(1))
        );
        assert_eq!(queue.take_oldest(600).map(|c| c.id), Some(RequestId(1)));
        assert_eq!(queue.ready_at(), Some(510));
    }
}
