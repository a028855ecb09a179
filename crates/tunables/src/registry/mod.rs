//! The registry: one file or table row, and one line, for each tunable.

mod declared;
mod declared_form;
mod form;
mod freebsd;
mod interned;
mod md;
mod queue;
mod read_ahead;
mod sysctl;
mod tunable;
mod vm;
mod window;

use std::path::Path;

pub use declared::declare;
pub(crate) use md::stripe_cache_memory;
use tunable::FileScope;
pub use tunable::{SideEffect, Tunable, ValidatedValue};

use crate::{TunableError, TunableScope};

/// All tunables with a table of their own. Read-ahead comes first because it is the main one;
/// [`Tunable::write_rank`] defines the order of writing.
pub static REGISTRY: &[&Tunable] = &[
    &read_ahead::READ_AHEAD,
    &queue::SCHEDULER,
    &queue::QUEUE_DEPTH,
    &queue::NR_REQUESTS,
    &queue::MAX_SECTORS,
    &queue::ROTATIONAL,
    &queue::RQ_AFFINITY,
    &queue::NOMERGES,
    &queue::WBT_LAT,
    &queue::MEMBER_READ_AHEAD,
    &md::STRIPE_CACHE,
    &md::GROUP_THREADS,
    &md::PREREAD_BYPASS,
    &md::SYNC_SPEED_MIN,
    &md::SYNC_SPEED_MAX,
    &md::SPEED_LIMIT_MIN,
    &md::SPEED_LIMIT_MAX,
    &vm::DIRTY_BYTES,
    &vm::DIRTY_RATIO,
    &vm::DIRTY_BACKGROUND_BYTES,
    &vm::DIRTY_BACKGROUND_RATIO,
    &vm::DIRTY_EXPIRE,
    &vm::DIRTY_WRITEBACK,
];

/// Returns the tunables of FreeBSD, which foreread can check and emit on Linux.
pub fn freebsd() -> impl Iterator<Item = &'static Tunable> {
    freebsd::ALL.iter()
}

/// The read-ahead algorithm of a simulation, as `NAME[:KEY=VALUE…]`.
static POLICY: Tunable = Tunable {
    name: "policy",
    write_rank: 91,
    file_scope: FileScope::OtherSystem("a simulation (sim:MODEL)"),
    ..Tunable::PLAIN
};

/// Finds a tunable by name, JSON key or alias; also any sysctl by its own name, and declared files
/// ([`declare`]).
pub fn find(name: &str) -> Result<&'static Tunable, TunableError> {
    let name = name.trim();
    let wanted = name.to_ascii_lowercase().replace('-', "_");
    let found = find_fixed(&wanted)
        .or_else(|| find_other(&wanted))
        .or_else(|| declared::find(&wanted))
        .or_else(|| declared::find_by_file(name))
        .or_else(|| sysctl::find(name));
    found.ok_or_else(|| TunableError::Unknown { name: name.to_owned(), hint: hint(&wanted) })
}

fn find_fixed(wanted: &str) -> Option<&'static Tunable> {
    REGISTRY.iter().find(|tunable| tunable.names().any(|known| known == wanted)).copied()
}

/// Finds a tunable of another system by name or JSON key.
fn find_other(wanted: &str) -> Option<&'static Tunable> {
    freebsd().chain([&POLICY]).find(|tunable| tunable.names().any(|known| known == wanted))
}

/// Finds the tunable that a journal or JSON names exactly.
pub(crate) fn find_exactly(name: &str) -> Option<&'static Tunable> {
    let fixed = REGISTRY.iter().find(|tunable| tunable.name() == name).copied();
    fixed
        .or_else(|| declared::find_by_file(name))
        .or_else(|| find_other(name))
        .or_else(|| sysctl::find(name).filter(|tunable| tunable.name() == name))
}

pub(crate) fn find_key(key: &str) -> Option<&'static Tunable> {
    let fixed = REGISTRY.iter().find(|tunable| tunable.json_key() == key).copied();
    fixed.or_else(|| find_exactly(key))
}

/// Returns whether `file` may be a file of the tunable in this scope.
pub(crate) fn admits(tunable: &Tunable, site: &TunableScope, file: &Path) -> bool {
    tunable.candidates(site).iter().any(|candidate| candidate == file)
}

/// Suggests the most similar name, or lists all names.
fn hint(wanted: &str) -> String {
    let known = REGISTRY.iter().copied().chain(freebsd()).flat_map(Tunable::names);
    match units::text::nearest(wanted, known) {
        Some(name) => format!(": did you mean {name}?"),
        None => {
            let all: Vec<&str> = REGISTRY.iter().map(|tunable| tunable.name()).collect();
            format!("; known are {}, and any sysctl by its name (vm.swappiness)", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use std::path::PathBuf;

    use proptest::prelude::*;
    use units::PageSize;

    use super::*;

    #[test]
    fn names_are_found_and_typing_errors_mended() {
        for name in ["read_ahead", "read-ahead", "RA", "read_ahead_kb", "read_ahead_kib"] {
            assert_eq!(find(name).expect(name).name(), "read_ahead");
        }
        for (name, found) in [
            ("scheduler", "scheduler"),
            ("elevator", "scheduler"),
            ("max_sectors_kb", "max_sectors"),
            ("vm.dirty_bytes", "dirty_bytes"),
            ("wbt_lat_usec", "wbt_lat"),
            ("vfs.read_max", "vfs.read_max"),
            ("vm.swappiness", "sysctl.vm.swappiness"),
        ] {
            assert_eq!(find(name).expect(name).name(), found);
        }
        let text = |name: &str| find(name).expect_err(name).to_string();
        assert_eq!(
            text("read_ahed"),
            r#"there is no tunable "read_ahed": did you mean read_ahead?"#
        );
        assert!(text("stripe_cach_size").contains("did you mean stripe_cache_size?"));
        assert!(text("bogomips").contains("known are read_ahead, scheduler, "));
    }

    #[test]
    fn every_entry_keeps_the_contract() {
        let mut seen = BTreeSet::new();
        for tunable in REGISTRY.iter().copied().chain(freebsd()) {
            for name in tunable.names().collect::<BTreeSet<_>>() {
                assert!(seen.insert(name), "{name} is given twice");
                assert_eq!(find(name).expect(name).name(), tunable.name());
            }
            let own = |file: &PathBuf| file.starts_with("/sys") || file.starts_with("/proc/sys");
            let site = TunableScope::nowhere();
            assert!(tunable.candidates(&site).iter().all(own), "{}", tunable.name());
            assert!(
                find_exactly(tunable.name()).is_some() && find_key(tunable.json_key()).is_some()
            );
            for upset in tunable.side_effects() {
                let other = find_exactly(upset.name()).expect("a tunable");
                let held = matches!(upset, SideEffect::Recomputed(_));
                assert!(!held || other.write_rank() > tunable.write_rank(), "{}", tunable.name());
            }
        }
        let latest = REGISTRY.iter().max_by_key(|tunable| tunable.write_rank()).expect("some");
        assert_eq!(latest.name(), "read_ahead", "what others overwrite is written last");
    }

    #[test]
    fn every_entry_shows_what_it_parses_and_writes_what_it_reads() {
        for (setting, file) in [
            ("scheduler=mq-deadline", "none [mq-deadline] bfq"),
            ("nr_requests=256", "256"),
            ("queue_depth=31", "31"),
            ("max_sectors=512K", "512"),
            ("max_sectors_kb=512", "512"),
            ("rotational=1", "1"),
            ("rq_affinity=2", "2"),
            ("nomerges=0", "0"),
            ("wbt_lat=75ms", "75000"),
            ("wbt_lat_usec=75000", "75000"),
            ("stripe_cache_size=8192", "8192"),
            ("group_thread_cnt=4", "4"),
            ("preread_bypass_threshold=1", "1"),
            ("sync_speed_min=50M/s", "51200 (local)"),
            ("sync_speed_max=200M", "204800 (local)"),
            ("sync_speed_max=system", "200000 (system)"),
            ("speed_limit_max=200000K", "200000"),
            ("dirty_bytes=256M", "268435456"),
            ("vm.dirty_ratio=10", "10"),
            ("dirty_background_bytes=64M", "67108864"),
            ("dirty_background_ratio=5", "5"),
            ("dirty_expire_centisecs=3000", "3000"),
            ("dirty_writeback=5s", "500"),
            ("member_read_ahead=64K", "64"),
            ("vm.swappiness=10", "10"),
            ("vfs.read_max=128", "128"),
            ("vfs.hirunningspace=16M", "16777216"),
        ] {
            let (name, text) = setting.split_once('=').expect("a setting");
            let tunable = find(name).expect(name);
            let value = tunable.parse(name, text).expect(setting);
            let checked = tunable.validate(&value, PageSize::FOUR_KIB).expect(setting);
            assert_eq!(checked.value, value, "{setting}");
            assert_eq!(tunable.decode(file), Some(value.clone()), "{setting}");
            let written = tunable.encode(&value).expect(setting);
            assert_eq!(tunable.decode(&written), Some(value.clone()), "{setting}");
            let shown = tunable.show(&value);
            assert_eq!(tunable.parse(tunable.name(), &shown).expect(setting), value);
            let json = tunable.to_json(&value);
            assert_eq!(tunable.read_json(&json).expect(setting), value);
        }
    }

    #[test]
    fn values_out_of_range_or_without_a_unit_are_refused() {
        for setting in [
            "nr_requests=0",
            "nr_requests=many",
            "nr_requests=99999999999999999999",
            "max_sectors=512",
            "max_sectors=1K",
            "rotational=2",
            "nomerges=3",
            "rq_affinity=-1",
            "wbt_lat=75",
            "wbt_lat=2000000s",
            "stripe_cache_size=16",
            "stripe_cache_size=65536",
            "stripe_cache_size=4K",
            "dirty_ratio=101",
            "dirty_bytes=0",
            "dirty_bytes=1K",
            "scheduler=",
            "scheduler=a b",
            "scheduler=a,b",
            "scheduler=\u{1b}[31m",
            "sync_speed_min=50",
            "vfs.read_max=-1",
            "vm.swappiness=",
        ] {
            let (name, text) = setting.split_once('=').expect("a setting");
            let tunable = find(name).expect(name);
            let checked = tunable
                .parse(name, text)
                .and_then(|value| tunable.validate(&value, PageSize::FOUR_KIB));
            assert!(checked.is_err(), "{setting}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "\\PC*") {
            let _ = find(&name);
        }

        #[test]
        fn any_value_is_survived(which in 0..REGISTRY.len(), text in "\\PC*") {
            let tunable = REGISTRY[which];
            let _ = tunable.decode(&text);
            if let Ok(value) = tunable.parse(tunable.name(), &text)
                && let Ok(checked) = tunable.validate(&value, PageSize::FOUR_KIB)
            {
                prop_assert!(tunable.encode(&checked.value).is_ok());
            }
        }
    }
}
