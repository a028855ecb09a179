//! Only recommendations for the installed versions apply.
#![allow(clippy::unwrap_used)] // a test may panic

mod hosts;

use foreread_doctor::{Windows, host_presets};
use hosts::{FLASH, Machine};

fn machine() -> Machine {
    Machine::new("6.1.0").device("sda", "8:0", FLASH).mount("8:0", "/", "xfs", "/dev/sda")
}

/// Returns how the recommendation for PostgreSQL 17 and 18 was detected; `None` if it is not.
fn because(machine: &Machine) -> Option<String> {
    let snapshot = machine.snapshot(Windows::not_asked());
    let found = host_presets::running(&snapshot).iter();
    found
        .filter(|applies| applies.preset.software == "PostgreSQL 17/18")
        .map(|applies| applies.because.clone())
        .next()
}

/// Defect 29: a recommendation for PostgreSQL 17 and 18 was shown when 15 is installed.
#[test]
fn advice_for_other_versions_is_not_given() {
    let package = |name: &str| {
        machine().with(
            "var/lib/dpkg/status",
            &format!("Package: {name}\nStatus: install ok installed\n\n"),
        )
    };
    assert_eq!(because(&package("postgresql-15")), None);
    assert!(because(&package("postgresql-17")).is_some());
    let both = package("postgresql-15").with("usr/lib/postgresql/18/bin/postgres", "");
    assert!(because(&both).is_some());
    let runs = |version: &str| {
        let command = format!("postgres\0-D\0/var/lib/postgresql/{version}/main\0");
        package("postgresql-17").process(300, "postgres", "").with("proc/300/cmdline", &command)
    };
    assert_eq!(because(&runs("15")), None, "17 is installed, and 15 runs");
    assert!(because(&runs("18")).is_some());
    let files = |text: &str| {
        let machine = machine().process(300, "postgres", "");
        machine.with("var/lib/pgsql/data/PG_VERSION", text)
    };
    assert_eq!(because(&files("16\n")), None);
    assert!(because(&files("17\n")).is_some());
    let unseen = because(&machine().process(300, "postgres", "")).unwrap();
    assert!(unseen.ends_with("of which version cannot be seen"), "{unseen}");
}
