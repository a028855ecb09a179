//! A host's read-ahead at one time, as a file that can be collected.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use doctor::check::CheckReport;
use doctor::{Diagnosis, HostSnapshot};
use host::Root;
use report::{clean, storage_name};
use serde::{Deserialize, Serialize};
use sys::input::InputKind;
use units::{Bytes, Kib};

use crate::error::FleetError;
use crate::{device_key, uuid};

const MACHINE_ID: &str = "/etc/machine-id";
const SURVEY: InputKind = InputKind::new("survey", "surveys", Bytes::from_mib(16));
/// A survey from further in the future has a wrong clock, and would hide all later surveys.
const MAX_CLOCK_LEAD_SECONDS: f64 = 86_400.0;

/// A host, with an identity that does not reveal its machine-id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    pub id: String,
    /// The host's name, only a label: names may be equal or change.
    pub name: String,
}

/// One storage of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyedStorage {
    /// Key that stays the same when devices are found in another order.
    pub key: String,
    /// Mount point or device.
    pub name: String,
    pub read_ahead_kib: Kib,
    /// Kind of origin, as in policies.
    pub origin: String,
    /// Ids of findings, sorted.
    pub findings: Vec<String>,
}

/// The result of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// SHA-256 of the policy's text, in hexadecimal digits.
    pub digest: String,
    pub checks: usize,
    /// Violations: rule, storage and reason, in the policy's order.
    pub violations: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSurvey {
    pub survey_version: u32,
    pub host: HostIdentity,
    pub taken_unix_s: f64,
    /// Version of foreread.
    pub version: String,
    /// Kernel release.
    pub kernel: String,
    pub storage: Vec<SurveyedStorage>,
    pub policy: Option<PolicyResult>,
}

impl HostSurvey {
    pub const VERSION: u32 = 1;

    /// Creates the survey of an examined host.
    ///
    /// # Errors
    ///
    /// If the host has no machine-id.
    pub fn of(
        snapshot: &HostSnapshot,
        diagnoses: &[Diagnosis],
        policy: Option<PolicyResult>,
    ) -> Result<Self, FleetError> {
        let root = &snapshot.root;
        let text = |path: &str| {
            let text = root.read_if_present(path).ok().flatten().unwrap_or_default();
            clean::plain(text.trim())
        };
        Ok(Self {
            survey_version: Self::VERSION,
            host: HostIdentity { id: host_id(root)?, name: text("/proc/sys/kernel/hostname") },
            taken_unix_s: now_unix_s(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: text("/proc/sys/kernel/osrelease"),
            storage: storage(root, diagnoses),
            policy,
        })
    }

    /// Reads a survey from a file.
    ///
    /// # Errors
    ///
    /// If the file is not a survey, is from a newer version, or has an invalid time or identity.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = sys::input::read_text(path, SURVEY)?;
        let refused = |why: String| FleetError::NoSurvey { path: path.to_owned(), why };
        let document: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        let found = document["survey_version"].as_u64();
        let found = found.ok_or_else(|| refused("it has no survey_version".to_owned()))?;
        if found > u64::from(Self::VERSION) {
            return Err(FleetError::TooNew { path: path.to_owned(), found, known: Self::VERSION });
        }
        let survey: Self =
            serde_json::from_value(document).map_err(|error| refused(error.to_string()))?;
        survey.check().map_err(refused)?;
        Ok(survey)
    }

    fn check(&self) -> Result<(), String> {
        if !uuid::is_uuid(&self.host.id) {
            return Err(format!("host.id is {:?}, not an identity", self.host.id));
        }
        let latest = now_unix_s() + MAX_CLOCK_LEAD_SECONDS;
        if !(0.0..=latest).contains(&self.taken_unix_s) {
            return Err(format!(
                "it was taken at {} s, which is in the future: check the clock of {}",
                self.taken_unix_s, self.host.name
            ));
        }
        let mut keys: Vec<&str> = self.storage.iter().map(|one| one.key.as_str()).collect();
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("the storage {:?} occurs twice", twice[0]));
        }
        let largest = Kib::new(1 << 32);
        match self.storage.iter().find(|one| one.read_ahead_kib > largest) {
            Some(one) => Err(format!("{}: no kernel has a read-ahead that large", one.name)),
            None => Ok(()),
        }
    }
}

impl PolicyResult {
    /// Creates the result for a policy with this text.
    pub fn new(text: &str, report: &CheckReport) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(text.as_bytes());
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let storage = report.results.iter().flat_map(|outcome| {
            let line = |why| format!("{}: {}: {why}", outcome.rule, outcome.storage);
            outcome.violations.iter().map(line)
        });
        let idle = report.idle_rules.iter().filter_map(|rule| {
            let violation = rule.violation.as_ref()?;
            Some(format!("{}: {violation}", rule.rule))
        });
        let violations = storage.chain(idle).map(|line| clean::plain(&line)).collect();
        Self { digest, checks: report.checks(), violations }
    }
}

/// Returns the identity of a host. The machine-id itself stays on the host, as machine-id(5) asks.
fn host_id(root: &Root) -> Result<String, FleetError> {
    let missing = || FleetError::NoMachineId { path: root.path(MACHINE_ID) };
    let text = root.read_if_present(MACHINE_ID)?.ok_or_else(missing)?;
    let id = text.trim();
    let whole = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !whole {
        return Err(missing());
    }
    Ok(uuid::derived("foreread host", &[id.to_ascii_lowercase().as_bytes()]))
}

fn storage(root: &Root, diagnoses: &[Diagnosis]) -> Vec<SurveyedStorage> {
    let read = diagnoses.iter().filter(|diagnosis| diagnosis.is_read_through());
    let mut all: Vec<SurveyedStorage> = read
        .map(|diagnosis| {
            let mut findings: Vec<String> =
                diagnosis.findings.iter().map(|found| found.id.to_owned()).collect();
            findings.sort();
            SurveyedStorage {
                key: clean::plain(&device_key::of(root, &diagnosis.subject)),
                name: clean::plain(&storage_name(&diagnosis.subject)),
                read_ahead_kib: diagnosis.read_ahead(),
                origin: diagnosis.origin.kind.word().to_owned(),
                findings,
            }
        })
        .collect();
    all.sort_by(|a, b| (&a.key, &a.name).cmp(&(&b.key, &b.name)));
    // Two mounts from one server have the same key.
    for index in 1..all.len() {
        let same = all[..index].iter().filter(|one| one.key == all[index].key).count();
        if same > 0 {
            all[index].key = format!("{}#{}", all[index].key, all[index].name);
        }
    }
    all
}

fn now_unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64())
}
