//! The command that repeats a run.

use study::{Design, Grid, Plan, Run, RunCommand, Target, default_trial};
use units::Kib;
use workload::Workload;

use crate::clean;

const USUAL: [&str; 4] = ["seq-1", "seq-8", "rand-pread", "rand-mmap"];

/// Returns the command that repeats the measurement with the same seed. `None` for imported
/// figures, or if a name has characters that should not be copied into a shell.
pub(crate) fn again(run: &Run) -> Option<String> {
    if run.summary.command == RunCommand::Pg {
        return of_pg(run);
    }
    let verb = match run.summary.command {
        RunCommand::Sweep => "sweep",
        RunCommand::Tune => "tune",
        _ => return None,
    };
    let plan = &run.plan;
    if matches!(plan.target, Target::Imported(_)) {
        return None;
    }
    let mut words = vec!["foreread".to_owned(), verb.to_owned(), quoted(&plan.target.to_string())?];
    words.extend(varied(plan));
    if plan.design != Design::default() {
        words.push(format!("--design {}", plan.design));
    }
    let names: Vec<String> = plan.workloads.iter().map(|w| name(&w.workload)).collect();
    if names != USUAL {
        words.push(format!("--workload {}", quoted(&names.join(","))?));
    }
    if !plan.purpose.is_mixed() {
        words.push(format!("--purpose {}", plan.purpose));
    }
    if plan.repeats.min == plan.repeats.max {
        words.push(format!("--repeats {}", plan.repeats.min));
    }
    if plan.trial != default_trial(&plan.target) {
        words.push(format!("--duration {}ms", plan.trial.as_millis_f64()));
    }
    if let Some(size) = plan.file_size {
        words.push(format!("--size {}K", size.to_kib_floor().get()));
    }
    if let Some(limit) = plan.memory_limit {
        words.push(format!("--memory-limit {}K", limit.to_kib_floor().get()));
    }
    if plan.drop_caches {
        words.push("--drop-caches".to_owned());
    }
    words.push(format!("--seed {} --fresh", run.seed));
    Some(words.join(" "))
}

/// Returns the recorded arguments of a PostgreSQL run.
fn of_pg(run: &Run) -> Option<String> {
    let words = run.machine.pointer("/postgres/again")?.as_array()?;
    let words = words.iter().map(|word| quoted(word.as_str()?));
    let words: Option<Vec<String>> =
        std::iter::once(Some("foreread".to_owned())).chain(words).collect();
    words.map(|words| words.join(" "))
}

/// Returns the `--vary` options, without the full grid, which is the default.
fn varied(plan: &Plan) -> Vec<String> {
    let mut words = Vec::new();
    if let Grid::Values(values) = &plan.read_ahead {
        let size = |kib: &Kib| format!("{}K", kib.get());
        let values: Vec<String> = values.iter().map(size).collect();
        words.push(format!("--vary read_ahead={}", values.join(",")));
    }
    let factor =
        |factor: &study::Factor| quoted(&format!("{}={}", factor.tunable, factor.levels.join(",")));
    words.extend(plan.factors.iter().filter_map(factor).map(|text| format!("--vary {text}")));
    words
}

/// Returns the workload's name, or the file name for the declaration shown below the command.
fn name(workload: &Workload) -> String {
    let builtin = Workload::named(&workload.name).is_ok_and(|named| named == *workload);
    if builtin { workload.name.clone() } else { format!("./{}.toml", workload.name) }
}

/// Quotes a word for a shell; `None` if it contains unprintable characters.
pub(crate) fn quoted(word: &str) -> Option<String> {
    if clean::plain(word) != word {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("/srv/data").as_deref(), Some("/srv/data"));
        assert_eq!(quoted("/srv/my data").as_deref(), Some("'/srv/my data'"));
        assert_eq!(quoted("$(rm)'x").as_deref(), Some("'$(rm)'\\''x'"));
        assert_eq!(quoted("a\u{1b}[2J"), None);
        assert_eq!(quoted("").as_deref(), Some("''"));
    }
}
