//! UUIDs derived from content (RFC 9562, version 8).

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Derives the UUID of these parts within a domain. The parts cannot be recovered from it.
pub(crate) fn derived(domain: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in [domain.as_bytes()].iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    text(&bytes)
}

fn text(bytes: &[u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns whether a text has the form of a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_the_form_of_version_8_and_depends_on_every_part() {
        let one = derived("host", &[b"a", b"bc"]);
        assert!(is_uuid(&one) && one.as_bytes()[14] == b'8', "{one}");
        assert_eq!(one, derived("host", &[b"a", b"bc"]));
        for other in [derived("host", &[b"ab", b"c"]), derived("run", &[b"a", b"bc"])] {
            assert_ne!(one, other);
        }
        assert!(!is_uuid("") && !is_uuid("01234567-0123-0123-0123-01234567890g"));
    }
}
