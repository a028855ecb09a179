//! The daemon: the control loop on a back end, with its status, metrics and service manager.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use control::{
    ActionSink, BdiKey, ControlLoop, ExternalChange, LoopConfig, LoopNote, LoopState, Released,
};
use units::{Bytes, Nanos};

use crate::decision::DecisionLog;
use crate::status::{DeviceStatus, StatusEffect};
use crate::{DaemonError, StatusPublisher};

/// The methods that the daemon needs of a back end in addition to those of the loop.
pub trait DaemonBackend: ActionSink<Error = DaemonError> {
    fn log(&mut self) -> &mut DecisionLog;

    fn bdi_name(&self, bdi: BdiKey) -> String;

    /// Restricts control to readers among these processes.
    fn follow(&mut self, pids: BTreeSet<u32>);
}

/// A running `auto` or `run`.
pub struct Daemon<B> {
    control: ControlLoop,
    backend: B,
    publisher: Option<StatusPublisher>,
    is_dry_run: bool,
    leave: bool,
    /// The duration of the last step.
    step: Duration,
}

impl<B: DaemonBackend> Daemon<B> {
    pub fn new(config: LoopConfig, backend: B, publisher: Option<StatusPublisher>) -> Self {
        let (is_dry_run, leave) = (config.dry_run, config.leave);
        let control = ControlLoop::new(config);
        let mut daemon =
            Self { control, backend, publisher, is_dry_run, leave, step: Duration::ZERO };
        daemon.update_status();
        daemon
    }

    /// Notifies the service manager that the daemon is ready.
    pub fn ready(&mut self) {
        if let Some(publisher) = &self.publisher {
            publisher.ready(&self.backend.log().status);
        }
    }

    /// Restricts control to readers among these processes.
    pub fn follow(&mut self, pids: BTreeSet<u32>) {
        self.backend.follow(pids);
    }

    /// Runs one step of the loop and publishes the status.
    ///
    /// # Errors
    ///
    /// If nothing can be observed or changed any more.
    pub fn step(&mut self) -> Result<(), DaemonError> {
        let begun = Instant::now();
        let result = self.control.step(&mut self.backend);
        self.update_status();
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(&self.backend.log().status);
        }
        self.step = begun.elapsed();
        result
    }

    /// Returns the delay before the next step, at most `interval`.
    pub fn next_delay(&self, interval: Duration) -> Duration {
        let delay = self.control.next_delay(Nanos::from(interval), Nanos::from(self.step));
        Duration::from_nanos(delay.get())
    }

    /// Runs steps until `stop` returns true.
    ///
    /// # Errors
    ///
    /// If nothing can be observed or changed any more.
    pub fn run(
        &mut self,
        interval: Duration,
        mut stop: impl FnMut() -> bool,
    ) -> Result<(), DaemonError> {
        while !stop() {
            self.step()?;
            std::thread::sleep(self.next_delay(interval));
        }
        Ok(())
    }

    /// Returns the result of the A/B test so far; `None` if there is none.
    pub fn effect(&self) -> Option<StatusEffect> {
        self.control.effect().map(Into::into)
    }

    fn update_status(&mut self) {
        let mut devices = Vec::new();
        for (key, controller) in self.control.controllers() {
            let device = controller.device();
            let gain = controller.gains().overall();
            let status = DeviceStatus {
                latency_ms: device.latency().as_millis_f64(),
                rate_mib_s: device.rate().as_mib(),
                parallelism: device.parallelism(),
                predicted_gain_ratio: gain.map(|gain| gain.predicted),
                measured_gain_ratio: gain.map(|gain| gain.measured),
                followed: controller.followed(),
                ..DeviceStatus::default()
            }
            .with_readers(controller.totals(), &controller.windows_in_use());
            let name = self.backend.bdi_name(key);
            if let Some(priming) = controller.priming() {
                tracing::debug!("{name}: {priming:?}");
            }
            devices.push((name, status));
        }
        let effect = self.effect();
        let status = &mut self.backend.log().status;
        status.devices.extend(devices);
        status.state = self.control.state().to_string();
        status.effect = effect;
    }

    /// Restores bdis and, unless `leave` is set, windows. Returns a summary; `None` in a dry run.
    ///
    /// # Errors
    ///
    /// If a setting could not be restored; the other ones are.
    pub fn end(mut self) -> Result<Option<String>, DaemonError> {
        drop(self.publisher.take());
        let released = self.control.end(&mut self.backend)?;
        let status = &self.backend.log().status;
        let (restored, read) = (status.collateral_windows_restored, status.prefetched_bytes);
        let summary = summary(released, self.leave, restored, Bytes::new(read));
        Ok((!self.is_dry_run).then_some(summary))
    }
}

/// Formats a change of the loop's state for the log.
pub(crate) fn describe(note: &LoopNote, bdi_name: impl Fn(BdiKey) -> String) -> String {
    match note {
        LoopNote::Stopped(state @ LoopState::MemoryPressure) => {
            format!("{state}; all windows are restored")
        }
        LoopNote::Stopped(state) => state.to_string(),
        LoopNote::Resumed => "memory pressure is over: acting".to_owned(),
        LoopNote::Unmanaged(bdi, ExternalChange(why)) => {
            let bdi = bdi_name(*bdi);
            format!("{why}: no longer managing {bdi}; open files keep their current windows")
        }
    }
}

fn summary(released: Released, leave: bool, collateral: u64, prefetched: Bytes) -> String {
    let Released { changed, restored } = released;
    let mut parts = Vec::new();
    if changed > 0 {
        let result = match (leave, restored) {
            (true, _) => "left as they are".to_owned(),
            (false, all) if all == changed => "all restored".to_owned(),
            (false, 0) => "all closed since".to_owned(),
            (false, some) => format!("{some} restored, the others closed since"),
        };
        parts.push(format!("windows of open files changed: {changed} ({result})"));
    }
    if collateral > 0 {
        parts.push(format!("windows of files opened during a change restored: {collateral}"));
    }
    if prefetched > Bytes::ZERO {
        parts.push(format!("prefetched: {}", prefetched.rounded()));
    }
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_was_done() {
        let all = |changed, restored| Released { changed, restored };
        assert_eq!(summary(all(0, 0), false, 0, Bytes::ZERO), "nothing to do");
        let closed = "windows of open files changed: 1 (all closed since)";
        assert_eq!(summary(all(1, 0), false, 0, Bytes::ZERO), closed);
        let some = summary(all(3, 2), false, 1, Bytes::from_mib(2));
        assert!(some.contains("2 restored") && some.ends_with("prefetched: 2 MiB"), "{some}");
    }
}
