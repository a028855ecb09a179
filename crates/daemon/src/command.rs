//! The loop of `run`: runs steps for a command and its descendants until the command exits.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::Duration;

use host::Root;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Daemon, DaemonBackend, DaemonError};

impl<B: DaemonBackend> Daemon<B> {
    /// Runs steps until `child` exits or `stop` returns true; `/proc` below `root` lists its
    /// descendants. The first signal that `signal` returns is sent to the child.
    ///
    /// # Errors
    ///
    /// If nothing can be observed or changed any more. The child may still be running.
    pub fn run_command(
        &mut self,
        root: &Root,
        child: &mut Child,
        interval: Duration,
        signal: impl Fn() -> Option<Signal>,
        stop: impl Fn() -> bool,
    ) -> Result<(), DaemonError> {
        let mut is_signalled = false;
        while child.try_wait().map_err(DaemonError::Wait)?.is_none() {
            if !is_signalled && let Some(signal) = signal() {
                is_signalled = true;
                // A command that has exited meanwhile needs no signal.
                let _ = kill_process(Pid::from_child(child), signal);
            }
            self.follow(descendants(root, child.id()));
            self.step()?;
            if stop() {
                break;
            }
            std::thread::sleep(self.next_delay(interval));
        }
        Ok(())
    }
}

/// Lists a process and its descendants, except those whose parent has exited.
fn descendants(root: &Root, first: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([first]);
    let mut new = vec![first];
    while let Some(pid) = new.pop() {
        for thread in root.names(format!("/proc/{pid}/task")) {
            let children = root.read(format!("/proc/{pid}/task/{thread}/children"));
            for child in children.unwrap_or_default().split_whitespace() {
                if let Ok(child) = child.parse()
                    && family.insert(child)
                {
                    new.push(child);
                }
            }
        }
    }
    family
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    use control::LoopConfig;
    use host::page_size;
    use units::Bytes;

    use super::*;
    use crate::{
        DecisionLog, DecisionRecord, NewFileWindow, Reporter, Status, UnprivilegedBackend,
    };

    const INTERVAL: Duration = Duration::from_millis(1);

    struct SilentReporter;

    impl Reporter for SilentReporter {
        fn decision(&mut self, _: &DecisionRecord) {}

        fn new_file_window(&mut self, _: &NewFileWindow) {}

        fn note(&mut self, _: &str) {}
    }

    /// A daemon that needs no privileges.
    fn daemon() -> Daemon<UnprivilegedBackend> {
        let log = DecisionLog::new(Status::starting(), Box::new(SilentReporter), false);
        let root = Root::system();
        let backend = UnprivilegedBackend::new(&root, Bytes::from_mib(1), false, log).unwrap();
        let (new_files, leave, ab_test) = (false, false, None);
        let config = LoopConfig {
            dry_run: true,
            new_files,
            leave,
            ab_test,
            page: page_size(),
            tuning: control::Tuning::DEFAULT,
        };
        Daemon::new(config, backend, None)
    }

    /// Runs a script; `signal` and `stop` get the number of steps so far.
    fn run(
        script: &str,
        signal: impl Fn(u32) -> Option<Signal>,
        stop: impl Fn(u32) -> bool,
    ) -> (Option<ExitStatus>, Child) {
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let (mut daemon, steps) = (daemon(), Cell::new(0));
        let stop = || {
            steps.set(steps.get() + 1);
            stop(steps.get())
        };
        let signal = || signal(steps.get());
        daemon.run_command(&Root::system(), &mut child, INTERVAL, signal, stop).unwrap();
        daemon.end().unwrap();
        (child.try_wait().unwrap(), child)
    }

    #[test]
    fn the_loop_ends_with_its_command() {
        let (status, _) = run("exit 7", |_| None, |_| false);
        assert_eq!(status.and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn a_signal_is_passed_on_once() {
        let after_two_steps = |steps| (steps >= 2).then_some(Signal::TERM);
        let (status, _) = run("exec sleep 1000", after_two_steps, |_| false);
        assert_eq!(status.and_then(|status| status.signal()), Some(Signal::TERM.as_raw()));
        // A second signal would terminate the shell, because the first one removes its handler.
        let dir = tempfile::tempdir().unwrap();
        let ready = dir.path().join("ready");
        let script = "trap 'trap - TERM; sleep 0.2; exit 3' TERM; : > READY; \
                      while :; do sleep 0.01; done";
        let script = script.replace("READY", ready.to_str().unwrap());
        let when_ready = |_| ready.exists().then_some(Signal::TERM);
        let (status, _) = run(&script, when_ready, |_| false);
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn a_stop_leaves_the_command_running() {
        let (status, mut child) = run("exec sleep 1000", |_| None, |steps| steps >= 3);
        assert_eq!(status, None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn descendants_are_those_of_every_thread() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = [("10/task/10", "11 12 "), ("10/task/15", "13"), ("12/task/12", "14")];
        for (task, children) in tasks {
            let task = dir.path().join("proc").join(task);
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("children"), children).unwrap();
        }
        let found = descendants(&Root::at(dir.path()), 10);
        assert_eq!(found, BTreeSet::from([10, 11, 12, 13, 14]));
        assert_eq!(descendants(&Root::at(dir.path()), 14), BTreeSet::from([14]));
    }
}
