//! The varied settings: tunables of the storage, and settings of the server.

use tunables::{Setting, Vary};

use super::WithAuto;
use crate::error::PgError;

/// Maximum number of combinations; more are probably a mistake.
const MAX_ARMS: usize = 64;

/// Settings and the first major version of PostgreSQL that has them.
const SINCE: [(&str, u32); 4] =
    [("io_method", 18), ("io_workers", 18), ("io_max_concurrency", 18), ("io_combine_limit", 17)];

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PgArm {
    pub(super) tunables: Vec<Setting>,
    pub(super) server: Vec<(String, String)>,
    /// True if `foreread auto` runs; `None` if the plan does not involve it.
    pub(super) auto: Option<bool>,
}

impl PgArm {
    /// Returns `read_ahead=128K io_method=worker`, or `as found` if nothing is varied.
    pub(super) fn label(&self) -> String {
        let tunables = self.tunables.iter().map(ToString::to_string);
        let server = self.labels().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = tunables.chain(server).collect();
        if words.is_empty() { "as found".to_owned() } else { words.join(" ") }
    }

    pub(super) fn levels(&self) -> Vec<(String, String)> {
        let tunables = self.tunables.iter().filter(|it| it.tunable.name() != "read_ahead");
        let tunables = tunables
            .map(|it| (it.tunable.name().to_owned(), it.tunable.show(&it.value).to_string()));
        tunables.chain(self.labels()).collect()
    }

    /// Returns the settings that are not tunables: those of the server, and `auto`.
    pub(super) fn labels(&self) -> impl Iterator<Item = (String, String)> {
        let word = |auto| if auto { "on" } else { "off" };
        let auto = self.auto.map(|auto| ("auto".to_owned(), word(auto).to_owned()));
        self.server.iter().cloned().chain(auto)
    }

    pub(super) fn read_ahead_kib(&self) -> Option<f64> {
        let setting = self.tunables.iter().find(|it| it.tunable.name() == "read_ahead")?;
        setting.value.bytes().map(|bytes| bytes.get() as f64 / 1024.0)
    }
}

/// Returns all combinations of the varied settings, for a server of this major version.
pub(super) fn parse(vary: &[String], major: u32) -> Result<Vec<PgArm>, PgError> {
    let mut arms = vec![PgArm::default()];
    let mut names: Vec<&str> = Vec::new();
    for words in vary {
        let name = words.split('=').next().unwrap_or_default().trim();
        if names.contains(&name) {
            let text = format!("{name} is varied twice: give all its values at once");
            return Err(PgError::Usage(text));
        }
        names.push(name);
        arms = match tunables::find(name) {
            Ok(_) => with_tunable(&arms, words)?,
            Err(_) => with_server(&arms, words, major)?,
        };
        if arms.len() > MAX_ARMS {
            let text = format!("more than {MAX_ARMS} combinations of settings: vary less at once");
            return Err(PgError::Usage(text));
        }
    }
    Ok(arms)
}

/// Returns each of these settings with `foreread auto`, or both without and with it.
pub(super) fn with_auto(arms: &[PgArm], auto: WithAuto) -> Result<Vec<PgArm>, PgError> {
    if arms.iter().any(|arm| !arm.tunables.is_empty()) {
        let text = "--auto controls the storage's settings: vary only settings of the server";
        return Err(PgError::Usage(text.to_owned()));
    }
    let ways: &[bool] = if auto == WithAuto::Both { &[false, true] } else { &[true] };
    let all = arms
        .iter()
        .flat_map(|arm| ways.iter().map(|auto| PgArm { auto: Some(*auto), ..arm.clone() }));
    Ok(all.collect())
}

fn with_tunable(arms: &[PgArm], words: &str) -> Result<Vec<PgArm>, PgError> {
    let mut vary: Vary = words.parse()?;
    vary.validate(host::page_size())?;
    let arm = |arm: &PgArm, value: &tunables::Value| {
        let mut arm = arm.clone();
        arm.tunables.push(Setting { tunable: vary.tunable, value: value.clone() });
        arm
    };
    Ok(arms.iter().flat_map(|old| vary.values.iter().map(|value| arm(old, value))).collect())
}

fn with_server(arms: &[PgArm], words: &str, major: u32) -> Result<Vec<PgArm>, PgError> {
    let usage = || {
        PgError::Usage(format!(
            "{words:?} should be NAME=VALUE[,VALUE…], with a tunable or a setting of PostgreSQL"
        ))
    };
    let (name, values) = words.split_once('=').ok_or_else(usage)?;
    let name = name.trim();
    let sound = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    if name.is_empty() || !name.chars().all(sound) {
        return Err(usage());
    }
    let since = SINCE.iter().find(|(setting, _)| *setting == name);
    if let Some((_, needed)) = since.filter(|(_, needed)| *needed > major) {
        let (setting, needed, found) = (name.to_owned(), *needed, major.to_string());
        return Err(PgError::TooOld { setting, needed, found });
    }
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    if values.iter().any(|value| value.is_empty()) {
        return Err(usage());
    }
    let arm = |arm: &PgArm, value: &str| {
        let mut arm = arm.clone();
        arm.server.push((name.to_owned(), value.to_owned()));
        arm
    };
    Ok(arms.iter().flat_map(|old| values.iter().map(|value| arm(old, value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(vary: &[&str], major: u32) -> Result<Vec<String>, String> {
        let vary: Vec<String> = vary.iter().map(|words| (*words).to_owned()).collect();
        let arms = parse(&vary, major).map_err(|error| error.to_string())?;
        Ok(arms.iter().map(PgArm::label).collect())
    }

    #[test]
    fn everything_is_combined_with_everything() {
        assert_eq!(labels(&[], 15).unwrap(), ["as found"]);
        let found = labels(&["read_ahead=128K,1M", "effective_io_concurrency=0,16"], 15).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], "read_ahead=128K effective_io_concurrency=16");
        assert_eq!(labels(&["io_method=sync,worker"], 18).unwrap()[1], "io_method=worker");
        let both =
            |auto| with_auto(&parse(&["work_mem=1MB".to_owned()], 15).unwrap(), auto).unwrap();
        let labels = |auto| both(auto).iter().map(PgArm::label).collect::<Vec<_>>();
        assert_eq!(labels(WithAuto::Both), ["work_mem=1MB auto=off", "work_mem=1MB auto=on"]);
        assert_eq!(labels(WithAuto::Always), ["work_mem=1MB auto=on"]);
        let windows = parse(&["read_ahead=1M".to_owned()], 15).unwrap();
        assert!(with_auto(&windows, WithAuto::Both).is_err());
    }

    #[test]
    fn what_cannot_be_varied_is_refused() {
        let refused = |vary: &[&str]| labels(vary, 15).unwrap_err();
        assert!(refused(&["io_method=worker"]).contains("needs PostgreSQL 18; this is 15"));
        assert!(refused(&["read_ahead=128"]).contains("unit"));
        assert!(refused(&["x"]).contains("NAME=VALUE"));
        assert!(refused(&["Robert'); drop=1"]).contains("NAME=VALUE"));
        assert!(refused(&["jit=on,"]).contains("NAME=VALUE"));
        assert!(refused(&["jit=on", "jit=off"]).contains("twice"));
        let many = "work_mem=".to_owned() + &["1MB"; 65].join(",");
        assert!(refused(&[&many]).contains("more than 64"));
    }
}
