//! Runs random command lines, each in its own directory, and checks their exits and leftovers.
#![allow(dead_code)] // each tier uses a part of it

pub mod ending;
pub mod grammar;
pub mod line;
pub mod machine;
pub mod sandbox;
pub mod scene;
pub mod values;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::grammar::Grammar;
use self::line::{Drawer, Line};
use self::machine::Machine;
use self::sandbox::{Inside, Place};
use self::scene::Stage;

/// Number of command lines in an ordinary run; `FOREREAD_COMMANDS` sets another.
const COMMANDS: u64 = 200;
/// Commands between two checks of the machine's processes, mounts and files.
const BATCH: u64 = 20;
/// Seconds until a command is sent SIGTERM; `FOREREAD_COMMAND_SECONDS` sets another limit.
const SECONDS: f64 = 2.0;
/// Maximum number of runs to reduce a failing command line to the words that matter.
const SHRINKS: usize = 40;

/// Draws and runs the commands in a sandbox; `test` is the name of the calling test.
pub fn run(test: &str, place: &Place) {
    match sandbox::enter(test, place) {
        Ok(None) => {}
        Ok(Some(inside)) => draw_and_run(&inside),
        Err(lack) => println!("SKIP {test}: {lack}"),
    }
}

/// Reads a number from the environment.
fn asked<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ now.as_secs() << 20
}

/// State that all commands of a run share.
struct Session<'a> {
    stage: Stage,
    drawer: Drawer<'a>,
    seed: u64,
    failures: Mutex<Vec<String>>,
}

fn draw_and_run(inside: &Inside) {
    let seed = asked("FOREREAD_SEED").unwrap_or_else(fresh_seed);
    let count = asked("FOREREAD_COMMANDS").unwrap_or(COMMANDS);
    let limit = Duration::from_secs_f64(asked("FOREREAD_COMMAND_SECONDS").unwrap_or(SECONDS));
    println!("FOREREAD_SEED={seed} FOREREAD_COMMANDS={count}");
    let stage = Stage::set(inside, limit);
    let grammar = Grammar::read(&stage.printed(&["complete", "--grammar"]));
    let drawer = Drawer { grammar: &grammar, targets: inside.targets.clone() };
    let session = Session { stage, drawer, seed, failures: Mutex::default() };
    let begun = Instant::now();
    let mut codes = Vec::new();
    for first in (0..count).step_by(BATCH as usize) {
        let numbers: Vec<u64> = (first..count.min(first + BATCH)).collect();
        codes.extend(session.batch(&numbers, inside.workers));
    }
    let verbs: BTreeSet<&str> = codes.iter().map(|(verb, _)| verb.as_str()).collect();
    let kinds: BTreeSet<i32> = codes.iter().map(|(_, code)| *code).collect();
    let tally = kinds
        .iter()
        .map(|kind| format!("{kind}: {}", codes.iter().filter(|(_, code)| code == kind).count()));
    println!(
        "{count} command lines of {} verbs in {:.0} s; exit codes {}",
        verbs.len(),
        begun.elapsed().as_secs_f64(),
        tally.collect::<Vec<_>>().join(", ")
    );
    let failures = session.failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failed:\n\n{}", failures.len(), failures.join("\n\n"));
}

impl Session<'_> {
    fn line(&self, number: u64) -> Line {
        self.drawer.draw(self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Runs some commands concurrently, and compares the machine before and after.
    fn batch(&self, numbers: &[u64], workers: usize) -> Vec<(String, i32)> {
        let before = Machine::look(&self.stage);
        let queue = Mutex::new(numbers.to_vec());
        let codes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let Some(number) = queue.lock().unwrap().pop() else { return };
                        let line = self.line(number);
                        let (ending, problems) = self.stage.play(&line, number);
                        let code = ending.code;
                        if std::env::var_os("FOREREAD_SHOW_COMMANDS").is_some() {
                            println!("{number}: {}\n    {code}: {}", line.shown(), ending.said());
                        }
                        codes.lock().unwrap().push((line.verb.clone(), code));
                        if !problems.is_empty() {
                            self.fail(number, &line, &problems);
                        }
                    }
                });
            }
        });
        if !before.left(&self.stage).is_empty() {
            self.attribute(numbers, &before);
        }
        codes.into_inner().unwrap()
    }

    /// Finds the command of a batch that left something behind.
    fn attribute(&self, numbers: &[u64], before: &Machine) {
        let left = before.left(&self.stage);
        before.clear(&self.stage);
        let mut found = false;
        for number in numbers {
            let line = self.line(*number);
            let problems = self.leftovers(&line, *number);
            if !problems.is_empty() {
                self.fail(*number, &line, &problems);
                found = true;
            }
        }
        if !found {
            let lines: Vec<String> =
                numbers.iter().map(|number| self.line(*number).shown()).collect();
            // The reason comes last, because a summary of the tests shows the last lines only.
            let (first, seed, lines) = (numbers[0], self.seed, lines.join("\n"));
            let text = format!(
                "{lines}\none of these, from command {first} of FOREREAD_SEED={seed}, left {left:?}"
            );
            println!("{text}");
            self.failures.lock().unwrap().push(text);
        }
    }

    /// Runs a command and returns what it leaves on the machine.
    fn leftovers(&self, line: &Line, number: u64) -> Vec<String> {
        let before = Machine::look(&self.stage);
        self.stage.play(line, number);
        let left = before.left(&self.stage);
        before.clear(&self.stage);
        left
    }

    /// Runs a command and returns everything that is wrong with it.
    fn problems(&self, line: &Line, number: u64) -> Vec<String> {
        let before = Machine::look(&self.stage);
        let mut problems = self.stage.play(line, number).1;
        problems.extend(before.left(&self.stage));
        before.clear(&self.stage);
        problems
    }

    fn fail(&self, number: u64, line: &Line, problems: &[String]) {
        let (small, why) = self.shrink(line, number, problems);
        let text = format!(
            "command {number} of FOREREAD_SEED={}: {}\n  at first: {}\n  {}",
            self.seed,
            small.shown(),
            line.shown(),
            why.join("\n  ")
        );
        println!("{text}");
        self.failures.lock().unwrap().push(text);
    }

    /// Removes words as long as the same problems occur.
    fn shrink(&self, line: &Line, number: u64, problems: &[String]) -> (Line, Vec<String>) {
        let kind = |problems: &[String]| -> BTreeSet<String> {
            problems.iter().map(|one| one.split(':').next().unwrap().to_owned()).collect()
        };
        let wanted = kind(problems);
        let (mut best, mut why) = (line.clone(), problems.to_vec());
        let (mut at, mut runs) = (0, 0);
        while at < best.words.len() && runs < SHRINKS {
            let mut fewer = best.clone();
            fewer.words.remove(at);
            // The required exit code is known for the whole line only.
            fewer.must = None;
            runs += 1;
            let found = self.problems(&fewer, number);
            if kind(&found).is_superset(&wanted) {
                (best, why) = (fewer, found);
            } else {
                at += 1;
            }
        }
        (best, why)
    }
}

/// Returns the sorted names in a directory; empty if it does not exist.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
