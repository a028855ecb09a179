//! Processor time and I/O of the calling thread.

use std::io;
use std::mem::MaybeUninit;

use units::{Bytes, Nanos};

/// Processor time of a thread since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpu {
    pub user: Nanos,
    pub system: Nanos,
}

/// Returns the processor time of the calling thread.
pub fn thread_cpu() -> io::Result<ThreadCpu> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel writes one rusage, which is read only if the call succeeded.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage.assume_init()
    };
    let span = |time: libc::timeval| {
        Nanos::from_micros(time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64)
    };
    Ok(ThreadCpu { user: span(usage.ru_utime), system: span(usage.ru_stime) })
}

/// Returns the data that the calling thread caused to be read from block devices (or over the
/// network, if the file system accounts it), including read-ahead. `None` without accounting
/// (`CONFIG_TASK_IO_ACCOUNTING`) or if `/proc` cannot be read.
pub fn thread_read_bytes() -> Option<Bytes> {
    read_bytes_of(&std::fs::read_to_string("/proc/thread-self/io").ok()?)
}

fn read_bytes_of(text: &str) -> Option<Bytes> {
    text.lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))
        .and_then(|number| number.trim().parse().ok())
        .map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let before = thread_cpu().unwrap();
        let mut sum = 0u64;
        let busy = || {
            let now = thread_cpu().unwrap();
            (now.user + now.system).saturating_sub(before.user + before.system)
        };
        while busy() < Nanos::from_millis(2) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        // Work of other threads is not counted.
        let idle = std::thread::spawn(|| thread_cpu().unwrap()).join().unwrap();
        assert!(idle.user + idle.system < Nanos::from_millis(2), "{idle:?}");
    }

    #[test]
    fn the_account_is_found_among_its_neighbours() {
        let text = "rchar: 3000\nwchar: 0\nsyscr: 8\nsyscw: 0\nread_bytes: 8192\nwrite_bytes: 4\n";
        assert_eq!(read_bytes_of(text), Some(Bytes::new(8192)));
        assert_eq!(read_bytes_of("rchar: 1\n"), None);
        assert_eq!(read_bytes_of("read_bytes: many\n"), None);
    }
}
