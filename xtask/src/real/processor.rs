//! Measures how much CPU time other work used while a program ran.
//!
//! This process, the programs, `auto` and the disk's server are in a control group of their own,
//! whose CPU time the kernel counts. The time of kernel threads counts as work for the disk. The
//! remaining busy time, and the time stolen by the hypervisor, is other work.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

/// Other work of more than 0.1 CPUs disturbs a run: on two CPUs, half of it is taken from the
/// program, its disk or `auto`, which exceeds the 3 % in question.
pub const MAX_OTHER_PROCESSORS: f64 = 0.1;

const GROUP: &str = "foreread-real";
/// `USER_HZ`: the unit of `/proc/stat` and `/proc/PID/stat`, the same on all architectures for
/// which foreread is built.
const TICKS_PER_SECOND: f64 = 100.0;
/// `PF_KTHREAD` in include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The control group of this process, which leaves the group when this is dropped.
#[derive(Debug)]
pub struct ProcessorMeter {
    group: PathBuf,
}

/// CPU time since boot, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorReading {
    at: Instant,
    /// Time of all processes and kernel threads, and stolen time.
    all: f64,
    own: f64,
    kernel: f64,
}

impl ProcessorMeter {
    /// Moves this process into its own control group; `None` if that is impossible.
    pub fn start() -> Option<Self> {
        let roots = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
        let root = roots.map(Path::new).into_iter().find(|root| {
            root.join("cpuacct.usage").exists() || root.join("cgroup.controllers").exists()
        })?;
        let meter = Self { group: root.join(GROUP) };
        fs::create_dir_all(&meter.group).ok()?;
        fs::write(meter.group.join("cgroup.procs"), std::process::id().to_string()).ok()?;
        meter.read().is_ok().then_some(meter)
    }

    pub fn read(&self) -> Result<ProcessorReading> {
        let all = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        Ok(ProcessorReading {
            at: Instant::now(),
            all: busy_ticks(&all).context("/proc/stat has no line of all processors")?
                / TICKS_PER_SECOND,
            own: self.own_seconds()?,
            kernel: kernel_ticks() / TICKS_PER_SECOND,
        })
    }

    fn own_seconds(&self) -> Result<f64> {
        if let Ok(text) = fs::read_to_string(self.group.join("cpuacct.usage")) {
            return Ok(text.trim().parse::<f64>().context("cpuacct.usage is no number")? / 1e9);
        }
        let text = fs::read_to_string(self.group.join("cpu.stat")).context("reading cpu.stat")?;
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        usage.map(|micros: f64| micros / 1e6).context("cpu.stat has no usage_usec")
    }
}

impl Drop for ProcessorMeter {
    fn drop(&mut self) {
        if let Some(root) = self.group.parent() {
            let _ = fs::write(root.join("cgroup.procs"), std::process::id().to_string());
        }
        let _ = fs::remove_dir(&self.group);
    }
}

impl ProcessorReading {
    /// Returns how many CPUs other work kept busy until `end`, on average.
    pub fn other_work(&self, end: &Self) -> f64 {
        let all = end.all - self.all;
        let ours = end.own - self.own + end.kernel - self.kernel;
        ((all - ours) / (end.at - self.at).as_secs_f64()).max(0.0)
    }
}

/// Returns ticks of user, nice, system and steal over all CPUs; interrupts belong to no process.
fn busy_ticks(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(ticks.get(..3)?.iter().sum::<f64>() + ticks.get(7).unwrap_or(&0.0))
}

/// Returns the ticks of all existing kernel threads.
fn kernel_ticks() -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| thread_ticks(&stat)).sum()
}

/// Returns the ticks of a kernel thread; `None` for other processes.
fn thread_ticks(stat: &str) -> Option<f64> {
    // The name, in parentheses, may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    (field(9)? & KERNEL_THREAD != 0).then_some(())?;
    Some((field(14)? + field(15)?) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_work_and_of_steal() {
        let stat = "cpu  10 2 30 400 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(stat), Some(50.0));
        assert_eq!(busy_ticks("intr 5"), None);
    }

    #[test]
    fn only_kernel_threads_count() {
        let of =
            |flags: u64| format!("7 (a) b) S 2 0 0 0 -1 {flags} 0 0 0 0 40 2 0 0 20 0 1 0 5 0 0");
        assert_eq!(thread_ticks(&of(KERNEL_THREAD | 64)), Some(42.0));
        assert_eq!(thread_ticks(&of(64)), None);
        assert_eq!(thread_ticks("damaged"), None);
    }

    #[test]
    fn other_work_is_what_is_left() {
        let at = Instant::now();
        let start = ProcessorReading { at, all: 10.0, own: 2.0, kernel: 1.0 };
        let later = at + std::time::Duration::from_secs(4);
        let end = ProcessorReading { at: later, all: 16.0, own: 5.0, kernel: 2.0 };
        assert!((start.other_work(&end) - 0.5).abs() < 1e-9);
    }
}
