//! Real-time support: clock, sleep, alarms, scheduling priority, and locked memory.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
};
use units::Nanos;

/// Returns the time of `CLOCK_MONOTONIC`.
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Nanos::new(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

fn timespec(at: Nanos) -> Timespec {
    // Both fields fit: a u64 of nanoseconds is at most 1.8e10 seconds.
    Timespec { tv_sec: (at.get() / 1_000_000_000) as _, tv_nsec: (at.get() % 1_000_000_000) as _ }
}

/// Sleeps until the monotonic clock reaches `at`; returns immediately if that time is past.
pub fn sleep_until(at: Nanos) {
    let request = timespec(at);
    while let Err(rustix::io::Errno::INTR) =
        rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request)
    {}
}

/// Sets the real-time policy `SCHED_FIFO` with `priority` (1 to 99) for the calling thread and the
/// threads that it starts later. Needs `CAP_SYS_NICE`.
pub fn set_realtime_priority(priority: i32) -> io::Result<()> {
    // This is the kernel's `struct sched_param`. musl's struct has more fields, and its
    // `sched_setscheduler` always fails with ENOSYS, hence the raw system call.
    let parameters: libc::c_int = priority;
    // SAFETY: the kernel reads one `int` during the call; 0 selects the calling thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the calling thread's timers exact. By default, the kernel delays them by up to 50 µs to
/// save wake-ups.
pub fn exact_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(Into::into)
}

/// Locks all current and future memory of this process into RAM. Pages are locked when first
/// touched, so that sparse mappings stay sparse.
pub fn lock_memory() -> io::Result<()> {
    use rustix::mm::MlockAllFlags;
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    rustix::mm::mlockall(flags).map_err(Into::into)
}

/// Keeps the processors out of idle states until dropped. Under a hypervisor, waking a processor
/// takes 50 µs or more; a processor that polls responds immediately.
#[derive(Debug)]
pub struct Awake {
    // The kernel drops the request when the file is closed, however the process exits.
    _request: std::fs::File,
}

impl Awake {
    /// Requests a latency of 0 in `/dev/cpu_dma_latency` (see the kernel's `pm_qos_interface`).
    pub fn stay() -> io::Result<Self> {
        let mut request = std::fs::File::options().write(true).open("/dev/cpu_dma_latency")?;
        // The maximum wake-up latency in microseconds.
        io::Write::write_all(&mut request, &0i32.to_ne_bytes())?;
        Ok(Self { _request: request })
    }
}

/// An alarm for one sleeping thread. Other threads may set another time without waking it.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// Creates an alarm that is not set.
    pub fn new() -> io::Result<Self> {
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer })
    }

    /// Sets the alarm to this time of the monotonic clock and replaces the previous time.
    pub fn set(&self, at: Nanos) -> io::Result<()> {
        // Zero would disable the timer.
        self.program(timespec(at.max(Nanos::new(1))))
    }

    pub fn clear(&self) -> io::Result<()> {
        self.program(timespec(Nanos::ZERO))
    }

    /// Sleeps until the alarm goes off or a signal arrives.
    pub fn wait(&self) -> io::Result<()> {
        let mut ticks = [0; 8];
        match rustix::io::read(&self.timer, &mut ticks) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn program(&self, at: Timespec) -> io::Result<()> {
        let once = Itimerspec { it_interval: timespec(Nanos::ZERO), it_value: at };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_ends_no_earlier_than_asked() {
        let until = now() + Nanos::from_millis(2);
        sleep_until(until);
        assert!(now() >= until);
        sleep_until(Nanos::ZERO);
    }

    #[test]
    fn an_alarm_can_be_set_forward_from_another_thread() {
        let alarm = Alarm::new().unwrap();
        let start = now();
        alarm.set(start + Nanos::from_secs(3600)).unwrap();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| alarm.wait().unwrap());
            alarm.set(start + Nanos::from_millis(3)).unwrap();
            sleeper.join().unwrap();
        });
        assert!(now() >= start + Nanos::from_millis(3));
    }

    #[test]
    fn an_alarm_set_in_the_past_goes_off_at_once() {
        let alarm = Alarm::new().unwrap();
        alarm.set(Nanos::ZERO).unwrap();
        alarm.wait().unwrap();
    }
}
