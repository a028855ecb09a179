//! Commands that wait for the mechanism, and which of them is next.

use crate::device::RequestId;

use super::rotation::Turns;

/// A command that needs the mechanism.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) id: RequestId,
    pub(super) is_write: bool,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where `start` is on the platter.
    pub(super) place: Turns,
    pub(super) arrival: u64,
    /// When its overhead is over.
    pub(super) ready: u64,
    /// The state of the cache in which nothing of it was there, or on its way there.
    pub(super) missed_in: Option<u64>,
}

/// The drive's queue, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    commands: Vec<Command>,
    first_ready: u64,
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

    /// When the first of them is ready, if there is one.
    pub(super) fn ready_at(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.first_ready)
    }

    /// Takes the oldest of those that are ready.
    pub(super) fn take_oldest(&mut self, time: u64) -> Option<Command> {
        let index = self.commands.iter().position(|command| command.ready <= time)?;
        Some(self.remove(index))
    }

    /// Takes the one that `cost` (nanoseconds of positioning) less `ageing` times its waiting
    /// makes cheapest, of those that are ready; the older one if two are equal. `cost` is told
    /// the cost that would lose, and may stop working once it is surely above.
    pub(super) fn take_nearest(
        &mut self,
        time: u64,
        ageing: f64,
        cost: impl Fn(&Command, f64) -> f64,
    ) -> Option<Command> {
        if self.commands.len() == 1 {
            return self.take_oldest(time);
        }
        let mut best: Option<(usize, f64)> = None;
        for (index, command) in self.commands.iter().enumerate() {
            if command.ready > time {
                continue;
            }
            let waited = time.saturating_sub(command.arrival) as f64;
            let bonus = ageing * waited;
            let least = best.map_or(f64::INFINITY, |(_, least)| least);
            let value = cost(command, least + bonus) - bonus;
            if value < least {
                best = Some((index, value));
            }
        }
        best.map(|(index, _)| self.remove(index))
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
        let cost = |command: &Command, _| command.start as f64;
        let mut queue = Queue::default();
        queue.push(command(1, 1000, 0));
        queue.push(command(2, 10, 500));
        assert_eq!(queue.clone().take_nearest(600, 0.0, cost).map(|c| c.id), Some(RequestId(2)));
        assert_eq!(queue.clone().take_nearest(600, 2.0, cost).map(|c| c.id), Some(RequestId(1)));
        assert_eq!(queue.clone().take_nearest(505, 0.0, cost).map(|c| c.id), Some(RequestId(1)));
        assert_eq!(queue.take_oldest(600).map(|c| c.id), Some(RequestId(1)));
        assert_eq!(queue.ready_at(), Some(510));
    }
}
