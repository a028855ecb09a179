//! Handles missing pages of file mappings.
//!
//! The kernel sends SIGBUS to the thread that touched the page, which terminates the process by
//! default. The handler maps a page of zeros in its place and records the address, so that the copy
//! continues and its caller gets an error. It handles only faults within the range that the thread
//! has declared, and passes all others to the previous handler.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// The range that this thread copies from, and the first missing address in it (0 for none).
struct Guard {
    start: Cell<usize>,
    end: Cell<usize>,
    missing: Cell<usize>,
}

thread_local! {
    // Const-initialised and without a destructor: the handler may access it at any time.
    static GUARD: Guard =
        const { Guard { start: Cell::new(0), end: Cell::new(0), missing: Cell::new(0) } };
}

/// The previous SIGBUS handler. Rust's runtime has one, which explains stack overflows.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Runs `touch`, which may access pages between `start` and `end`. The error is the first missing
/// address; the handler has mapped zeros over its page.
#[inline]
pub(crate) fn guarded(start: usize, end: usize, touch: impl FnOnce()) -> Result<(), usize> {
    GUARD.with(|guard| {
        guard.missing.set(0);
        guard.start.set(start);
        guard.end.set(end);
        // The handler runs in this thread, so only the compiler could reorder these accesses.
        compiler_fence(Ordering::SeqCst);
        touch();
        compiler_fence(Ordering::SeqCst);
        guard.end.set(0);
        match guard.missing.get() {
            0 => Ok(()),
            address => Err(address),
        }
    })
}

/// Installs the handler once per process.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let result = INSTALLED.get_or_init(|| {
        let mut previous = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: a zeroed sigaction is valid, and the handler has the signature that SA_SIGINFO
        // requires. The kernel fills `previous`, which is read only on success.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            // Use the alternate stack: the previous handler may need it.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            // Read the previous handler first, so that this one can always pass a fault on.
            if libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr()) != 0 {
                return Err(last_errno());
            }
            PREVIOUS.get_or_init(|| previous.assume_init());
            if libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) != 0 {
                return Err(last_errno());
            }
        }
        Ok(())
    });
    result.map_err(io::Error::from_raw_os_error)
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo, which for SIGBUS always contains an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let ours = GUARD.with(|guard| {
        let inside = (guard.start.get()..guard.end.get()).contains(&address);
        if inside && guard.missing.get() == 0 {
            guard.missing.set(address);
        }
        inside
    });
    if !(ours && put_zeros(address)) {
        pass_on(signal, info, context);
    }
}

/// Maps a page of zeros over the page of `address`; returns whether that succeeded.
fn put_zeros(address: usize) -> bool {
    // SAFETY: sysconf takes no pointer. mmap replaces a page inside one of our file mappings (the
    // caller has checked the range), which holds no data of its own. Both only make system calls or
    // read constants, which is allowed in a signal handler. errno is restored because the handler
    // interrupted the thread.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let result = libc::mmap(
            (address & !(page - 1)) as *mut libc::c_void,
            page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
        *errno = before;
        result != libc::MAP_FAILED
    }
}

/// Passes a fault to the previous handler.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(previous) = PREVIOUS.get() else { return };
    let handler = previous.sa_sigaction;
    // SAFETY: depending on its flags, a sigaction contains a function of one of these two types or
    // one of two constants. After the default is restored, the fault recurs and terminates the
    // process, as it would without our handler.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const default, ptr::null_mut());
        } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
            type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
        }
    }
}
