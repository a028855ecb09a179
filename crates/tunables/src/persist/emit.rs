//! Formats the persisted files for configuration management.

use super::{Draft, PersistBackend};
use crate::{TunableError, TunableValues};

pub fn ansible(drafts: &[Draft]) -> String {
    let mut text = String::from("# managed by foreread: tasks for a play with become: true\n");
    for draft in drafts {
        if let Some(command) = draft.command() {
            text.push_str(&format!(
                "- name: \"foreread: {path}\"\n  ansible.builtin.command: {}\n",
                command.join(" "),
                path = draft.path.display()
            ));
            continue;
        }
        text.push_str(&format!(
            "- name: \"foreread: {path}\"\n  ansible.builtin.copy:\n    dest: {path}\n    owner: \
             root\n    group: root\n    mode: \"0644\"\n    content: |\n{body}  notify: \
             \"foreread: reload\"\n",
            path = draft.path.display(),
            body = indented(&draft.emitted_text(), 6)
        ));
        if let Some(unit) = unit(draft) {
            text.push_str(&format!("- name: \"foreread: start {unit} at boot\"\n"));
            text.push_str(&format!("  ansible.builtin.systemd_service:\n    name: {unit}\n"));
            text.push_str("    enabled: true\n    daemon_reload: true\n");
        }
        if let Some(command) = activation(draft) {
            text.push_str(&format!(
                "- name: \"foreread: activate TuneD's profile\"\n  ansible.builtin.command: \
                 {command}\n"
            ));
        }
    }
    text.push_str(
        "# handlers:\n# - name: \"foreread: reload\"\n#   ansible.builtin.shell: udevadm control \
         --reload; udevadm trigger --subsystem-match=block; sysctl --system; systemctl \
         daemon-reload\n",
    );
    text
}

pub fn cloud_init(drafts: &[Draft]) -> String {
    let mut text = String::from("#cloud-config\n# managed by foreread\nwrite_files:\n");
    for draft in drafts.iter().filter(|draft| draft.command().is_none()) {
        text.push_str(&format!(
            "  - path: {}\n    owner: root:root\n    permissions: \"0644\"\n    content: |\n{}",
            draft.path.display(),
            indented(&draft.emitted_text(), 6)
        ));
    }
    text.push_str(
        "runcmd:\n  - udevadm control --reload\n  - udevadm trigger --subsystem-match=block\n  - \
         sysctl --system\n",
    );
    for unit in drafts.iter().filter_map(unit) {
        text.push_str(&format!("  - systemctl enable --now {unit}\n"));
    }
    for command in drafts.iter().filter_map(activation) {
        text.push_str(&format!("  - {command}\n"));
    }
    for command in drafts.iter().filter_map(Draft::command) {
        text.push_str(&format!("  - {}\n", command.join(" ")));
    }
    text
}

/// Formats Kubernetes manifests: storage classes with mount options, and a DaemonSet for the rest.
pub fn kubernetes(settings: &TunableValues) -> Result<String, TunableError> {
    let mut text = String::from("# managed by foreread\n");
    if let Some(window) = settings.window() {
        let kib = window.to_kib_floor().get();
        text.push_str(&format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: \
             foreread-gke\nprovisioner: pd.csi.storage.gke.io\nmountOptions:\n  - \
             read_ahead_kb={kib}\n---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\n\
             metadata:\n  name: foreread-azure\nprovisioner: disk.csi.azure.com\nparameters:\n  \
             perfProfile: Advanced\n  device-setting/queue/read_ahead_kb: \"{kib}\"\n---\n"
        ));
    }
    let words: Vec<String> = settings.iter().map(ToString::to_string).collect();
    text.push_str(&format!(
        "# Give the image of foreread, and the mount point of the data on the nodes.\napiVersion: \
         apps/v1\nkind: DaemonSet\nmetadata:\n  name: foreread-apply\nspec:\n  selector:\n    \
         matchLabels: {{ app: foreread-apply }}\n  template:\n    metadata:\n      labels: {{ app: \
         foreread-apply }}\n    spec:\n      hostPID: true\n      containers:\n        - name: \
         foreread\n          image: foreread\n          securityContext: {{ privileged: true }}\n  \
                 command: [\"sh\", \"-c\", \"foreread apply {} --on /data && exec sleep \
         infinity\"]\n          volumeMounts: [{{ name: data, mountPath: /data }}]\n      volumes: \
         [{{ name: data, hostPath: {{ path: /var/lib/kubelet }} }}]\n",
        words.join(" ")
    ));
    Ok(text)
}

/// Formats lines for FreeBSD's `sysctl.conf(5)`.
pub fn freebsd(settings: &TunableValues) -> Result<String, TunableError> {
    let mut text = String::from("# managed by foreread: lines for /etc/sysctl.conf\n");
    for setting in settings.iter() {
        let Some(name) = setting.tunable.sysctl().filter(|_| setting.tunable.other_os().is_some())
        else {
            let problem = "not a sysctl of FreeBSD".to_owned();
            return Err(TunableError::Syntax { text: setting.to_string(), problem });
        };
        let default = setting.tunable.default_words().unwrap_or("unknown");
        let value = setting.tunable.encode(&setting.value)?;
        text.push_str(&format!("# the system comes with: {default}\n{name}={value}\n"));
    }
    Ok(text)
}

/// Returns the name of a draft's systemd unit; `None` if the draft is not a unit.
fn unit(draft: &Draft) -> Option<&str> {
    draft.path.file_name()?.to_str().filter(|name| name.ends_with(".service"))
}

/// Returns the command that activates a draft which is a TuneD profile.
fn activation(draft: &Draft) -> Option<String> {
    let is_profile = draft.backend == PersistBackend::Tuned;
    is_profile.then(|| format!("tuned-adm profile {}", super::tuned::OURS))
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}
