//! No content of a journal, declaration or record makes a parser panic or leads to a file that does
//! not belong to a tunable.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

use std::path::{Path, PathBuf};

use foreread_tunables::persist::{persisted, persisted_state};
use foreread_tunables::{Replay, TunableScope, TunableValues, declare, find};
use host::{Dirs, Root};
use testkit::fuzz;
use units::PageSize;

fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(folder);
    let seeds = fuzz::seeds(&dir);
    assert!(!seeds.is_empty(), "{}", dir.display());
    seeds
}

fn is_of_kernel(file: &Path) -> bool {
    let sound = file.components().all(|part| part != std::path::Component::ParentDir);
    sound && (file.starts_with("/sys") || file.starts_with("/proc/sys"))
}

#[test]
fn journals_are_survived() {
    let inputs = fuzz::run(fuzz::budget(), &corpus("journal"), |input| {
        let Ok(replay) = Replay::parse(Path::new("/j"), input) else { return };
        for open in &replay.open {
            assert!(is_of_kernel(&open.file), "{}", open.file.display());
            let text = open.tunable.encode(&open.original).unwrap();
            assert!(!text.contains('\n'), "{text:?}");
        }
    });
    println!("journal: {inputs} inputs");
}

#[test]
fn the_seeds_are_journals() {
    for seed in corpus("journal") {
        Replay::parse(Path::new("/j"), &seed).unwrap();
    }
}

#[test]
fn declarations_are_survived() {
    let site = TunableScope::machine();
    let inputs = fuzz::run(fuzz::budget(), &corpus("declarations"), |input| {
        let text = String::from_utf8_lossy(input);
        if declare(&text).is_err() {
            return;
        }
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("[tunable."));
        for name in names.filter_map(|rest| rest.split_once(']')).map(|(name, _)| name) {
            let Ok(tunable) = find(name) else { continue };
            assert!(tunable.candidates(&site).iter().all(|file| is_of_kernel(file)), "{name}");
            for typed in ["1M", "4096", "-1", "clean", "99999999999999999999"] {
                let Ok(value) = tunable.parse(name, typed) else { continue };
                let _ = tunable.show(&value);
                let _ = tunable.validate(&value, PageSize::FOUR_KIB);
            }
        }
    });
    println!("declarations: {inputs} inputs");
}

#[test]
fn records_of_what_was_persisted_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    let (dirs, root) = (Dirs::under(dir.path()), Root::at(dir.path()));
    let record = dirs.state.join("persisted/x.json");
    std::fs::create_dir_all(record.parent().unwrap()).unwrap();
    let ours = ["/etc/udev/rules.d", "/etc/sysctl.d", "/etc/nfs.conf.d", "/etc/tuned/foreread"];
    let inputs = fuzz::run(fuzz::budget(), &corpus("record"), |input| {
        std::fs::write(&record, input).unwrap();
        for (_, known) in persisted(&dirs).into_iter().flatten() {
            let folder = known.path.parent().map(PathBuf::from).unwrap();
            let systemd = folder.starts_with("/etc/systemd/system");
            assert!(systemd || ours.iter().any(|f| folder == Path::new(f)), "{known:?}");
            persisted_state(&root, &known);
        }
    });
    println!("record: {inputs} inputs");
}

#[test]
fn settings_of_the_command_line_are_survived() {
    let corpus = vec![b"read_ahead=1M scheduler=none vm.dirty_ratio=10 stripe_cache=256".to_vec()];
    let inputs = fuzz::run(fuzz::budget(), &corpus, |input| {
        let _ = String::from_utf8_lossy(input).parse::<TunableValues>();
    });
    println!("settings: {inputs} inputs");
}
