//! Any Linux sysctl by its name: `vm.swappiness`, `sysctl.net.core.rmem_max`.
//!
//! The kernel documents no unit or range, so foreread checks none: a value that the kernel accepts
//! is valid, and is read back. A sysctl with a table of its own (`vm.dirty_bytes`) is found first.

use super::interned::{InternedTunables, leak};
use super::tunable::{FileScope, SYSCTL_PREFIX as PREFIX, Tunable};

static KNOWN: InternedTunables = InternedTunables::new();

/// Finds the sysctl with this name, with or without the prefix; `None` if the name is invalid. In a
/// name with slashes, a part may contain a dot, as in `net/ipv4/conf/eth0.1/arp_filter`.
pub(super) fn find(name: &str) -> Option<&'static Tunable> {
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    let parts: Vec<&str> = bare.split(if bare.contains('/') { '/' } else { '.' }).collect();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    let sound = |part: &&str| {
        !part.is_empty() && !part.starts_with('.') && part.len() <= 64 && part.chars().all(fits)
    };
    if parts.len() < 2 || parts.len() > 8 || !parts.iter().all(sound) {
        return None;
    }
    let canonical = format!("{PREFIX}{bare}");
    KNOWN.get(&canonical, |name| Tunable {
        name,
        write_rank: 90,
        file_scope: FileScope::Machine(leak(format!("/proc/sys/{}", parts.join("/")))),
        ..Tunable::PLAIN
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::TunableScope;

    #[test]
    fn a_sysctl_is_found_by_its_name_once() {
        let by = |name: &str| find(name).expect(name);
        let swappiness = by("vm.swappiness");
        assert_eq!(swappiness.name(), "sysctl.vm.swappiness");
        assert!(std::ptr::addr_eq(swappiness, by("sysctl.vm.swappiness")));
        let site = TunableScope::nowhere();
        assert_eq!(swappiness.file(&site), PathBuf::from("/proc/sys/vm/swappiness"));
        let dotted = by("net/ipv4/conf/eth0.1/arp_filter");
        assert_eq!(dotted.file(&site), PathBuf::from("/proc/sys/net/ipv4/conf/eth0.1/arp_filter"));
    }

    #[test]
    fn no_name_leads_out_of_proc_sys() {
        for name in ["vm", "vm.", ".vm.x", "vm..x", "../../etc/passwd", "vm/../x", "a b.c", "vm.é"]
        {
            assert!(find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn lists_are_typed_with_commas() {
        let tunable = find("net.ipv4.tcp_rmem").expect("a sysctl");
        let value = tunable.parse("net.ipv4.tcp_rmem", "4096,131072,6291456").expect("a list");
        assert_eq!(tunable.encode(&value).expect("text"), "4096 131072 6291456");
        assert_eq!(tunable.decode("4096\t131072\t6291456\n"), Some(value.clone()));
        assert_eq!(tunable.show(&value), "4096,131072,6291456");
    }
}
