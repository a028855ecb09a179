//! Takes a lease on a bdi and flips its read-ahead until it is killed; it is its own guard: `flip
//! PATH BASE [ROUNDS|hold|apply]`. `BASE` is for its state and runtime directories. With `hold`, it
//! sets 64 KiB, then 4 KiB, and waits; with `apply`, it applies several settings and exits.
//!
//! The tests kill it at random times. `FLIP_ROOT` names a tree to use instead of the machine.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::{env, process, thread};

use foreread_tunables::{
    BdiLease, GuardCommand, TunableScope, TunableValues, apply, guard_main, plan_apply,
};
use host::{Dirs, Root, resolve};
use units::Bytes;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["guard", journal] => guard(Path::new(journal)),
        [path, base] => flip(path, base, u64::MAX),
        [path, base, "hold"] => hold(path, base),
        [path, base, "apply"] => apply_some(path, base),
        [path, base, rounds] => {
            rounds.parse().map_err(Into::into).and_then(|n| flip(path, base, n))
        }
        _ => Err("write flip PATH BASE [ROUNDS|hold|apply]".into()),
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

fn begin(path: &str, base: &str) -> Result<BdiLease, Box<dyn Error>> {
    let root = root();
    let storage = resolve(&root, Path::new(path))?;
    let guard = GuardCommand { program: env::current_exe()?, args: vec!["guard".into()] };
    Ok(BdiLease::begin(&Dirs::under(base), &root, &storage, &guard)?)
}

fn set(lease: &mut BdiLease, kib: u64) -> Result<(), Box<dyn Error>> {
    for setting in TunableValues::read_ahead(Bytes::from_kib(kib)).iter() {
        lease.set(setting.tunable, &setting.value)?;
    }
    Ok(())
}

/// Applies settings, each of which has a side effect on the next.
fn apply_some(path: &str, base: &str) -> Result<(), Box<dyn Error>> {
    let root = root();
    let site = TunableScope::with_layers(&root, &resolve(&root, Path::new(path))?);
    let guard = GuardCommand { program: env::current_exe()?, args: vec!["guard".into()] };
    let words = "scheduler=mq-deadline max_sectors_kb=128 rotational=0 read_ahead=1088K";
    let plan = plan_apply(&root, &site, &words.parse()?, 1)?;
    apply(&Dirs::under(base), &root, &site, &plan, &guard)?;
    Ok(())
}

fn hold(path: &str, base: &str) -> Result<(), Box<dyn Error>> {
    let mut lease = begin(path, base)?;
    set(&mut lease, 64)?;
    set(&mut lease, 4)?;
    writeln!(io::stdout(), "holding")?;
    loop {
        thread::park();
    }
}

fn flip(path: &str, base: &str, rounds: u64) -> Result<(), Box<dyn Error>> {
    let mut lease = begin(path, base)?;
    for round in 0..rounds {
        set(&mut lease, 4 << (round % 14))?;
        if round == 0 {
            writeln!(io::stdout(), "flipping")?;
        }
    }
    for undone in lease.restore()? {
        eprintln!("{undone}");
    }
    Ok(())
}
