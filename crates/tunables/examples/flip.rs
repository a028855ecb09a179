//! Holds a tenure over a bdi and flips its read-ahead until it is ended, being its own guard:
//! `flip PATH BASE [ROUNDS]`, with `BASE` for its state and runtime directories.
//!
//! The tests kill it at random moments. `FLIP_ROOT` names a tree to use in place of the machine.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::{env, process};

use foreread_tunables::{GuardCommand, Settings, Tenure, guard_main};
use host::{Dirs, Root, resolve};
use units::Bytes;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["guard", journal] => guard(Path::new(journal)),
        [path, base] => flip(path, base, u64::MAX),
        [path, base, rounds] => {
            rounds.parse().map_err(Into::into).and_then(|n| flip(path, base, n))
        }
        _ => Err("write flip PATH BASE [ROUNDS]".into()),
    };
    if let Err(error) = result {
        eprintln!("flip: {error}");
        process::exit(1);
    }
}

fn root() -> Root {
    env::var_os("FLIP_ROOT").map_or_else(Root::system, Root::at)
}

fn guard(journal: &Path) -> Result<(), Box<dyn Error>> {
    for undone in guard_main(&root(), journal)? {
        eprintln!("{undone}");
    }
    Ok(())
}

fn flip(path: &str, base: &str, rounds: u64) -> Result<(), Box<dyn Error>> {
    let root = root();
    let storage = resolve(&root, Path::new(path))?;
    let guard = GuardCommand { program: env::current_exe()?, args: vec!["guard".into()] };
    let mut tenure = Tenure::begin(&Dirs::under(base), &root, &storage, &guard)?;
    for round in 0..rounds {
        for setting in Settings::read_ahead(Bytes::from_kib(4 << (round % 14))).iter() {
            tenure.set(setting.tunable, &setting.value)?;
        }
        if round == 0 {
            writeln!(io::stdout(), "flipping")?;
        }
    }
    for undone in tenure.restore()? {
        eprintln!("{undone}");
    }
    Ok(())
}
