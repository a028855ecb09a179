//! Volumes that a Kubernetes storage driver mounted. Some drivers set read-ahead from an option of
//! the StorageClass, which this machine does not store. Only the possible owner is known.

use std::path::PathBuf;

use super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted};
use crate::Root;

/// Drivers that can set read-ahead, each with the option that does so.
pub const DRIVERS: &[(&str, &str)] = &[
    ("pd.csi.storage.gke.io", "the mount option read_ahead_kb of its StorageClass"),
    ("gcsfuse.csi.storage.gke.io", "the mount option read_ahead_kb or gcsfuse itself"),
    (
        "disk.csi.azure.com",
        "perfProfile and device-setting/queue/read_ahead_kb of its StorageClass",
    ),
    ("blob.csi.azure.com", "a read-ahead that the driver gives its NFS mounts"),
    ("efs.csi.aws.com", "efs-utils, which gives its mounts 15 × rsize"),
];

/// The volumes that kubelet has mounted, looked up by mount point; `None` without its directory.
#[derive(Debug, Default)]
pub struct Volumes(Option<Root>);

impl Volumes {
    pub(super) fn read(root: &Root) -> Self {
        Self(root.exists("/var/lib/kubelet").then(|| root.clone()))
    }

    /// Returns the claim of the driver that mounted the target, if the driver can set read-ahead.
    pub(super) fn claim(&self, target: &Target) -> Option<Claim> {
        let root = self.0.as_ref()?;
        target.points.iter().find_map(|point| {
            let text = point.to_str()?;
            if !text.contains("kubernetes.io~csi/") && !text.contains("/kubernetes.io/csi/") {
                return None;
            }
            let file: PathBuf = point.parent()?.join("vol_data.json");
            let driver = driver_name(&root.lines_of(&file)?)?;
            let (_, option) = DRIVERS.iter().find(|(name, _)| *name == driver)?;
            Some(Claim {
                owner: OwnerKind::Csi,
                wanted: Wanted::Unknown,
                place: FileLocation::new(file, 0),
                text: format!("{driver}: {option}"),
                comment: None,
                certainty: Certainty::Perhaps,
                by_foreread: false,
            })
        })
    }
}

/// Returns the `driverName` in a vol_data.json, which is one flat object.
pub fn driver_name(json: &str) -> Option<String> {
    let rest = json.split_once("\"driverName\"")?.1.trim_start().strip_prefix(':')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_found() {
        let json = r#"{"attachmentID":"x","driverName":"pd.csi.storage.gke.io","nodeName":"n"}"#;
        assert_eq!(driver_name(json).as_deref(), Some("pd.csi.storage.gke.io"));
        assert_eq!(driver_name("{\"driverName\""), None);
    }
}
