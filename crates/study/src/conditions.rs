//! Finds differences between two runs that are not part of the comparison: kernel, filesystem,
//! policy, host, simulation.

use serde::Serialize;
use serde_json::Value as Json;
use units::{Bytes, Nanos};

use crate::store::Run;
use crate::target::Target;

/// A difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunDifference {
    pub name: String,
    /// The value in the first run; `None` if not recorded.
    pub first: Option<String>,
    pub second: Option<String>,
}

/// The compared fields and their labels, most important first.
const COMPARED_FIELDS: &[(&str, &str, &str)] = &[
    ("policy", "device", "/simulation/policy"),
    ("model", "device", "/simulation/model"),
    ("filesystem", "device", "/storage/mount/fstype"),
    ("kernel", "machine", "/kernel"),
    ("host", "machine", "/hostname"),
    ("device", "device", "/devices/0/model"),
    ("kind of device", "device", "/devices/0/kind"),
    ("virtual disk", "device", "/virtual_disk/words"),
    ("page cache", "device", "/simulation/cache_bytes"),
    ("scheduler", "device", "/simulation/scheduler"),
    ("nr_requests", "device", "/simulation/nr_requests"),
    ("largest request", "device", "/simulation/max_request_bytes"),
    ("processor", "machine", "/cpu_model"),
    ("processors", "machine", "/cpus"),
    ("memory", "machine", "/memory"),
    ("architecture", "machine", "/architecture"),
    ("mount options", "device", "/storage/mount/options"),
];

/// Fields whose numbers are bytes.
const IN_BYTES: [&str; 3] = ["page cache", "largest request", "memory"];

/// Returns all differences for which at least one value is known.
pub(crate) fn conditions(first: &Run, second: &Run) -> Vec<RunDifference> {
    let mut all = Vec::new();
    let mut note = |name: &str, first: Option<String>, second: Option<String>| {
        if first != second {
            all.push(RunDifference { name: name.to_owned(), first, second });
        }
    };
    note("figures", Some(kind(first)), Some(kind(second)));
    for (name, of, place) in COMPARED_FIELDS {
        let read = |run: &Run| {
            let of = if *of == "machine" { &run.machine } else { &run.device_before };
            value(of.pointer(place)?, IN_BYTES.contains(name))
        };
        note(name, read(first), read(second));
    }
    let tunables = |run: &Run| match run.device_before.get("tunables") {
        Some(Json::Object(tunables)) => tunables.clone(),
        _ => serde_json::Map::new(),
    };
    let (a, b) = (tunables(first), tunables(second));
    // Only tunables that both runs record: a missing value does not differ.
    for (name, own) in a.iter().filter(|(name, _)| name.as_str() != "read_ahead_kib") {
        if let Some(other) = b.get(name) {
            note(name, value(own, false), value(other, false));
        }
    }
    let trial = |run: &Run| (run.plan.trial > Nanos::ZERO).then(|| run.plan.trial.to_string());
    note("length of a trial", trial(first), trial(second));
    note("foreread", Some(first.summary.version.clone()), Some(second.summary.version.clone()));
    all
}

fn kind(run: &Run) -> String {
    match run.plan.target {
        Target::Path(_) => "measured on real storage",
        Target::Virtual(_) => "measured on a virtual disk",
        Target::Simulation(_) => "simulated",
        Target::Imported(_) => "published by others",
    }
    .to_owned()
}

fn value(json: &Json, bytes: bool) -> Option<String> {
    match json {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        Json::Number(number) if bytes => Some(Bytes::new(number.as_u64()?).to_string()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::synthetic::World;

    fn run(target: Target, machine: Json, device: Json) -> Run {
        let mut run = World::of(vec![("seq-1", vec![(4.0, 1.0)])]).run(Vec::new());
        (run.plan.target, run.machine, run.device_before) = (target, machine, device);
        run
    }

    #[test]
    fn what_differs_is_named_and_nothing_else() {
        let real = run(
            Target::Path("/data".into()),
            json!({ "kernel": "6.1.0", "hostname": "a", "memory": 4_294_967_296u64 }),
            json!({ "storage": { "mount": { "fstype": "xfs" } }, "tunables": { "scheduler": "none",
                    "read_ahead_kib": 128, "nr_requests": 64 } }),
        );
        let again = run(
            Target::Path("/data".into()),
            json!({ "kernel": "6.1.0", "hostname": "b", "memory": 8_589_934_592u64 }),
            json!({ "storage": { "mount": { "fstype": "ext4" } }, "tunables": {
                    "scheduler": "bfq", "read_ahead_kib": 4096, "wbt_lat_us": 1 } }),
        );
        let found: Vec<(String, String)> = conditions(&real, &again)
            .into_iter()
            .map(|one| (one.name, format!("{:?} {:?}", one.first, one.second)))
            .collect();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["filesystem", "host", "memory", "scheduler"]);
        assert_eq!(found[2].1, r#"Some("4 GiB") Some("8 GiB")"#);
        assert!(conditions(&real, &real).is_empty());
    }

    #[test]
    fn a_simulation_beside_a_measurement_says_so_first() {
        let real = run(Target::Path("/data".into()), json!({}), json!({}));
        let policy = json!({ "simulation": { "policy": "linux-6.18" } });
        let simulated = run(Target::parse("sim:hdd-2008").unwrap(), json!({}), policy);
        let found = conditions(&real, &simulated);
        assert_eq!(found[0].name, "figures");
        assert_eq!(found[0].second.as_deref(), Some("simulated"));
        assert_eq!((found[1].name.as_str(), &found[1].first), ("policy", &None));
    }
}
