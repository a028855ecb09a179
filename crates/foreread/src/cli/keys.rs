//! Reads keys for a screen that must exit when its terminal hangs up.
//!
//! crossterm 0.29 reads keys, too, but its loop never exits after a hang-up: it treats end of input
//! and EIO as "nothing yet" and spins.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

/// Timeout for the remaining bytes of a key; a lone escape is a key of its own.
const KEY_REST_TIMEOUT: Duration = Duration::from_millis(25);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    End,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyInput {
    /// The keys that arrived; empty if none arrived before the timeout.
    Keys(Vec<Key>),
    Gone,
}

#[derive(Debug)]
pub struct Keys {
    /// `None` without a terminal: no key ever arrives.
    terminal: Option<OwnedFd>,
}

impl Keys {
    /// Opens standard input, or the controlling terminal if standard input is something else.
    pub fn open() -> Self {
        let stdin = io::stdin();
        let terminal = if stdin.is_terminal() {
            stdin.as_fd().try_clone_to_owned().ok()
        } else {
            File::open("/dev/tty").ok().map(OwnedFd::from)
        };
        Self { terminal }
    }

    pub fn wait(&self, time: Duration) -> KeyInput {
        let Some(terminal) = &self.terminal else {
            std::thread::sleep(time);
            return KeyInput::Keys(Vec::new());
        };
        let mut bytes = Vec::new();
        let mut time = time;
        loop {
            match more(terminal, time, &mut bytes) {
                Some(0) => return KeyInput::Keys(keys(&bytes)),
                // The bytes may be incomplete.
                Some(_) if ends_within_a_key(&bytes) => time = KEY_REST_TIMEOUT,
                Some(_) => return KeyInput::Keys(keys(&bytes)),
                None => return KeyInput::Gone,
            }
        }
    }
}

/// Reads bytes that arrive within `time` and returns their number; `None` at the end of input.
fn more(terminal: &OwnedFd, time: Duration, bytes: &mut Vec<u8>) -> Option<usize> {
    let time = Timespec::try_from(time).unwrap_or_default();
    let mut wanted = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut wanted, Some(&time)) {
        Ok(0) | Err(Errno::INTR | Errno::AGAIN) => return Some(0),
        Ok(_) => {}
        Err(_) => return None,
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if wanted[0].revents().intersects(gone) {
        return None;
    }
    let mut buffer = [0; 256];
    match read(terminal, &mut buffer) {
        Ok(0) => None,
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            Some(count)
        }
        Err(Errno::INTR | Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

const ESCAPE_BYTE: u8 = 0x1b;

/// Returns whether the last escape sequence is incomplete.
fn ends_within_a_key(bytes: &[u8]) -> bool {
    let last = bytes.iter().rposition(|byte| *byte == ESCAPE_BYTE);
    last.is_some_and(|at| sequence(&bytes[at + 1..]).is_none())
}

/// Decodes keys (console_codes(4), and xterm's control sequences).
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'q' | b'Q' | 0x03 | 0x04 => keys.push(Key::End),
            b'j' => keys.push(Key::Down),
            b'k' => keys.push(Key::Up),
            &ESCAPE_BYTE => match sequence(after) {
                Some((key, length)) => {
                    keys.extend(key);
                    rest = &after[length..];
                }
                None => keys.push(Key::End),
            },
            _ => {}
        }
    }
    keys
}

/// Returns the key of an escape sequence, if known, and its length; `None` if incomplete.
fn sequence(after: &[u8]) -> Option<(Option<Key>, usize)> {
    let (kind, rest) = after.split_first()?;
    if !matches!(kind, b'[' | b'O') {
        return Some((None, 1)); // Alt and a key
    }
    let last = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let key = match (&rest[..last], rest[last]) {
        ([], b'A') => Some(Key::Up),
        ([], b'B') => Some(Key::Down),
        ([], b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    };
    Some((key, last + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_bytes() {
        let of = |bytes: &[u8]| keys(bytes);
        assert_eq!(of(b"q"), [Key::End]);
        assert_eq!(of(b"\x1b"), [Key::End]);
        assert_eq!(of(b"\x03"), [Key::End]);
        assert_eq!(of(b"jk"), [Key::Down, Key::Up]);
        assert_eq!(of(b"\x1b[A\x1bOB"), [Key::Up, Key::Down]);
        assert_eq!(of(b"\x1b[5~\x1b[6~\x1b[H\x1b[1~"), {
            [Key::PageUp, Key::PageDown, Key::Home, Key::Home]
        });
        // Other sequences are ignored, whatever bytes they contain.
        assert_eq!(of(b"\x1b[1;5Cx\x1bqz\xff"), []);
    }

    #[test]
    fn a_key_that_comes_in_pieces_is_waited_for() {
        for (bytes, within) in [
            (&b"\x1b"[..], true),
            (b"\x1b[", true),
            (b"\x1b[5", true),
            (b"\x1b[5~", false),
            (b"q", false),
            (b"", false),
        ] {
            assert_eq!(ends_within_a_key(bytes), within, "{bytes:?}");
        }
    }

    #[test]
    fn the_end_of_the_input_is_the_end() {
        let (theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        let keyboard = Keys { terminal: Some(OwnedFd::from(ours)) };
        let soon = Duration::from_millis(1);
        assert_eq!(keyboard.wait(soon), KeyInput::Keys(Vec::new()));
        std::io::Write::write_all(&mut &theirs, b"j\x1b").unwrap();
        assert_eq!(keyboard.wait(soon), KeyInput::Keys(vec![Key::Down, Key::End]));
        drop(theirs);
        assert_eq!(keyboard.wait(soon), KeyInput::Gone);
    }
}
